"""Thousands of jobs on a real API server: pods that are played, agents that answer for them."""

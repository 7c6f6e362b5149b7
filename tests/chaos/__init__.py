"""The crash matrix: every phase of every operation, and what goes wrong in it."""

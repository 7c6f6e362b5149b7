"""The operator: looks at the cluster, lets `lifecycle/` decide, writes it down, and does it."""

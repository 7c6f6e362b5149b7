"""One module per phase of an operation."""

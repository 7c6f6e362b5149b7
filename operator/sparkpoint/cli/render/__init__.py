"""Values to text, and values to JSON. Pure: no clock, no terminal, no store."""

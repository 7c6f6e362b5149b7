"""Reading a Structured Streaming checkpoint: its logs, its pinned conf, the files of a batch.

Reads only. Knows Spark's layouts, and refuses by name what it does not know; never guesses.
"""

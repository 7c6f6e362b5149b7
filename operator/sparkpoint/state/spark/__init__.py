"""What only Spark can do with state, each in a process of its own that ends when it is done.

The modules that import pyspark are the ones that such a process runs; nothing else does. They get
an order in a file, work on a throw-away copy, and leave an answer in another file.
"""

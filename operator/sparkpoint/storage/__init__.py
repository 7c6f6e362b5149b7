"""Where bytes live: a directory or an S3 bucket, behind one small interface.

Nothing here knows what a checkpoint or a savepoint is.
"""

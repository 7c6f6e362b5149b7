"""What savepoints cost, as ratios against a named peer: `make bench`.

Peer and ours run in turns, on the same disk or server, from a warm page cache, and what counts is
the median. Nothing here is an assertion about time, so nothing here is a test; but whatever was
measured is also checked to be right, because a fast wrong copy is worth nothing.
"""

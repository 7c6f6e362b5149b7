"""What to do next for a job: pure decisions, without I/O, clock or Kubernetes.

`decide(world)` looks at what the user wishes, what was written down, and what is seen in the
cluster, and returns what to write down and then do. Killing whoever carries it out at any line is
harmless: everything that is done has a name that follows from what was written down before.
"""

from sparkpoint.lifecycle.decide import Decision, decide

__all__ = ["Decision", "decide"]

"""What can be wrong with what a person asked of a DAG; trying again helps with none of it.

DecisionError
├── DrillError     no drill can be made of a job
├── PolicyError    nobody can tell how often savepoints are to be taken
├── RulesError     rules that nothing can be planned by
├── SelectorError  labels that cannot be understood
└── WavesError     jobs and waves do not go together
"""

__all__ = [
    "DecisionError",
    "DrillError",
    "PolicyError",
    "RulesError",
    "SelectorError",
    "WavesError",
]


class DecisionError(Exception):
    """Nothing can be decided, and nothing is done."""


class DrillError(DecisionError):
    """No drill can be made of it."""


class PolicyError(DecisionError):
    """The annotation, or the DAG's default, says nothing that can be understood."""


class RulesError(DecisionError):
    """Rules that nothing can be planned by."""


class SelectorError(DecisionError):
    """It would choose no job, or another one than is meant."""


class WavesError(DecisionError):
    """The sizes and the jobs do not go together."""

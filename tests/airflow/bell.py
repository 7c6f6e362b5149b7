"""A notifier that writes down what it was told."""

from pathlib import Path
from typing import Any

from airflow.sdk import BaseNotifier

__all__ = ["Bell"]


class Bell(BaseNotifier):  # type: ignore[misc]
    """Rings in a file, a line for each run."""

    def __init__(self, *, path: str) -> None:
        super().__init__()
        self.path = path

    def notify(self, context: Any) -> None:
        """Ring."""
        with Path(self.path).open("a") as file:
            file.write(f"{context['run_id']}\n")

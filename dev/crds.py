"""Write `crds/` and `docs/api.md` from the models: `make crds`.

Both are committed; a unit test compares them with what this module would write.
"""

from pathlib import Path
from typing import Any

import yaml

from dev.console import run_command, say
from dev.reference import api_reference
from sparkpoint.api.crd import RESOURCES, definition

__all__ = ["generated_files"]

_ROOT = Path(__file__).parent.parent
_HEADER = "# Generated from operator/sparkpoint/api by `make crds`. Do not edit.\n"


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Anchors would save lines and cost readers."""
        return True


def generated_files() -> dict[Path, str]:
    """Every generated file with its content."""
    files = {_ROOT / "docs" / "api.md": api_reference()}
    for resource in RESOURCES:
        document = yaml.dump(
            definition(resource), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
        )
        files[_ROOT / "crds" / f"{resource.plural}.yaml"] = _HEADER + document
    return files


def main() -> None:
    """Write what has changed."""
    for path, content in generated_files().items():
        if path.exists() and path.read_text() == content:
            continue
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        say(f"Wrote {path.relative_to(_ROOT)}")


if __name__ == "__main__":
    run_command(main)

"""Write `crds/`, the chart's copies of them, and the reference pages: `make crds`.

All are committed; a unit test compares them with what this module would write.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from dev.chart import helm_page
from dev.console import run_command, say
from dev.reference import api_reference
from sparkpoint.api.crd import RESOURCES, definition

__all__ = ["generated_files"]

_ROOT = Path(__file__).parent.parent
_CHART = _ROOT / "helm" / "sparkpoint" / "files"
_HEADER = "# Generated from operator/sparkpoint/api by `make crds`. Do not edit.\n"


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Anchors would save lines and cost readers."""
        return True


def generated_files() -> dict[Path, str]:
    """Every generated file with its content."""
    page = _ROOT / "docs" / "helm.md"
    files = {
        _ROOT / "docs" / "api.md": api_reference(),
        page: helm_page(page.read_text()),
    }
    for resource in RESOURCES:
        name, body = f"{resource.plural}.yaml", definition(resource)
        files[_ROOT / "crds" / name] = _document(body)
        files[_CHART / "crds" / name] = _document(_kept(body))
    return files


def _document(body: Mapping[str, Any]) -> str:
    return _HEADER + yaml.dump(
        dict(body), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
    )


def _kept(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same for the chart: Helm must leave it when the chart goes, or all jobs go with it."""
    annotations = {"helm.sh/resource-policy": "keep"}
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}


def main() -> None:
    """Write what has changed."""
    for path, content in generated_files().items():
        if path.exists() and path.read_text() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        say(f"Wrote {path.relative_to(_ROOT)}")


if __name__ == "__main__":
    run_command(main)

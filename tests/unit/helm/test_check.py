"""What `helm test` runs, against the operator's own pages."""

import asyncio
import importlib.util
from types import ModuleType

import pytest

from dev.helm import CHART
from sparkpoint.controller.health import serve_health
from sparkpoint.controller.metrics import Metrics
from tests.unit.helm.rendering import render

_FILE = CHART / "files" / "check_installation.py"


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_installation", _FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_operator_that_answers_is_found(script: ModuleType) -> None:
    async def ask() -> str:
        async with serve_health(0, metrics=Metrics(), last_pass=lambda: None) as port:
            address = f"http://127.0.0.1:{port}"
            return str(await asyncio.to_thread(script.check_pages, address))

    assert asyncio.run(ask()).startswith("the operator answers at http://127.0.0.1:")


def test_what_is_wrong_is_said_when_the_time_is_over(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> str:
        raise ValueError("the API server does not serve sparksavepoints")

    monkeypatch.setattr(script, "check_resources", refuse)
    monkeypatch.setattr(script, "_PATIENCE", -1.0)

    with pytest.raises(SystemExit, match="error: the API server does not serve sparksavepoints"):
        script.main()


def test_the_pod_runs_it_whole_with_the_address_of_the_pages() -> None:
    [hook] = render().hooks

    program, flag, code, *addresses = hook["spec"]["containers"][0]["args"]
    assert (program, flag) == ("python3", "-c")
    assert code.strip() == _FILE.read_text().strip()
    assert addresses == ["http://sparkpoint-operator.system.svc:8080"]
    # Kubernetes would replace it.
    assert "$(" not in code


def test_pages_that_have_no_service_are_not_asked_for() -> None:
    [hook] = render({"metrics": {"enabled": False}}).hooks

    assert len(hook["spec"]["containers"][0]["args"]) == 3

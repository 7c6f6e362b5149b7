"""What `helm test` and `helm uninstall` run in short pods."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

import pytest

from dev.helm import CHART
from sparkpoint.controller.metrics import Metrics
from tests.unit.helm.combinations import NAMESPACED
from tests.unit.helm.rendering import render

_CHECK = CHART / "files" / "check_installation.py"
_TELL = CHART / "files" / "tell_before_uninstall.py"


@pytest.fixture
def check() -> ModuleType:
    return _loaded(_CHECK)


@pytest.fixture
def tell() -> ModuleType:
    return _loaded(_TELL)


def _loaded(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_operator_that_answers_is_found(check: ModuleType) -> None:
    with _serving(Metrics().render()) as address:
        assert check.check_pages(address) == f"the operator answers at {address}"


def test_a_page_of_somebody_else_is_not_taken_for_the_operators(check: ModuleType) -> None:
    with _serving("up 1\n") as address, pytest.raises(ValueError, match="nothing of the operator"):
        check.check_pages(address)


@contextmanager
def _serving(text: str) -> Iterator[str]:
    """A server that answers everything with this."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_what_is_wrong_is_said_when_the_time_is_over(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> str:
        raise ValueError("the API server does not serve sparksavepoints")

    monkeypatch.setattr(check, "check_resources", refuse)
    monkeypatch.setattr(check, "_PATIENCE", -1.0)

    with pytest.raises(SystemExit, match="error: the API server does not serve sparksavepoints"):
        check.main()


def test_the_pod_runs_it_whole_with_the_address_of_the_pages() -> None:
    hook = render().hook("test")

    program, flag, code, *addresses = hook["spec"]["containers"][0]["args"]
    assert (program, flag) == ("python3", "-c")
    assert code.strip() == _CHECK.read_text().strip()
    assert addresses == ["http://sparkpoint-operator.system.svc:8080"]
    # Kubernetes would replace it.
    assert "$(" not in code


def test_pages_that_have_no_service_are_not_asked_for() -> None:
    hook = render({"metrics": {"enabled": False}}).hook("test")

    assert len(hook["spec"]["containers"][0]["args"]) == 3


def test_jobs_that_run_on_are_told_with_the_way_to_finish(
    tell: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tell, "jobs_of", lambda space: [f"{space}/{n}" for n in range(15)])
    monkeypatch.setattr(tell.sys, "argv", ["-c", "shop", "lab"])

    tell.main()

    said = capsys.readouterr().out
    assert "Jobs that run on" in said
    assert "  lab/0\n" in said
    assert "and 10 more" in said
    assert "kubectl delete crd statefulsparkjobs.sparkpoint.dev" in said


def test_thousands_of_jobs_are_read_in_pieces_and_by_their_names_alone(
    tell: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their status they are more than the pod has memory for, and the hook would fail."""
    paths: list[str] = []

    def answer(path: str) -> dict[str, Any]:
        paths.append(path)
        rest = "" if "continue=" in path else "on & on"
        items = [{"metadata": {"namespace": "shop", "name": f"job-{len(paths)}"}}]
        return {"metadata": {"continue": rest}, "items": items}

    monkeypatch.setattr(tell, "asked", answer)

    assert tell.jobs_of("shop") == ["shop/job-1", "shop/job-2"]
    jobs = "/apis/sparkpoint.dev/v1alpha1/namespaces/shop/statefulsparkjobs?limit=500"
    assert paths == [jobs, f"{jobs}&continue=on+%26+on"]
    assert "as=PartialObjectMetadataList" in tell._NAMES_ALONE


def test_nothing_runs_on_where_there_are_no_jobs(tell: ModuleType) -> None:
    assert tell.told([]).startswith("Definitions, resources, savepoints and checkpoints stay.")


def test_words_that_fail_do_not_hold_an_uninstallation_up(
    tell: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(tell.sys, "argv", ["-c"])

    tell.main()

    assert "is not known" in capsys.readouterr().out


def test_the_pod_before_the_end_asks_where_jobs_were_served_as_the_operator() -> None:
    everywhere, listed = render().hook("pre-delete"), render(NAMESPACED).hook("pre-delete")

    arguments = [each["spec"]["containers"][0]["args"] for each in (everywhere, listed)]
    assert [len(each) for each in arguments] == [3, 5]
    assert arguments[0][2].strip() == _TELL.read_text().strip()
    assert "$(" not in arguments[0][2]
    assert arguments[1][3:] == ["shop", "lab"]
    assert everywhere["spec"]["serviceAccountName"] == "sparkpoint-operator"
    annotations = everywhere["metadata"]["annotations"]
    assert annotations["helm.sh/hook-output-log-policy"] == "hook-succeeded"

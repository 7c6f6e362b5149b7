"""Run a script as `python script.py` would: `__main__`, arguments, path, code and traceback."""

import io
import linecache
import os
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path

from sparkpoint.runtime.errors import ScriptOver
from sparkpoint.runtime.exits import Exit
from sparkpoint.runtime.identity import Place
from sparkpoint.runtime.model import ErrorInfo

__all__ = ["ScriptEnd", "calling_place", "run_script", "surroundings_kept"]

_OURS = str(Path(__file__).resolve().parent) + os.sep
_CODE_BITS = 0xFF


@dataclass(frozen=True, slots=True)
class ScriptEnd:
    """How a script ended."""

    code: int
    """What Python would exit with."""
    error: ErrorInfo | None = None


def run_script(script: str, arguments: Sequence[str]) -> ScriptEnd:
    """Run it to its end; what it does not catch is printed as Python prints it."""
    path = Path(script).absolute()
    try:
        code = _read(path)
    except OSError as error:
        reason = f"[Errno {error.errno}] {error.strerror}"
        return _missing(f"can't open file {str(path)!r}: {reason}")
    sys.argv = [script, *arguments]
    if not sys.flags.safe_path:
        # `python -m` has put the working directory there.
        sys.path[0] = str(path.resolve().parent)
    module = _main_module(path)
    sys.modules["__main__"] = module
    try:
        exec(compile(code, str(path), "exec"), module.__dict__)  # noqa: S102 - our very purpose
    except ScriptOver:
        return ScriptEnd(Exit.OK)
    except SystemExit as exit_:
        return _exited(exit_)
    except BaseException as error:
        return _failed(error, path)
    return ScriptEnd(Exit.OK)


@contextmanager
def surroundings_kept() -> Iterator[None]:
    """Undo what a script does to the path of imports and to the working directory."""
    path, folder = list(sys.path), Path.cwd()
    try:
        yield
    finally:
        sys.path[:] = path
        os.chdir(folder)


def calling_place() -> Place:
    """The line of the script, or of a module of its own, that is calling into pyspark."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and _is_machinery(frame):
        frame = frame.f_back
    if frame is None:
        return Place("<unknown>", 0)
    file, line = frame.f_code.co_filename, frame.f_lineno
    return Place(file, line, linecache.getline(file, line).strip())


def _read(path: Path) -> bytes:
    with io.open_code(str(path)) as file:
        return file.read()


def _missing(message: str) -> ScriptEnd:
    print(f"{sys.executable}: {message}", file=sys.stderr)
    error = ErrorInfo(type="ScriptMissing", message=message)
    return ScriptEnd(Exit.SCRIPT_MISSING, error)


def _main_module(path: Path) -> types.ModuleType:
    # A module of its own: what the script defines is pickled by value because it is in __main__.
    module = types.ModuleType("__main__")
    module.__dict__.update(
        __file__=str(path),
        __loader__=SourceFileLoader("__main__", str(path)),
        __builtins__=sys.modules["builtins"],
        __cached__=None,
    )
    return module


def _exited(exit_: SystemExit) -> ScriptEnd:
    code = exit_.code
    if code is None:
        return ScriptEnd(Exit.OK)
    if isinstance(code, int):
        kept = code & _CODE_BITS
        if kept == 0:
            return ScriptEnd(Exit.OK)
        said = ErrorInfo(type="SystemExit", message=f"The script ended with exit code {kept}.")
        return ScriptEnd(kept, said)
    print(code, file=sys.stderr)
    return ScriptEnd(Exit.SCRIPT_FAILED, ErrorInfo(type="SystemExit", message=str(code)))


def _failed(error: BaseException, path: Path) -> ScriptEnd:
    _clean(error, set())
    where = _where(error, path)
    sys.excepthook(type(error), error, error.__traceback__)
    code = Exit.INTERRUPTED if isinstance(error, KeyboardInterrupt) else Exit.SCRIPT_FAILED
    return ScriptEnd(code, ErrorInfo(type=type(error).__name__, message=str(error), where=where))


def _where(error: BaseException, path: Path) -> str | None:
    """The last line of the script itself that the exception came through."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    found, frame = None, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == str(path):
            found = f"{path}:{frame.tb_lineno}"
        frame = frame.tb_next
    return found


def _clean(error: BaseException | None, seen: set[int]) -> None:
    """Take our own frames out of a traceback, and out of those it is chained to."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    error.__traceback__ = _without_ours(error.__traceback__)
    _clean(error.__cause__, seen)
    _clean(error.__context__, seen)


def _without_ours(traceback: types.TracebackType | None) -> types.TracebackType | None:
    kept = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_OURS):
            kept.append(traceback)
        traceback = traceback.tb_next
    following = None
    for each in reversed(kept):
        each.tb_next = following
        following = each
    return following


def _is_machinery(frame: types.FrameType) -> bool:
    file = frame.f_code.co_filename
    return file.startswith(_OURS) or f"{os.sep}pyspark{os.sep}" in file

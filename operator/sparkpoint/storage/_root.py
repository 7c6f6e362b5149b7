"""How paths become files below one root, and how a file comes into being there.

Nothing outside the root is reached: paths are checked, and a symbolic link that leads out is
refused.
"""
# This runs once per file of a checkpoint, and pathlib takes several times longer.
# ruff: noqa: PTH103, PTH105, PTH106, PTH108, PTH112, PTH116, PTH120

import contextlib
import errno
import fcntl
import os
import stat as mode
import uuid
from collections.abc import Callable, Iterator

from sparkpoint.storage._linux import UNSUPPORTED, rename_noreplace
from sparkpoint.storage._unsynced import Unsynced
from sparkpoint.storage.errors import BadLocationError, NotFoundError, UnsupportedError
from sparkpoint.storage.interface import check_path

__all__ = ["LOCK", "TEMPORARY", "Root"]

TEMPORARY = ".sparkpoint-tmp"
"""Where unfinished files are, seen from the root; no listing shows it."""

LOCK = "lock"
"""Never removed: two processes must not lock two files of this name."""
# Without O_NONBLOCK, a named pipe left in the directory would hold us for ever.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_ATTEMPTS = 5
"""How often a folder is made again that somebody else removes because it was empty."""


class Root:
    """A directory that nothing leaves."""

    def __init__(self, path: str, unsynced: Unsynced | None = None) -> None:
        # The root may itself be reached through links: what matters is that nothing leaves it.
        self.path = os.path.realpath(path)
        self._inside: set[str] = set()
        self.unsynced = unsynced or Unsynced(self.path)

    def locate(self, path: str) -> str:
        """The absolute path of a file that need not exist."""
        check_path(path)
        if path.startswith(TEMPORARY) and path.partition("/")[0] == TEMPORARY:
            raise BadLocationError(f"{path!r} is where {self.path} keeps unfinished files.")
        target = f"{self.path}/{path}"
        folder = target.rpartition("/")[0]
        if folder not in self._inside:
            self._check_folder(folder)
        return target

    def _check_folder(self, folder: str) -> None:
        """Check a folder of this root, and remember it if it exists.

        All the way from the top only if need be: one that is no link is where its parent is.
        """
        parent = folder.rpartition("/")[0]
        if folder != self.path and parent not in self._inside:
            self._check_folder(parent)
        if parent in self._inside and _is_plain_folder(folder):
            self._inside.add(folder)
            return
        self.check_inside(folder)
        if os.path.isdir(folder):
            self._inside.add(folder)

    def check_inside(self, target: str) -> None:
        """BadLocationError if a link leads out of the root."""
        real = os.path.realpath(target)
        if real != self.path and not real.startswith(f"{self.path.rstrip('/')}/"):
            raise BadLocationError(
                f"{target} leads out of {self.path} through a symbolic link. Remove the link."
            )

    def stat(self, path: str) -> os.stat_result:
        """The status of a regular file, through links that stay inside."""
        target = self.locate(path)
        info = os.lstat(target)
        if mode.S_ISLNK(info.st_mode):
            self.check_inside(target)
            info = os.stat(target)
        if not mode.S_ISREG(info.st_mode):
            raise NotFoundError(f"{target} is not a file.")
        return info

    @contextlib.contextmanager
    def reading(self, path: str) -> Iterator[int]:
        """A descriptor of a regular file."""
        descriptor, _ = self.open(path)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def open(self, path: str) -> tuple[int, os.stat_result]:
        """A descriptor of a regular file, which the caller closes, and the file's status."""
        target = self.locate(path)
        try:
            descriptor = os.open(target, _READ)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            self.check_inside(target)
            descriptor = os.open(os.path.realpath(target), _READ)
        info = os.fstat(descriptor)
        if not mode.S_ISREG(info.st_mode):
            os.close(descriptor)
            raise NotFoundError(f"{target} is not a file.")
        return descriptor, info

    @contextlib.contextmanager
    def temporary(self) -> Iterator[tuple[str, int]]:
        """A fresh file to write to; it is gone afterwards unless it was renamed."""
        temporary = f"{self.path}/{TEMPORARY}/{uuid.uuid4().hex}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            descriptor = os.open(temporary, flags, 0o644)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(temporary), exist_ok=True)
            descriptor = os.open(temporary, flags, 0o644)
        try:
            yield temporary, descriptor
        finally:
            os.close(descriptor)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)

    @contextlib.contextmanager
    def drafting(self, path: str) -> Iterator[int]:
        """A fresh file in its final place; only if we are killed does a half-written one stay.

        Whatever had the name is unlinked, never written to: it may have other names.
        """
        target = self.locate(path)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(target, flags, 0o644)
        except FileExistsError:
            os.unlink(target)
            descriptor = os.open(target, flags, 0o644)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            descriptor = os.open(target, flags, 0o644)
        self.unsynced.written(target)
        try:
            yield descriptor
        except BaseException:
            # On a full disk this makes room for whoever has to write down what happened.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(target)
            raise
        finally:
            os.close(descriptor)

    def move(self, temporary: str, path: str) -> None:
        """Put a finished file in its place, over whatever is there."""
        target = self.locate(path)
        _settle(target, lambda: os.replace(temporary, target))
        self.unsynced.written(target)

    def link(self, temporary: str, path: str) -> None:
        """Put a finished file in its place; FileExistsError if that is taken."""
        target = self.locate(path)
        _settle(target, lambda: _link(temporary, target))

    def flush_folder(self, path: str) -> None:
        """Make the names in a file's folder durable."""
        descriptor = os.open(os.path.dirname(self.locate(path)), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, path: str) -> None:
        """Unlink, and remove the folders that this leaves empty."""
        target = self.locate(path)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(target)
            self.unsynced.removed(target)
        folder = os.path.dirname(target)
        with contextlib.suppress(OSError):  # not empty, or somebody else was faster: both are fine
            while len(folder) > len(self.path):
                os.rmdir(folder)
                self._inside.discard(folder)
                folder = os.path.dirname(folder)

    def remove_tree(self, path: str, removed: Callable[[int], None]) -> None:
        """Remove a folder with all it holds. A link in it is removed, and never followed."""
        target = self.locate(path)
        if os.path.realpath(target) != target:
            raise BadLocationError(
                f"{target} is a symbolic link, and nothing is removed through one. Remove the link."
            )
        with contextlib.suppress(FileNotFoundError):
            _settle_removal(target, removed)
            self.unsynced.removed(target)
        self._inside = {each for each in self._inside if not f"{each}/".startswith(f"{target}/")}

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude every other process on this file system that does the same."""
        lock = f"{self.path}/{TEMPORARY}/{LOCK}"
        os.makedirs(os.path.dirname(lock), exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _is_plain_folder(path: str) -> bool:
    """Whether it exists and is no link."""
    try:
        return mode.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _settle(target: str, action: Callable[[], None]) -> None:
    """Do it, making the folder if it is not there or was just removed as empty."""
    for _ in range(_ATTEMPTS):
        try:
            return action()
        except FileNotFoundError:
            os.makedirs(os.path.dirname(target), exist_ok=True)
    return action()


def _settle_removal(target: str, removed: Callable[[int], None]) -> None:
    """Remove a tree, again if somebody put a file into a folder that was empty just now."""
    for _ in range(_ATTEMPTS):
        try:
            return _remove_tree(target, removed)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
    return _remove_tree(target, removed)


def _remove_tree(target: str, removed: Callable[[int], None]) -> None:
    for _, folders, files, descriptor in os.fwalk(target, topdown=False, onerror=_unless_gone):
        for name in files:
            _remove_file(name, descriptor, removed)
        for name in folders:
            with contextlib.suppress(FileNotFoundError):
                _remove_folder_or_link(name, descriptor)
    os.rmdir(target)


def _remove_file(name: str, folder: int, removed: Callable[[int], None]) -> None:
    with contextlib.suppress(FileNotFoundError):
        size = os.stat(name, dir_fd=folder, follow_symlinks=False).st_size
        os.unlink(name, dir_fd=folder)
        removed(size)


def _remove_folder_or_link(name: str, folder: int) -> None:
    try:
        os.rmdir(name, dir_fd=folder)
    except NotADirectoryError:  # a link to a folder
        os.unlink(name, dir_fd=folder)


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _link(temporary: str, target: str) -> None:
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        if not rename_noreplace(temporary, target):
            raise UnsupportedError(
                f"The file system of {target} can neither link nor rename without replacing, so "
                "two writers could overwrite each other. Use a POSIX file system or S3."
            ) from error

"""What was changed and may not be on the disk yet, as long as that is little.

A sync of the whole file system also waits for what everybody else has written, such as the query
whose checkpoint lies beside a repository: a savepoint of a few files should not make it wait.
"""
# ruff: noqa: PTH120

import contextlib
import os
import threading
from collections.abc import Iterable

from sparkpoint.storage._linux import start_writeback, sync_file_system

__all__ = ["Unsynced"]

_FEW = 32
"""Files that are flushed one by one; the kernel does better with more of them at once."""


class Unsynced:
    """Files and folders by their absolute paths; one for all stores below one root."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self._is_much = False

    def written(self, path: str) -> None:
        """A file has come into being, has changed, or is relied on."""
        with self._lock:
            self._is_much = self._is_much or len(self._files) >= _FEW
            if not self._is_much:
                self._files.add(path)
                self._folders.add(os.path.dirname(path))

    def removed(self, path: str) -> None:
        """A name has gone."""
        with self._lock:
            self._is_much = self._is_much or len(self._folders) >= _FEW
            if not self._is_much:
                self._folders.add(os.path.dirname(path))

    def sync(self) -> None:
        """Bring all of it to the disk."""
        with self._lock:
            files, folders, is_much = self._files, self._folders, self._is_much
            self._files, self._folders, self._is_much = set(), set(), False
        try:
            if is_much:
                _sync_all(self._root)
            else:
                self._sync_these(files, folders)
        except BaseException:
            # Nobody knows any more what is on the disk.
            with self._lock:
                self._is_much = True
            raise

    def _sync_these(self, files: set[str], folders: set[str]) -> None:
        try:
            _flush(files, writeback=True)
            _flush(self._with_parents(folders))
        except PermissionError:
            # A folder may be one that we write to and cannot open.
            _sync_all(self._root)

    def _with_parents(self, folders: Iterable[str]) -> list[str]:
        """The innermost first: a folder may be new itself, and so may be the root."""
        found: set[str] = set()
        top = len(os.path.dirname(self._root))
        for folder in folders:
            while folder not in found and len(folder) >= top:
                found.add(folder)
                folder = os.path.dirname(folder)
        return sorted(found, key=len, reverse=True)


def _flush(paths: Iterable[str], *, writeback: bool = False) -> None:
    with contextlib.ExitStack() as stack:
        descriptors = []
        for path in paths:
            # What is gone again needs no flushing; that it is gone, its folder's will tell.
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                stack.callback(os.close, descriptor)
                descriptors.append(descriptor)
                if writeback:
                    start_writeback(descriptor)
        for descriptor in descriptors:
            os.fsync(descriptor)


def _sync_all(root: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            sync_file_system(descriptor)
        finally:
            os.close(descriptor)

"""Small files are read several at a time, and none of them is kept longer than it is parsed."""

import threading

from sparkpoint.checkpoint.reader import BatchReader


class _Counted(bytes):
    """Content that knows how much of its kind there is."""

    alive = 0
    most = 0
    lock = threading.Lock()

    @classmethod
    def made(cls) -> "_Counted":
        with cls.lock:
            cls.alive += 1
            cls.most = max(cls.most, cls.alive)
        return cls(b"content")

    def __del__(self) -> None:
        with _Counted.lock:
            _Counted.alive -= 1


class _Files:
    parallelism = 3

    def __init__(self) -> None:
        self.threads: set[str] = set()

    def read(self, path: str) -> bytes:
        self.threads.add(threading.current_thread().name)
        return _Counted.made()

    def head(self, path: str, size: int) -> bytes:
        return self.read(path)


def test_no_more_files_are_in_memory_than_threads_read_them() -> None:
    files = _Files()
    reader = BatchReader(files, batch=0)
    paths = [str(number) for number in range(200)]

    sizes = reader.map(paths, lambda data, path: len(data) + int(path))
    heads = reader.map_heads(paths, lambda data, path: len(data), size=9)

    assert list(sizes.items()) == [(path, 7 + int(path)) for path in paths]
    assert set(heads.values()) == {7}
    assert _Counted.most <= files.parallelism
    assert len(files.threads) <= 2 * files.parallelism

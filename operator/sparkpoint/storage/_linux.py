"""System calls that Python does not offer: exclusive rename, reflink, room, sync of a file system.

Each says by its return value whether the kernel and the file system can do it; none is required.
"""

import ctypes
import errno
import fcntl
import os

__all__ = [
    "UNSUPPORTED",
    "allocate",
    "reflink",
    "rename_noreplace",
    "start_writeback",
    "sync_file_system",
]

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_SYNC_FILE_RANGE_WRITE = 2
_FICLONE = 0x40049409

UNSUPPORTED = frozenset(
    {
        errno.ENOSYS,
        errno.EINVAL,
        errno.ENOTSUP,
        errno.EOPNOTSUPP,
        errno.EXDEV,
        errno.ENOTTY,
        errno.EPERM,
        errno.EMLINK,
    }
)
"""What kernels answer when a file system lacks an operation."""

_libc = ctypes.CDLL(None, use_errno=True)


def rename_noreplace(source: str, target: str) -> bool:
    """Rename unless the target exists (FileExistsError); False if this is not supported."""
    if not hasattr(_libc, "renameat2"):
        return False
    paths = os.fsencode(source), os.fsencode(target)
    result = _libc.renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_NOREPLACE)
    if result == 0:
        return True
    code = ctypes.get_errno()
    if code in UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), target)


def reflink(source: int, target: int) -> bool:
    """Let the target share all blocks of the source; False if the file system cannot."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno in UNSUPPORTED:
            return False
        raise
    return True


def allocate(descriptor: int, size: int) -> bool:
    """Let an empty file have this size, with room on the disk for it; False if not supported.

    Not as the C library does it, which writes zeros where the file system cannot.
    """
    if not hasattr(_libc, "fallocate"):
        return False
    if _libc.fallocate(descriptor, 0, ctypes.c_int64(0), ctypes.c_int64(size)) == 0:
        return True
    code = ctypes.get_errno()
    if code in UNSUPPORTED or code == errno.EINTR:
        return False
    raise OSError(code, os.strerror(code))


def start_writeback(descriptor: int, start: int = 0) -> None:
    """Let the kernel begin to write the file out, so that a later sync has less to wait for."""
    if hasattr(_libc, "sync_file_range"):
        _libc.sync_file_range(
            descriptor, ctypes.c_int64(start), ctypes.c_int64(0), _SYNC_FILE_RANGE_WRITE
        )


def sync_file_system(descriptor: int) -> None:
    """Write out everything dirty on the file system of this descriptor; all of them if need be."""
    if not hasattr(_libc, "syncfs"):
        os.sync()
        return
    if _libc.syncfs(descriptor) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))

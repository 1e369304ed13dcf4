"""Writing files so that a reader sees the whole new file or the old state, never half of one.

Who may read what is written is said each time it is written. What is *private* (anything made from rows without a
guarantee, and what was asked and spent) is for its owner alone: files of mode 0600, in folders of mode 0700 where we
make the folder, whatever the umask. What is *public* follows the umask, as the files of other programs do.

Until it is whole, a file or folder has a temporary name beside its target, and a lock. A process that is killed leaves
it there, without the lock; the next writing to the same target sweeps it away.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from understudy.errors import ReleaseError

try:
    import fcntl
except ImportError:  # a system without such locks: then nothing is swept
    fcntl = None  # type: ignore[assignment]

KEPT = "old"
"""In a temporary folder, what was moved out of the way of the new one: of such a folder it may be the last copy."""


def write_atomically(path: Path, content: bytes, *, private: bool) -> None:
    """Writes under a temporary name beside `path`, flushes to the disk, then renames."""
    mode = 0o600 if private else 0o666
    try:
        # In the same folder: only there is it sure to be the same file system, within which a rename is atomic.
        with _staged(path, lambda name: name.touch(mode, exist_ok=False)) as name:
            write_synced(name, content)
            name.replace(path)
    except OSError as error:
        raise ReleaseError(f"{str(path)!r} can't be written: {error.strerror}", path) from None


def write_synced(path: Path, content: bytes) -> None:
    """Writes a file that is on the disk when this returns; one that is made follows the umask."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        # Otherwise a crash soon after a rename may leave the new name with no content.
        os.fsync(file.fileno())


def make_private(folder: Path) -> None:
    """Makes the folder, and those above it that don't exist; nobody else may look into what is made."""
    for made in reversed([f for f in (folder, *folder.parents) if not f.exists()]):
        made.mkdir(mode=0o700, exist_ok=True)


def staged_folder(target: Path) -> AbstractContextManager[Path]:
    """A new folder with a temporary name beside the target; removed at the end where it still has that name."""
    return _staged(target, Path.mkdir)


def sweep(target: Path, everything: bool = False) -> None:
    """Removes what killed processes left of earlier writings to this target.

    A folder in which an earlier target is kept stays, until there is a new target (`everything`).
    """
    if fcntl is None:
        return
    prefix = _prefix(target)
    with suppress(OSError):  # a folder that can't be listed, or is none
        for path in [p for p in target.parent.iterdir() if p.name.startswith(prefix)]:
            with suppress(OSError):  # in use, somebody else's, or gone meanwhile
                _sweep(path, everything)


def name_of_process(target: Path) -> Path:
    """A temporary name that says whose it is, for a database: to lock it, and close it again, would end other locks."""
    return target.with_name(f"{_prefix(target)}{os.getpid()}-{secrets.token_hex(8)}")


def sweep_dead(target: Path) -> None:
    """Removes what has a `name_of_process` of a process that is no more."""
    prefix = _prefix(target)
    with suppress(OSError):
        for path in [p for p in target.parent.iterdir() if p.name.startswith(prefix)]:
            number = path.name.removeprefix(prefix).partition("-")[0]
            if number.isdecimal() and not _is_alive(int(number)):
                _remove(path)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # somebody else's
        return True
    return True


@contextmanager
def _staged(target: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """What was made under a temporary name beside the target, with a lock that ends with this process."""
    sweep(target)
    name, handle = _made(target, make)
    try:
        yield name
    finally:
        if handle is not None:
            os.close(handle)
        _remove(name)


def _made(target: Path, make: Callable[[Path], None]) -> tuple[Path, int | None]:
    while True:
        name = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}")
        make(name)
        if fcntl is None:
            return name, None
        handle = os.open(name, os.O_RDONLY)
        with suppress(OSError):  # a file system without locks: nothing is swept there either
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another process may have swept it away before it was locked.
        if _is_still(name, handle):
            return name, handle
        os.close(handle)


def _sweep(path: Path, everything: bool) -> None:
    found = path.lstat()
    if found.st_uid != os.geteuid() or not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
        return
    if (path / KEPT).exists() and not everything:
        return
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_still(path, handle):
            _remove(path)
    finally:
        os.close(handle)


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _prefix(target: Path) -> str:
    return f".{target.name}.tmp-"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()

"""Writing files so that a reader sees the whole new file or the old state, never half of one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from understudy.errors import ReleaseError


def write_atomically(path: Path, content: bytes) -> None:
    """Writes under a temporary name beside `path`, flushes to the disk, then renames."""
    # In the same folder: only there is it sure to be the same file system, within which a rename is atomic.
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.tmp-", dir=path.parent)
    except OSError as error:
        raise ReleaseError(f"{str(path)!r} can't be written: {error.strerror}", path) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            # Otherwise a crash soon after the rename may leave the new name with no content.
            os.fsync(file.fileno())
        Path(name).chmod(0o644)  # mkstemp makes it readable for its owner alone
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise ReleaseError(f"{str(path)!r} can't be written: {error.strerror}", path) from None

"""The state folder: what a user's machine remembers of ledgers, apart from them.

    XDG_STATE_HOME/understudy, or ~/.local/state/understudy; readable by its owner only
        witnesses/   a second record of each ledger's entries, by the ledger's identity (see `witness`)
        places/      which ledger was at a path
        rows/        which ledgers were debited for a file, by a keyed fingerprint of it (see `known_rows`)
        key          the key of these fingerprints

It only ever adds a refusal or a notice. Where it can't be read or written, work goes on without it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from pathlib import Path
from typing import Any

from understudy.files import make_private

_KEY_BYTES = 32


def folder() -> Path | None:
    """None where there is no home."""
    stated = os.environ.get("XDG_STATE_HOME", "")
    try:
        # The standard says that a relative path is to be ignored.
        base = Path(stated) if Path(stated).is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    return base / "understudy"


def usable() -> bool:
    """Whether something can be remembered; makes the folder where it can be made."""
    base = folder()
    if base is None:
        return False
    try:
        make_private(base)
    except OSError:
        return False
    return os.access(base, os.R_OK | os.W_OK | os.X_OK)


def append(name: str, lines: list[dict[str, Any]]) -> bool:
    """Adds lines to a file of the folder, in one write: lines of several processes don't mix, and none is overwritten.

    Not synced: a power cut may cost the last lines, which the next opening of the ledger writes again.
    """
    base = folder()
    if base is None or not lines or not usable():
        return False
    text = "".join(json.dumps(line, ensure_ascii=True, separators=(",", ":")) + "\n" for line in lines)
    path = base / name
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        try:
            # Begun with a new line: what a crash left of an earlier one must not swallow this one.
            os.write(handle, f"\n{text}".encode())
        finally:
            os.close(handle)
    except OSError:
        return False
    return True


def read(name: str, last: int | None = None) -> list[dict[str, Any]]:
    """The lines of a file of the folder, or those within its last bytes; what can't be read is left out."""
    base = folder()
    if base is None:
        return []
    try:
        with (base / name).open("rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - last) if last is not None else 0
            file.seek(start)
            content = file.read()
    except OSError:
        return []
    found = []
    for line in content.split(b"\n"):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def rename(name: str, other: str) -> bool:
    base = folder()
    if base is None:
        return False
    try:
        (base / name).replace(base / other)
    except OSError:
        return False
    return True


def place_of(path: Path) -> str:
    """The file of the folder that says which ledger was at a path."""
    return f"places/{hashlib.sha256(os.fsencode(path.absolute().resolve())).hexdigest()}"


def keyed(content: str) -> str | None:
    """A digest of this text that means nothing without the folder's key; None where no key can be kept."""
    key = _key()
    return None if key is None else hmac.new(key, content.encode(errors="surrogateescape"), "sha256").hexdigest()


def _key() -> bytes | None:
    if not usable():
        return None
    base = folder()
    assert base is not None
    path, made = base / "key", base / f"key.{secrets.token_hex(8)}"
    try:
        if not path.exists():
            handle = os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
            # Not renamed: of two processes that make a key, the first one's counts.
            try:
                os.link(made, path)
            except FileExistsError:
                pass
            finally:
                made.unlink()
        key = path.read_bytes()
    except OSError:
        return None
    return key if len(key) == _KEY_BYTES else None

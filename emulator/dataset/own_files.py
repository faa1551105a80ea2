"""Which files this user has written: a code that only a key of this user makes, for files that hold more than data.

The watchers of a checkpoint are stored as Python objects, which may run code when they are read. A checkpoint may have
been made by somebody else, so only what this user has stored is read.
"""

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from emulator.base.files import open_to_write, read_bytes

_KEY = "checkpoint.key"
_KEY_BYTES = 32


def own_code(content: bytes) -> str | None:
    """The code of a content, made with the key of this user; None: this user can have no key.

    The key lies in the folder of the user's state, for the user only; the first call makes it.
    """
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "rmqemu"
    try:
        key = _key(folder / _KEY)
    except OSError:
        return None
    return hmac.new(key, content, "blake2b").hexdigest() if len(key) == _KEY_BYTES else None


def is_own(content: bytes, code: object) -> bool:
    """Whether a code is that of this user for a content."""
    expected = own_code(content)
    return expected is not None and isinstance(code, str) and hmac.compare_digest(expected.encode(), code.encode())


def _key(path: Path) -> bytes:
    with suppress(FileNotFoundError):
        return read_bytes(path, _KEY_BYTES)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = open_to_write(path, os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:  # another process was faster
        return read_bytes(path, _KEY_BYTES)
    key = secrets.token_bytes(_KEY_BYTES)
    try:
        os.write(descriptor, key)
    finally:
        os.close(descriptor)
    return key

"""Seals: JSON that carries its own checksum, and checksums of files, so that damage is seen before it is believed."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from emulator.base.files import open_regular

_SEAL = "seal"
_CHECKSUM_BYTES = 16
_PIECE_BYTES = 1024 * 1024


class BrokenSealError(ValueError):
    """A text is not the JSON mapping that was sealed; the text says why in a few words."""


def checksum(content: bytes) -> str:
    """32 hex digits over the content of a file."""
    return running_checksum(content).hexdigest()


def running_checksum(content: bytes = b"") -> blake2b:
    """The same over content that comes in pieces: `update` takes each, `hexdigest` gives the digits."""
    return blake2b(content, digest_size=_CHECKSUM_BYTES)


def checksum_of_file(path: Path) -> str:
    """The same over a regular file of any size.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    running = running_checksum()
    with open_regular(path) as file:
        while piece := file.read(_PIECE_BYTES):
            running.update(piece)
    return running.hexdigest()


def sealed(content: Mapping[str, Any], indent: int | None = None) -> str:
    """A mapping as JSON with its checksum as last key; all ASCII, so that every text can be written."""
    return json.dumps({**content, _SEAL: _seal(content)}, indent=indent)


def unsealed(text: bytes) -> dict[str, Any]:
    """The mapping that was sealed.

    Raises:
        BrokenSealError: the text is no JSON mapping, has no seal, or was changed.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrokenSealError(f"it is not JSON ({error})") from None
    if not isinstance(content, dict):
        raise BrokenSealError("it is not a mapping")
    seal = content.pop(_SEAL, None)
    if seal is None:
        raise BrokenSealError("it has no seal")
    if seal != _seal(content):
        raise BrokenSealError("it was changed after it was written")
    return content


def _seal(content: Mapping[str, Any]) -> str:
    return checksum(json.dumps(content, separators=(",", ":")).encode())

"""The disk of an emulated machine: survives a kill; power loss takes what was not synced."""


class EmulatedDisk:
    """Named files in memory; implements `nodes.host.Disk`."""

    def __init__(self) -> None:
        self._written: dict[str, bytes] = {}
        self._synced: dict[str, bytes] = {}

    def write(self, name: str, content: bytes, *, sync: bool = True) -> None:
        """Replace a file; without `sync` it is safe from a kill only."""
        self._written[name] = content
        if sync:
            self._synced[name] = content

    def read(self, name: str) -> bytes | None:
        """Content of the file, None where there is none."""
        return self._written.get(name)

    def lose_power(self) -> None:
        """Every file falls back to what was synced last."""
        self._written = dict(self._synced)

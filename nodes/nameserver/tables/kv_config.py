"""The key-value configuration of operators; the only table that a nameserver writes to its disk.

Mirrors:
    `org.apache.rocketmq.namesrv.kvconfig.KVConfigManager`.
"""

from collections.abc import Mapping

from nodes.protocol.json_text import from_json, to_json


class KvConfigManager:
    """Namespace -> key -> value."""

    def __init__(self) -> None:
        self._table: dict[str, dict[str, str]] = {}

    def put(self, namespace: str, key: str, value: str | None) -> None:
        """Put an entry; None removes it, and creates the namespace."""
        entries = self._table.setdefault(namespace, {})
        if value is None:
            entries.pop(key, None)
        else:
            entries[key] = value

    def delete(self, namespace: str, key: str) -> None:
        """Remove an entry, not its namespace."""
        self._table.get(namespace, {}).pop(key, None)

    def get(self, namespace: str, key: str) -> str | None:
        """The value of an entry."""
        return self._table.get(namespace, {}).get(key)

    def list_by_namespace(self, namespace: str) -> Mapping[str, str] | None:
        """Key -> value, ordered by key; None for an unknown namespace."""
        entries = self._table.get(namespace)
        return None if entries is None else dict(sorted(entries.items()))

    def encode(self) -> bytes:
        """The file `kvConfig.json`."""
        return to_json({"configTable": self._table}, standard=True).encode()

    def decode(self, content: bytes) -> None:
        """Add the entries of a file.

        Raises:
            ValueError: the file is damaged.
        """
        self._table |= from_json(content.decode()).get("configTable") or {}

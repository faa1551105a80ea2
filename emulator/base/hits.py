"""How often each fault has had an effect."""


class Hits:
    """Counts hits by fault id; a test with a fault that hit nothing has tested nothing."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def count(self, fault_id: str, times: int = 1) -> None:
        """Count a hit: the fault affected a frame, a process, a write or a reading of a clock."""
        self._counts[fault_id] = self._counts.get(fault_id, 0) + times

    def of(self, fault_id: str) -> int:
        """The hits of one fault; 0 for an unknown id."""
        return self._counts.get(fault_id, 0)

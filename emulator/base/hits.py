"""How often each fault has done something."""


class Hits:
    """Counts by fault id; a fault that hit nothing has shown nothing."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def count(self, fault_id: str, times: int = 1) -> None:
        """A fault did something to a frame, a process, a write or a reading of a clock."""
        self._counts[fault_id] = self._counts.get(fault_id, 0) + times

    def of(self, fault_id: str) -> int:
        """How often one fault did something."""
        return self._counts.get(fault_id, 0)

"""How often each fault has done something."""


class Bites:
    """Counts by fault id; a fault that never bit has shown nothing."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def bite(self, fault_id: str, times: int = 1) -> None:
        """A fault did something to a frame, a process, a write or a reading of the clock."""
        self._counts[fault_id] = self._counts.get(fault_id, 0) + times

    def of(self, fault_id: str) -> int:
        """How often one has bitten."""
        return self._counts.get(fault_id, 0)

"""Frames carried by reference: the `sim` mode."""

from emulator.network.endpoint import Endpoint
from emulator.network.hub import Arrival


class MemoryCarrier:
    """Carries commands as they are; they are immutable."""

    def carry(self, arrivals: list[Arrival]) -> list[Arrival]:
        """The same frames, at once."""
        return arrivals

    def listen(self, ip: str, port: int) -> object:
        """Nothing to open."""
        return (ip, port)

    def close_listener(self, listener: object) -> None:
        """Nothing to close."""

    def open(self, client: Endpoint, server: Endpoint, listener: object) -> None:
        """Nothing to connect."""

    def close(self, endpoint: Endpoint) -> None:
        """Nothing to release."""

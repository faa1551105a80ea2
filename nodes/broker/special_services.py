"""What only one member of a broker group may run."""

from typing import Protocol


class SpecialService(Protocol):
    """One of them."""

    def change(self, *, running: bool) -> None:
        """Start or stop; nothing where it is so already."""

    @property
    def is_running(self) -> bool:
        """Whether it runs."""


class SpecialServices:
    """All of them; they begin and end together.

    Mirrors:
        `org.apache.rocketmq.broker.BrokerController#changeSpecialServiceStatus`, `#isSpecialServiceRunning`.
    """

    def __init__(self, *services: SpecialService) -> None:
        self._services = services

    def change(self, *, running: bool) -> None:
        """Start or stop all of them."""
        for service in self._services:
            service.change(running=running)

    @property
    def is_running(self) -> bool:
        """Whether all of them run."""
        return all(service.is_running for service in self._services)

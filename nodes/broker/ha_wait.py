"""A broker that comes online waits until its HA link stands: the clock of that wait."""

from collections.abc import Iterable

import attrs

from nodes.broker.ha_frames import HAConnectionState

CONNECTION_ESTABLISH_TIMEOUT_MS = 10_000
STATE_CHECK_PERIOD_MS = 1_000


@attrs.define
class HaWait:
    """One request to be told when a link to a host is in TRANSFER.

    Mirrors:
        `org.apache.rocketmq.store.ha.HAConnectionStateNotificationService`.
    """

    remote_ip: str
    """Only a master compares it, and nothing but it: neither port nor identity."""
    last_check_ms: int
    """When there was last something to wait for; at first, when the request was made."""
    result: bool | None = None
    """None: still waiting."""

    def check_client(self, state: HAConnectionState, now_ms: int) -> None:
        """A slave looks at its client; to whom that is connected does not matter."""
        if state is HAConnectionState.TRANSFER:
            self.result = True
        elif state is HAConnectionState.READY:
            self._give_up_when_late(now_ms)
        else:
            self.last_check_ms = now_ms

    def check_connections(self, remote_ips: Iterable[str], now_ms: int) -> None:
        """A master looks at its connections, which are in TRANSFER from birth to death."""
        if self.remote_ip in remote_ips:
            self.result = True
        else:
            self._give_up_when_late(now_ms)

    def _give_up_when_late(self, now_ms: int) -> None:
        if now_ms - self.last_check_ms > CONNECTION_ESTABLISH_TIMEOUT_MS:
            self.result = False

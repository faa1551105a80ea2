"""When a thread that revives looks at its queue, as long as it finds nothing to do there.

A round is a pause, a scan that looks every 100 ms until it has slept 41 times, and a rest that grows from round to
round. A record that changes nothing makes the scan begin to count its sleeps again. So the next look follows from
arithmetic, and an idle queue costs neither a task nor a timer.

Mirrors:
    `org.apache.rocketmq.broker.processor.PopReviveService#run`, `#consumeReviveMessage`.
"""

from nodes.units import NS_PER_MS

_LOOK_NS = 100 * NS_PER_MS
_SLEEPS = 41


class ReviveCadence:
    """The rounds of one queue.

    Args:
        began_ns: when the thread was started.
        interval_ms: of a pause, and the unit of a rest.
        max_slow: the longest rest in these units.
        scan_time_ms: a scan that lasts longer ends with the next record.
        running: whether the thread may revive; else it only pauses.
    """

    def __init__(self, began_ns: int, interval_ms: int, max_slow: int, scan_time_ms: int, *, running: bool) -> None:
        self._began_ns = began_ns
        """When the running round began, with its pause."""
        self._interval_ns = interval_ms * NS_PER_MS
        self._max_slow = max_slow
        self._scan_ns = scan_time_ms * NS_PER_MS
        self._running = running
        self._slow = 1
        self._counted_from_ns: int | None = None
        """The look from which the scan of this round counts its sleeps, if that is not its first one."""

    def next_look_ns(self, now_ns: int) -> int:
        """The first look from an instant on, or the first end of a pause while the thread may not revive."""
        self._move_to(now_ns)
        first_ns = self._first_look_ns
        if now_ns <= first_ns:
            return first_ns
        return first_ns + -(-(now_ns - first_ns) // _LOOK_NS) * _LOOK_NS

    def on_record(self, now_ns: int) -> None:
        """A record has come that changes nothing but the count of sleeps."""
        if not self._running:
            return
        look_ns = self.next_look_ns(now_ns)
        if look_ns - self._first_look_ns > self._scan_ns:
            self._end_round(look_ns)
        elif look_ns > self._first_look_ns:
            self._counted_from_ns = look_ns

    def pass_ended(self, now_ns: int, *, found: bool) -> None:
        """A pass that was carried out is over.

        Args:
            found: whether there was any check point: then there is no rest.
        """
        self._counted_from_ns = None
        if found:
            self._began_ns, self._slow = now_ns, 1
        else:
            self._rest(now_ns)

    def change(self, now_ns: int, *, running: bool) -> None:
        """The thread may revive from now on, or may not; it notices with its next look."""
        look_ns = self.next_look_ns(now_ns)
        self._running, self._counted_from_ns = running, None
        self._began_ns = look_ns - self._interval_ns if running else look_ns

    def broken_off(self, now_ns: int) -> None:
        """A pass was broken off, because the thread may not revive any more."""
        self._running, self._counted_from_ns, self._began_ns = False, None, now_ns

    @property
    def _first_look_ns(self) -> int:
        return self._began_ns + self._interval_ns

    def _move_to(self, now_ns: int) -> None:
        """Go on to the round in which the next look from an instant on is."""
        if not self._running:
            self._began_ns += max(0, now_ns - self._began_ns - 1) // self._interval_ns * self._interval_ns
            return
        while now_ns > (last_ns := (self._counted_from_ns or self._first_look_ns) + (_SLEEPS - 1) * _LOOK_NS):
            self._end_round(last_ns + _LOOK_NS)
            if self._slow == self._max_slow and self._counted_from_ns is None:
                round_ns = (1 + self._slow) * self._interval_ns + _SLEEPS * _LOOK_NS
                self._began_ns += max(0, now_ns - self._began_ns - round_ns) // round_ns * round_ns

    def _end_round(self, now_ns: int) -> None:
        self._counted_from_ns = None
        self._rest(now_ns)

    def _rest(self, now_ns: int) -> None:
        self._began_ns = now_ns + self._slow * self._interval_ns
        self._slow = min(self._slow + 1, self._max_slow)

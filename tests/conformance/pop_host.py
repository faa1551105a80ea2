"""A host whose time a case pretends, for flows that a case carries out one after the other."""

import contextlib

from conformance.revive_log import ORIGIN_MS

BACKGROUND = ("PopReviveService_", "PopBufferMergeService", "PopLongPollingService", "PopConsumer")
"""Tasks that a case carries out itself."""


class PretendedHost:
    """Its sleeps move the pretended time; what it starts runs at once.

    Args:
        at_ms: returns the time of the running step.
        on_slept: called whenever time has moved.
        draw: returns the next random number.
    """

    def __init__(self, ip, at_ms, on_slept, draw):
        self.ip = ip
        self.clock = self.disk = self.log = self
        self._at_ms = at_ms
        self._on_slept = on_slept
        self._draw = draw
        self.slept_ms = 0

    # The clock

    def now_ms(self):
        return ORIGIN_MS + self._at_ms() + self.slept_ms

    def monotonic_ns(self):
        return (self._at_ms() + self.slept_ms) * 1_000_000

    async def sleep_ms(self, duration_ms):
        await self.sleep_until_ns(self.monotonic_ns() + int(duration_ms * 1_000_000))

    async def sleep_until_ns(self, instant_ns):
        while self.monotonic_ns() < instant_ns:
            self.slept_ms += 1
            self._on_slept()

    async def sleep_or_call_ms(self, duration_ms, give_waker):
        woken = []
        give_waker(lambda: woken.append(True))
        end_ns = self.monotonic_ns() + int(duration_ms * 1_000_000)
        while self.monotonic_ns() < end_ns and not woken:
            self.slept_ms += 1
            self._on_slept()

    def timeout_ms(self, _duration_ms):
        return contextlib.nullcontext()

    def call_later_ms(self, _delay_ms, _callback):
        return self

    def cancel(self):
        pass

    def start_soon(self, flow, *arguments, name):
        if not name.startswith(BACKGROUND):
            run_at_once(flow(*arguments))

    # The rest

    def rng(self, _name):
        return self

    def randrange(self, _stop):
        return self._draw()

    def shuffle(self, _items):
        """Nothing that a case compares follows from this."""

    def record(self, _event):
        pass

    def begin_cause(self, _name):
        pass

    def warning(self, event, **fields):
        if event != "update consumer offset less than store":
            raise AssertionError(f"{event}: {fields}")

    def map(self, _name):
        return bytearray()

    def read(self, _name):
        return None

    def write(self, _name, _content):
        pass

    def flush(self, _name):
        pass

    def busy_ms(self):
        return 0


def run_at_once(flow):
    """Run a flow that never waits."""
    try:
        flow.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("the flow waits")

"""All tables of one broker about messages that wait."""

from nodes.broker.tables.timer.delay_offsets import DelayOffsets
from nodes.broker.tables.timer.timer_store import TimerStore
from nodes.protocol.model import DataVersion
from nodes.values import frozen


@frozen(eq=False)
class TimerTables:
    """How far a broker has come with delayed messages, and with timed ones."""

    delay_offsets: DelayOffsets
    wheel: TimerStore | None
    """None: the timer wheel is disabled."""

    @property
    def version(self) -> DataVersion | None:
        """The version of the timer's check point; None: there is no timer."""
        return None if self.wheel is None else self.wheel.progress.check_point.data_version

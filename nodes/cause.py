"""The cause of what the running task does: the trace row that led to it.

A handler runs with the cause of its frame, a timer tick with a row of its own.
The emulator reads the cause whenever something is recorded or sent.
"""

from contextvars import ContextVar

NO_CAUSE = 0
"""The cause of a task that no row of the trace has led to."""

cause: ContextVar[int] = ContextVar("cause", default=NO_CAUSE)
"""seq of the trace row."""

"""Why this task does what it does right now: the trace row that led here.

A handler runs with the cause of the frame it handles, a timer tick with a row
of its own. The emulator reads it whenever something is recorded or sent.
"""

from contextvars import ContextVar

NO_CAUSE = 0
"""The cause of what nothing in the trace has led to."""

cause: ContextVar[int] = ContextVar("cause", default=NO_CAUSE)
"""seq of the trace row that led to what runs now."""

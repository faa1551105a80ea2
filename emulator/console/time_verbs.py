"""Verbs about time, and the times in them: `30s`, `500ms`, `2m`, and `+30s` from now."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from emulator.base.text import nearest
from emulator.console.state_verbs import shared_subjects
from emulator.console.verb import WORDS_MAX, Lines, Verb, VerbError, Words, execute, find_verb
from emulator.machine.power import PowerState
from emulator.trace.batches import Row
from emulator.trace.schema import TraceTable
from faults.link import ProcessStage
from faults.words import WordsError, duration_ms, is_whole
from nodes.fields import shown
from nodes.secret import masked
from nodes.units import NS_PER_MS

if TYPE_CHECKING:
    from emulator.console.session import Session


def span_ms(text: str) -> int:
    """Parse a duration, in ms; a number without unit is seconds.

    Raises:
        VerbError: the text is not a duration.
    """
    try:
        return duration_ms(text)
    except WordsError as error:
        raise VerbError(str(error)) from None


def instant_ms(text: str, now_ms: int) -> int:
    """Parse an instant, in ms since the run began; with a plus, counted from now.

    Raises:
        VerbError: the text is not an instant, or the instant has passed.
    """
    if text.startswith("+"):
        return now_ms + span_ms(text[1:])
    at_ms = span_ms(text)
    if at_ms < now_ms:
        raise VerbError(f"expected an instant to come: {text} was {(now_ms - at_ms) / 1_000:.3f} s ago")
    return at_ms


Condition = Callable[[], bool]
_READY = "ready"
_STATES = (_READY, ProcessStage.STARTING.value, *(item.value for item in PowerState if item is not PowerState.RUNNING))
_OWNED = {"nobody": 0, "somebody": 1}
_SEVERAL = "several"


def condition(session: "Session", words: Words) -> Condition:
    """Parse a condition of `until`.

    Raises:
        VerbError: the words are not a condition.
    """
    head, rest = words[0], " ".join(words[1:])
    if head in ("agree", "differ"):
        return _agreement(session, rest or None, wanted=head == "agree")
    if head.count("/") == 2:
        return _ownership(session, head, rest)
    host = session.host(head)
    if rest not in _STATES:
        raise VerbError(nearest("state", rest, _STATES))
    if rest in (_READY, ProcessStage.STARTING.value):
        is_ready = rest == _READY
        return lambda: (
            host.power_state is PowerState.RUNNING
            and host.process is not None
            and host.process.is_in(ProcessStage.STARTING) != is_ready
        )
    return lambda: host.power_state.value == rest


def _agreement(session: "Session", subject: str | None, *, wanted: bool) -> Condition:
    def holds() -> bool:
        keys = [key for key in shared_subjects(session) if subject in (None, key[1])]
        # Nodes that have not started neither agree nor differ.
        has_begun = bool(keys) and (not wanted or session.cluster.started.is_set())
        return has_begun and wanted != any(session.state.beliefs.differs(*key) for key in keys)

    return holds


def _ownership(session: "Session", queue: str, node: str) -> Condition:
    owners = session.state.owners
    if not node:
        raise VerbError("expected a node, no one, somebody or several after the queue")
    if node in _OWNED:
        return lambda: len(owners.of(queue)) == _OWNED[node]
    if node == _SEVERAL:
        return lambda: len(owners.of(queue)) > 1
    name = session.node(node)
    return lambda: owners.of(queue) == (name,)


_PATIENCE_MS = 600_000
_STEPS_MAX = 1_000


async def _at(session: "Session", words: Words) -> Lines:
    at_ms = instant_ms(words[0], session.now_ms)
    line = masked(" ".join(words[1:]))
    find_verb(words[1:], session.verbs)  # a mistake is reported now, not at that time
    session.cluster.world.nursery.start_soon(_then, session, at_ms, words[1:], name=f"at {at_ms} ms: {line}")
    return (f"at {at_ms / 1_000:.3f} s: {line}",)


async def _then(session: "Session", at_ms: int, words: Words) -> None:
    await session.cluster.world.sleep_until_ns(at_ms * NS_PER_MS)
    try:
        text = await execute(words, session, session.verbs)
    except VerbError as error:
        text = (f"{shown(masked(' '.join(words)))}: {error}",)
    for line in text:
        session.print_line(line)


async def _run_for(session: "Session", words: Words) -> Lines:
    await session.pass_ms(span_ms(words[0]))
    return (f"{session.now_ms / 1_000:.3f} s",)


async def _step(session: "Session", words: Words) -> Lines:
    """Wait for the next events, and return their lines."""
    word = words[0] if words else "1"
    if not is_whole(word) or not 1 <= int(word) <= _STEPS_MAX:
        raise VerbError(f"expected a number of events from 1 to {_STEPS_MAX}, not {shown(word)}")
    seen: list[str] = []
    enough = trio.Event()

    def note(table: TraceTable, row: Row) -> None:
        line = session.lines.line(table, row)
        if line is not None and len(seen) < int(word):
            seen.append(line)
            if len(seen) == int(word):
                enough.set()

    listeners = session.cluster.world.recorder.listeners
    listeners.append(note)
    try:
        await enough.wait()
    finally:
        listeners.remove(note)
    return tuple(seen)


async def _until(session: "Session", words: Words) -> Lines:
    patience_ms = _PATIENCE_MS
    if len(words) > 2 and words[-2] == "within":
        words, patience_ms = words[:-2], span_ms(words[-1])
    holds = condition(session, words)
    began_ms = session.now_ms
    if not await _comes_true(session, holds, began_ms + patience_ms):
        raise VerbError(f"not so within {patience_ms / 1_000:g} s: {shown(' '.join(words))}")
    return (f"{session.now_ms / 1_000:.3f} s, after {(session.now_ms - began_ms) / 1_000:.3f} s: {' '.join(words)}",)


async def _comes_true(session: "Session", holds: Condition, until_ms: int) -> bool:
    world = session.cluster.world
    changed = trio.Event()

    def wake() -> None:
        changed.set()

    def note(_table: TraceTable, _row: Row) -> None:
        changed.set()

    world.recorder.listeners.append(note)
    alarm = world.timeline.call_at(until_ms * NS_PER_MS, wake)
    try:
        while True:
            await world.clock.idle()  # check the condition after everything of the instant has happened
            if holds():
                return True
            if session.now_ms >= until_ms:
                return False
            await changed.wait()
            changed = trio.Event()
    finally:
        alarm.cancel()
        world.recorder.listeners.remove(note)


TIMING = (
    Verb("at", "T VERB...", "execute a verb at 90s of the run, or +30s from now", _at, 2, WORDS_MAX),
    Verb("run-for", "T", "let time pass", _run_for, 1, 1),
    Verb("step", "[N]", "let time pass until the next event, or the next N", _step, 0, 1),
    Verb(
        "until",
        "CONDITION [within T]",
        "let time pass until agree, differ, NODE STATE, or TOPIC/BROKER/QUEUE NODE|nobody|somebody|several",
        _until,
        1,
        WORDS_MAX,
    ),
)

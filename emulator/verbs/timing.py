"""Verbs that let time pass, and those that say when another one is to be done."""

import trio

from emulator.trace.recorder import Row
from emulator.trace.schema import Table
from emulator.verbs.conditions import Condition, condition
from emulator.verbs.desk import Desk
from emulator.verbs.instants import instant_ms, span_ms
from emulator.verbs.verb import WORDS_MOST, Lines, Verb, VerbError, Words, do, understood

_NS_PER_MS = 1_000_000
_PATIENCE_MS = 600_000
_STEPS_MOST = 1_000


async def _at(desk: Desk, words: Words) -> Lines:
    at_ms = instant_ms(words[0], desk.now_ms)
    line = " ".join(words[1:])
    understood(words[1:], desk.verbs)  # a mistake is told now, not then
    desk.cluster.world.nursery.start_soon(_then, desk, at_ms, words[1:], name=f"at {at_ms} ms: {line}")
    return (f"at {at_ms / 1_000:.3f} s: {line}",)


async def _then(desk: Desk, at_ms: int, words: Words) -> None:
    await desk.cluster.world.sleep_until_ns(at_ms * _NS_PER_MS)
    try:
        told = await do(words, desk, desk.verbs)
    except VerbError as error:
        told = (f"{' '.join(words)}: {error}",)
    for line in told:
        desk.tell(line)


async def _run_for(desk: Desk, words: Words) -> Lines:
    await desk.pass_ms(span_ms(words[0]))
    return (f"{desk.now_ms / 1_000:.3f} s",)


async def _step(desk: Desk, words: Words) -> Lines:
    """The next events, as they are told to whoever watches."""
    word = words[0] if words else "1"
    if not word.isdecimal() or not 1 <= int(word) <= _STEPS_MOST:
        raise VerbError(f"expected a number of events from 1 to {_STEPS_MOST}, not {word}")
    seen: list[str] = []
    enough = trio.Event()

    def note(table: Table, row: Row) -> None:
        line = desk.lines.line(table, row)
        if line is not None and len(seen) < int(word):
            seen.append(line)
            if len(seen) == int(word):
                enough.set()

    listeners = desk.cluster.world.recorder.listeners
    listeners.append(note)
    try:
        await enough.wait()
    finally:
        listeners.remove(note)
    return tuple(seen)


async def _until(desk: Desk, words: Words) -> Lines:
    patience_ms = _PATIENCE_MS
    if len(words) > 2 and words[-2] == "within":
        words, patience_ms = words[:-2], span_ms(words[-1])
    holds = condition(desk, words)
    began_ms = desk.now_ms
    if not await _comes_true(desk, holds, began_ms + patience_ms):
        raise VerbError(f"not so within {patience_ms / 1_000:g} s: {' '.join(words)}")
    return (f"{desk.now_ms / 1_000:.3f} s, after {(desk.now_ms - began_ms) / 1_000:.3f} s: {' '.join(words)}",)


async def _comes_true(desk: Desk, holds: Condition, until_ms: int) -> bool:
    world = desk.cluster.world
    changed = trio.Event()

    def wake() -> None:
        changed.set()

    def note(_table: Table, _row: Row) -> None:
        changed.set()

    world.recorder.listeners.append(note)
    alarm = world.timeline.call_at(until_ms * _NS_PER_MS, wake)
    try:
        while True:
            await world.clock.idle()  # what happens at one instant is looked at when all of it has happened
            if holds():
                return True
            if desk.now_ms >= until_ms:
                return False
            await changed.wait()
            changed = trio.Event()
    finally:
        alarm.cancel()
        world.recorder.listeners.remove(note)


TIMING = (
    Verb("at", "T VERB...", "do a verb at 90s of the run, or +30s from now", _at, 2, WORDS_MOST),
    Verb("run-for", "T", "let time pass", _run_for, 1, 1),
    Verb("step", "[N]", "let time pass until the next event, or the next N", _step, 0, 1),
    Verb(
        "until",
        "CONDITION [within T]",
        "let time pass until agree, differ, NODE STATE, or TOPIC/BROKER/QUEUE NODE|nobody|somebody|several",
        _until,
        1,
        WORDS_MOST,
    ),
)

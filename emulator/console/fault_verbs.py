"""Verbs that begin faults, and verbs that end them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from emulator.console.time_verbs import span_ms
from emulator.console.verb import WORDS_MAX, Lines, Verb, VerbError, Words
from faults.catalogue import WORDINGS, fault_from_words
from faults.fault import Fault
from faults.process import DOWN, Restart, Suspend
from faults.reconfigure import Reconfigure, options_text
from faults.words import Wording, WordsError
from nodes.units import NS_PER_MS

if TYPE_CHECKING:
    from emulator.console.session import Session

_FOR = "for"


class _Break:
    """A verb that begins a fault."""

    def __init__(self, wording: Wording) -> None:
        self._verb = wording.verb

    async def __call__(self, session: "Session", words: Words) -> Lines:
        words, lasts_ms = _lasting(words)
        try:
            fault = fault_from_words(self._verb, words)
        except WordsError as error:
            raise VerbError(str(error)) from None
        timed = await session.begin(fault)
        begun = f"{timed.id}: {timed.fault.describe()}"
        if lasts_ms is None:
            return (begun,)
        end_ms = session.now_ms + lasts_ms
        session.cluster.world.nursery.start_soon(_end, session, timed.id, end_ms, name=f"end of {timed.id}")
        return (f"{begun}, until {end_ms / 1_000:.3f} s",)


def _lasting(words: Words) -> tuple[Words, int | None]:
    """(words without `for SPAN` at their end, the span in ms; None: without it a fault lasts until it is ended)."""
    *rest, word, span = ("", "", *words)
    return (rest[2:], span_ms(span)) if word == _FOR else (words, None)


async def _end(session: "Session", fault_id: str, at_ms: int) -> None:
    await session.cluster.world.sleep_until_ns(at_ms * NS_PER_MS)
    if fault_id in session.operator.active:  # nobody has ended it before
        for line in await _heal_all(session, (fault_id,)):
            session.print_line(line)


async def _restart(session: "Session", words: Words) -> Lines:
    try:
        fault = fault_from_words(Reconfigure.wording.verb, words)
    except WordsError as error:
        raise VerbError(str(error)) from None
    options = fault.parameters()["options"]
    timed = await (session.begin(fault) if options else session.begin(Restart(fault.scope), ends_at_once=True))
    if timed.id in session.operator.active:  # another verb may have ended it while the node shut down
        await session.heal(timed.id)
    answer = f" with {options_text(options)}" if options else ""
    return (f"restarted {timed.fault.scope.describe()}{answer}",)


async def _resume(session: "Session", words: Words) -> Lines:
    return await _undo(session, words[0], (Suspend,), "is not suspended: there is nothing to resume")


async def _start(session: "Session", words: Words) -> Lines:
    return await _undo(session, words[0], DOWN, "runs: there is nothing to start")


async def _undo(session: "Session", node: str, kinds: tuple[type[Fault], ...], otherwise: str) -> Lines:
    session.require_known(node)
    active = session.active_on(node, kinds)
    if not active:
        raise VerbError(f"{node} {otherwise}")
    return await _heal_all(session, [timed.id for timed in active])


async def _heal(session: "Session", words: Words) -> Lines:
    return await _heal_all(session, tuple(session.operator.active) if words[0] == "all" else words)


async def _heal_all(session: "Session", ids: Words) -> Lines:
    for fault_id in ids:
        session.require_active(fault_id)
    healed = [await session.heal(fault_id) for fault_id in ids]
    return tuple(f"healed {timed.id}: {timed.fault.describe()}" for timed in healed) or ("nothing is broken",)


_ACTS: "Mapping[str, Callable[[Session, Words], Awaitable[Lines]]]" = {Reconfigure.wording.verb: _restart}
"""Verb -> what it does, of verbs whose fault ends at once."""
BREAKING = (
    *(
        Verb(item.verb, item.usage, item.summary, _ACTS.get(item.verb, _Break(item)), item.minimum, WORDS_MAX)
        for item in WORDINGS.values()
    ),
    Verb("resume", "NODE", "let a suspended process run on", _resume, 1, 1),
    Verb("start", "NODE", "begin a new process with what the disk has", _start, 1, 1),
    Verb("heal", "FAULT...|all", "end a fault, or all of them", _heal, 1, WORDS_MAX),
)

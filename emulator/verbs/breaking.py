"""Verbs that break something, and those that heal it."""

from emulator.fault_words import WORDS, FaultWords, WordsError
from emulator.verbs.desk import Desk
from emulator.verbs.verb import WORDS_MOST, Lines, Verb, VerbError, Words
from faults.fault import Fault
from faults.kind import FaultKind
from faults.process import Restart
from faults.scope import NodeScope
from faults.whom import FaultError

_DOWN = (FaultKind.KILL, FaultKind.POWER_OFF, FaultKind.RESTART)


class _Break:
    """A verb that begins a fault."""

    def __init__(self, said: FaultWords) -> None:
        self._said = said

    async def __call__(self, desk: Desk, words: Words) -> Lines:
        try:
            fault = self._said.fault(words)
        except WordsError as error:
            raise VerbError(str(error)) from None
        return await _begin(desk, fault)


async def _restart(desk: Desk, words: Words) -> Lines:
    try:
        timed = await desk.begin(Restart(NodeScope(" ".join(words))))
    except FaultError as error:
        raise VerbError(error.expected) from None
    await desk.heal(timed.id)
    return (f"restarted {timed.fault.scope.describe()}",)


async def _resume(desk: Desk, words: Words) -> Lines:
    return await _undo(desk, words[0], (FaultKind.SUSPEND,), "is not suspended: there is nothing to resume")


async def _start(desk: Desk, words: Words) -> Lines:
    return await _undo(desk, words[0], _DOWN, "runs: there is nothing to start")


async def _undo(desk: Desk, node: str, kinds: tuple[FaultKind, ...], otherwise: str) -> Lines:
    desk.expect_known(node)
    active = desk.active_on(node, kinds)
    if not active:
        raise VerbError(f"{node} {otherwise}")
    return await _heal_all(desk, [timed.id for timed in active])


async def _heal(desk: Desk, words: Words) -> Lines:
    return await _heal_all(desk, tuple(desk.operator.active) if words[0] == "all" else words)


async def _heal_all(desk: Desk, ids: Words) -> Lines:
    for fault_id in ids:
        desk.expect_active(fault_id)
    healed = [await desk.heal(fault_id) for fault_id in ids]
    return tuple(f"healed {timed.id}: {timed.fault.describe()}" for timed in healed) or ("nothing is broken",)


async def _begin(desk: Desk, fault: Fault) -> Lines:
    timed = await desk.begin(fault)
    return (f"{timed.id}: {timed.fault.describe()}",)


BREAKING = (
    *(Verb(said.name, said.usage, said.summary, _Break(said), said.least, WORDS_MOST) for said in WORDS.values()),
    Verb("restart", "NODES", "end a process in good order, and begin a new one", _restart, 1, WORDS_MOST),
    Verb("resume", "NODE", "let a suspended process run on", _resume, 1, 1),
    Verb("start", "NODE", "begin a new process with what the disk has", _start, 1, 1),
    Verb("heal", "FAULT...|all", "end a fault, or all of them", _heal, 1, WORDS_MOST),
)

"""Verbs that break something, and those that heal it."""

from emulator.host import PowerState
from emulator.verbs.desk import Desk, link_scope
from emulator.verbs.verb import Lines, Verb, VerbError, Words
from faults.kind import FaultKind
from faults.link import Cut, Delay, Loss
from faults.plan import Fault
from faults.process import Kill, PowerOff, ProcessFault, Restart, Suspend
from faults.scope import FaultError, NodeScope

_ONE_WAY = "one-way"
_EVERYBODY = ("*", "*")


async def _cut(desk: Desk, words: Words) -> Lines:
    pair, one_way = _pair(words)
    return await _begin(desk, Cut(link_scope(desk, *pair, one_way=one_way)))


async def _loss(desk: Desk, words: Words) -> Lines:
    percent, (pair, one_way) = _number("percent", words[0]), _pair(words[1:])
    return await _begin(desk, _made(Loss, link_scope(desk, *pair, one_way=one_way), percent))


async def _delay(desk: Desk, words: Words) -> Lines:
    delay_ms, rest = _number("milliseconds", words[0]), list(words[1:])
    jitter_ms = 0
    if len(rest) >= 2 and rest[-2] == "jitter":
        jitter_ms, rest = _number("milliseconds", rest[-1]), rest[:-2]
    pair, one_way = _pair(rest)
    return await _begin(desk, _made(Delay, link_scope(desk, *pair, one_way=one_way), delay_ms, jitter_ms))


class _Process:
    """A verb that does something to one process, if it is in a state in which that makes sense."""

    def __init__(self, kind: type[ProcessFault], states: tuple[PowerState, ...]) -> None:
        self._kind = kind
        self._states = states

    async def __call__(self, desk: Desk, words: Words) -> Lines:
        host = desk.host(words[0])
        fault = self._kind(NodeScope(host.name))
        desk.expect_free(fault)
        if host.power_state not in self._states:
            raise VerbError(f"{host.name} is {host.power_state.value}: there is nothing to {fault.kind.value}")
        return await _begin(desk, fault)


async def _resume(desk: Desk, words: Words) -> Lines:
    return await _undo(desk, words[0], (FaultKind.SUSPEND,), "is not suspended: there is nothing to resume")


async def _start(desk: Desk, words: Words) -> Lines:
    down = (FaultKind.KILL, FaultKind.POWER_OFF, FaultKind.RESTART)
    return await _undo(desk, words[0], down, "runs: there is nothing to start")


async def _undo(desk: Desk, node: str, kinds: tuple[FaultKind, ...], otherwise: str) -> Lines:
    name = desk.host(node).name
    active = next((timed for kind in kinds if (timed := desk.active_on(name, kind)) is not None), None)
    if active is None:
        raise VerbError(f"{name} {otherwise}")
    return await _heal(desk, [active.id])


async def _heal(desk: Desk, words: Words) -> Lines:
    ids = tuple(desk.operator.active) if words[0] == "all" else (words[0],)
    healed = [await desk.heal(fault_id) for fault_id in ids]
    return tuple(f"healed {timed.id}: {timed.fault.describe()}" for timed in healed) or ("nothing is broken",)


async def _begin(desk: Desk, fault: Fault) -> Lines:
    timed = await desk.begin(fault)
    return (f"{timed.id}: {fault.describe()}",)


def _made(kind: type[Loss] | type[Delay], *values: object) -> Fault:
    try:
        return kind(*values)  # type: ignore[arg-type]
    except FaultError as error:
        raise VerbError(f"{error.field}: {error.expected}") from None


def _pair(words: Words) -> tuple[tuple[str, str], bool]:
    """The two ends, and whether only one direction is meant; no ends are all links."""
    one_way = _ONE_WAY in words
    ends = [word for word in words if word != _ONE_WAY]
    if len(ends) not in (0, 2):
        raise VerbError("expected two nodes, or none for all links")
    return (ends[0], ends[1]) if ends else _EVERYBODY, one_way


def _number(what: str, word: str) -> int:
    if not word.isdecimal():
        raise VerbError(f"expected a whole number of {what}, not {word}")
    return int(word)


_RUNS = (PowerState.RUNNING,)
_LIVES = (PowerState.RUNNING, PowerState.SUSPENDED)

BREAKING = (
    Verb("cut", "A B [one-way]", "let no frame pass between two nodes, what is on its way included", _cut, 2, 3),
    Verb("loss", "PERCENT [A B] [one-way]", "let frames vanish with a probability", _loss, 1, 4),
    Verb("delay", "MS [A B] [one-way] [jitter MS]", "let frames take longer", _delay, 1, 6),
    Verb("suspend", "NODE", "stop a process as SIGSTOP does; connections stay open", _Process(Suspend, _RUNS), 1, 1),
    Verb("kill", "NODE", "end a process as SIGKILL does; its connections are closed", _Process(Kill, _LIVES), 1, 1),
    Verb("stop", "NODE", "end a process as SIGTERM does, in good order", _Process(Restart, _RUNS), 1, 1),
    Verb("power-off", "NODE", "take the power; what was not synced is lost", _Process(PowerOff, _LIVES), 1, 1),
    Verb("resume", "NODE", "let a suspended process run on", _resume, 1, 1),
    Verb("start", "NODE", "begin a new process with what the disk has", _start, 1, 1),
    Verb("heal", "FAULT|all", "end a fault, or all of them", _heal, 1, 1),
)

"""Sequences of steps: what several guests, an operator and a network do to a cluster, one after the other."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from random import Random

import attrs
import orjson

from emulator.shrinking.ddmin import minimised
from fuzz.requests import FRAMINGS
from support.verb_lines import VERB_LINES

GUESTS = 10
STEPS = 80
NODES = ("good", "broker-a", "broker-b", "guarded", "ns-1", "controller-1")
"""Nodes that guests dial. Verbs hit broker-b and its links only: a client that behaves well uses `good`."""
HEALING = ("heal all", "heal all", "heal all", "start broker-b", "resume broker-b", "status", "nodes", "rates", "lag g")


class Act(StrEnum):
    """What a step does."""

    DIAL = "dial"
    """The guest connects to a node; if it is connected already it leaves the old connection first."""
    FRAMES = "frames"
    """It sends random frames, most of them odd."""
    SEND = "send"
    """It sends messages without waiting for their answers."""
    BEAT = "beat"
    """It sends heartbeats of two thousand groups, which take more CPU than its budget allows."""
    HOLD = "hold"
    """It sends pulls that the broker holds."""
    DEAF = "deaf"
    """It asks for long answers and does not read any more."""
    HALF = "half"
    """It sends half a frame of a megabyte."""
    FIN = "fin"
    """It leaves."""
    RST = "rst"
    """It leaves as a killed program does whose answers were not read."""
    CROWD = "crowd"
    """Many members of one group join over connections of their own."""
    EMPTY = "empty"
    """All of the crowd leave at once."""
    VERB = "verb"
    """An operator runs a verb."""
    PAUSE = "pause"
    """Some milliseconds pass."""


_WEIGHTS = {
    Act.DIAL: 6,
    Act.FRAMES: 40,
    Act.SEND: 6,
    Act.BEAT: 4,
    Act.HOLD: 4,
    Act.DEAF: 2,
    Act.HALF: 2,
    Act.FIN: 3,
    Act.RST: 4,
    Act.CROWD: 1,
    Act.EMPTY: 1,
    Act.VERB: 8,
    Act.PAUSE: 4,
}
_ALONE = (Act.VERB, Act.CROWD, Act.EMPTY, Act.PAUSE)
"""Acts of no one among the guests."""
_COUNTS = {Act.FRAMES: 48, Act.SEND: 100, Act.BEAT: 8, Act.HOLD: 50, Act.DEAF: 40, Act.CROWD: 60, Act.PAUSE: 50}


@attrs.frozen
class Step:
    """One step."""

    act: Act
    guest: int = 0
    count: int = 0
    word: str = ""
    """Node to dial, with its framing; or the line of a verb."""
    seed: int = 0
    """Of the frames."""


def random_sequence(chance: Random, steps: int = STEPS) -> tuple[Step, ...]:
    """Steps of several guests, and verbs in between; every guest dials before anything else."""
    dials = [_step(Act.DIAL, guest, chance) for guest in range(GUESTS)]
    acts = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()), k=steps)
    return (*dials, *(_step(act, 0 if act in _ALONE else chance.randrange(GUESTS), chance) for act in acts))


def _step(act: Act, guest: int, chance: Random) -> Step:
    count = chance.randint(1, _COUNTS[act]) if act in _COUNTS else 0
    match act:
        case Act.DIAL:
            return Step(act, guest, word=f"{chance.choice(NODES)} {chance.randrange(len(FRAMINGS))}")
        case Act.VERB:
            return Step(act, word=_verb_line(chance))
        case Act.FRAMES:
            return Step(act, guest, count, seed=chance.randrange(2**31))
        case _:
            return Step(act, guest, count)


def _verb_line(chance: Random) -> str:
    return chance.choice((*VERB_LINES.values(), *HEALING))


def save(path: Path, sequence: Sequence[Step]) -> None:
    """Write a sequence, one step a line."""
    path.write_bytes(b"".join(orjson.dumps(attrs.asdict(step)) + b"\n" for step in sequence))


def load(path: Path) -> tuple[Step, ...]:
    """Read a sequence."""
    read = (orjson.loads(line) for line in path.read_bytes().splitlines())
    return tuple(Step(**{**values, "act": Act(values["act"])}) for values in read)


def shortened(sequence: Sequence[Step], fails: Callable[[Sequence[Step]], bool]) -> tuple[Step, ...]:
    """The fewest steps with which it still fails; the whole sequence if it does not fail again."""

    whole = tuple(sequence)
    if not fails(whole):
        return whole
    retained = minimised(range(len(whole)), lambda some: bool(some) and fails([whole[position] for position in some]))
    return tuple(whole[position] for position in retained)


def counts(sequences: Sequence[Sequence[Step]]) -> dict[str, int]:
    """How many steps of each kind there are, for a report."""
    acts = [step.act for sequence in sequences for step in sequence]
    return {act.value: acts.count(act) for act in Act}

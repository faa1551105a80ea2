"""All verbs."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import attrs
import tomli_w

from emulator.base.text import nearest
from emulator.console.breaking import BREAKING
from emulator.console.looking import ASKING, LOOKING
from emulator.console.scripts import SCRIPTING
from emulator.console.session import Session
from emulator.console.timing import TIMING
from emulator.console.verb import Lines, Verb, VerbError, Words
from emulator.spec import Scenario, to_dict
from faults.plan import Plan, PlanError

_HEAD = """\
# What was done by hand, at the instants at which it was done. A run of this in `sim` or `fast` gives the same
# changes of views in the same order, with the same timers, as long as nothing was lost at random: which frame a
# loss takes depends on how many went before it, and what passes beside the network in `live` takes time of its own.

"""


def scenario_by_hand(scenario: Scenario, by_hand: Plan, end_ms: int) -> str:
    """A scenario file that does again what was done; its own faults come first, as far as they have begun.

    Raises:
        PlanError: the faults do not go together.
    """
    planned = (timed for timed in scenario.faults.faults if timed.at_ms < end_ms)
    faults = Plan((*planned, *by_hand.faults))
    # A scenario ends after its last fault has begun, if only just.
    run_for_ms = max([end_ms, *(timed.at_ms + 1 for timed in faults.faults)])
    replay = attrs.evolve(scenario, name=f"{scenario.name}-by-hand", run_for_ms=run_for_ms, faults=faults)
    return _HEAD + tomli_w.dumps(to_dict(replay))


async def _save(session: Session, words: Words) -> Lines:
    try:
        content = scenario_by_hand(session.cluster.scenario, session.by_hand(), session.now_ms)
        _write(Path(words[0]), content)
    except OSError as error:
        raise VerbError(f"{words[0]}: {error.strerror}") from None
    except PlanError as error:
        raise VerbError(str(error)) from None
    return (f"saved; do it again with: rmqemu run {words[0]}",)


def _write(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8")


async def _help(_session: Session, words: Words) -> Lines:
    if words and words[0] not in VERBS:
        raise VerbError(nearest("verb", words[0], tuple(VERBS)))
    return explained((VERBS[words[0]],) if words else tuple(VERBS.values()))


def explained(verbs: tuple[Verb[Session], ...]) -> Lines:
    """Two lines for each verb: how it is said, and what it does."""
    return tuple(line for verb in verbs for line in (verb.line(), f"    {verb.summary}"))


async def _quit(session: Session, _words: Words) -> Lines:
    session.leaving.set()
    return ("leaving: every fault heals",)


_ALL = (
    *LOOKING,
    *ASKING,
    *BREAKING,
    *TIMING,
    *SCRIPTING,
    Verb("save", "FILE", "write what was done so far as a scenario that does it again", _save, 1, 1),
    Verb("help", "[VERB]", "these lines, or that of a verb", _help, 0, 1),
    Verb("quit", "", "end the run", _quit),
)
VERBS: Mapping[str, Verb[Session]] = MappingProxyType({verb.name: verb for verb in _ALL})
"""Name -> verb, in the order in which they are explained."""

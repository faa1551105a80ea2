"""The table of all verbs, and the verbs about the run itself: `help`, `save`, `quit`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from emulator.console.act_verbs import ACTING
from emulator.console.by_hand import scenario_by_hand
from emulator.console.fault_verbs import BREAKING
from emulator.console.load import LOAD
from emulator.console.scripts import SCRIPTING
from emulator.console.state_verbs import ASKING, LOOKING
from emulator.console.time_verbs import TIMING
from emulator.console.verb import Lines, Verb, VerbError, Words, no_such_verb
from emulator.trace.files import RunFiles, put_in_place
from faults.plan import PlanError
from nodes.fields import shown

if TYPE_CHECKING:
    from emulator.console.session import Session

SAVE = "save"


async def _save(session: "Session", words: Words) -> Lines:
    try:
        content = scenario_by_hand(session.cluster.scenario, session.by_hand(), session.now_ms)
        path = session.file(words[0], to_write=True)
        put_in_place(RunFiles(), path, content.encode())
    except OSError as error:
        raise VerbError(f"{shown(words[0])}: {error.strerror}") from None
    except PlanError as error:
        raise VerbError(str(error)) from None
    return (f"saved; do it again with: rmqemu run {path}",)


async def _help(_session: "Session", words: Words) -> Lines:
    if words and words[0] not in VERBS:
        raise VerbError(no_such_verb(words[0], tuple(VERBS)))
    return help_lines((VERBS[words[0]],) if words else tuple(VERBS.values()))


def help_lines(verbs: "tuple[Verb[Session], ...]") -> Lines:
    """Two lines for each verb: its usage, and what it does."""
    return tuple(line for verb in verbs for line in (verb.line(), f"    {verb.summary}"))


async def _quit(session: "Session", _words: Words) -> Lines:
    session.leaving.set()
    return ("leaving: every fault heals",)


_ALL = (
    *LOOKING,
    *LOAD,
    *ASKING,
    *BREAKING,
    *ACTING,
    *TIMING,
    *SCRIPTING,
    Verb(SAVE, "FILE", "save what was done interactively so far as a scenario that repeats it", _save, 1, 1),
    Verb("help", "[VERB]", "list all verbs, or explain one", _help, 0, 1),
    Verb("quit", "", "end the run", _quit),
)
VERBS: "Mapping[str, Verb[Session]]" = MappingProxyType({verb.name: verb for verb in _ALL})
"""Mapping name -> verb, in the order of `help`."""

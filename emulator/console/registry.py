"""All verbs."""

from collections.abc import Mapping
from types import MappingProxyType

from emulator.base.text import nearest
from emulator.console.breaking import BREAKING
from emulator.console.looking import ASKING, LOOKING
from emulator.console.saving import KEEPING
from emulator.console.scripts import SCRIPTING
from emulator.console.session import Session
from emulator.console.timing import TIMING
from emulator.console.verb import Lines, Verb, VerbError, Words


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
    *KEEPING,
    Verb("help", "[VERB]", "these lines, or that of a verb", _help, 0, 1),
    Verb("quit", "", "end the run", _quit),
)
VERBS: Mapping[str, Verb[Session]] = MappingProxyType({verb.name: verb for verb in _ALL})
"""Name -> verb, in the order in which they are explained."""

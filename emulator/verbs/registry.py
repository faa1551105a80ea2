"""All verbs."""

from collections.abc import Mapping
from types import MappingProxyType

from emulator.verbs.asking import ASKING
from emulator.verbs.breaking import BREAKING
from emulator.verbs.desk import Desk
from emulator.verbs.keeping import KEEPING
from emulator.verbs.looking import LOOKING
from emulator.verbs.script import SCRIPTING
from emulator.verbs.timing import TIMING
from emulator.verbs.verb import Lines, Verb, VerbError, Words, nearest


async def _help(_desk: Desk, words: Words) -> Lines:
    if words and words[0] not in VERBS:
        raise VerbError(nearest("verb", words[0], tuple(VERBS)))
    return explained((VERBS[words[0]],) if words else tuple(VERBS.values()))


def explained(verbs: tuple[Verb, ...]) -> Lines:
    """Two lines for each verb: how it is said, and what it does."""
    return tuple(line for verb in verbs for line in (verb.line(), f"    {verb.summary}"))


async def _quit(desk: Desk, _words: Words) -> Lines:
    desk.leaving.set()
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
VERBS: Mapping[str, Verb] = MappingProxyType({verb.name: verb for verb in _ALL})
"""Name -> verb, in the order in which they are explained."""

"""All verbs."""

from collections.abc import Mapping
from types import MappingProxyType

from emulator.verbs.asking import ASKING
from emulator.verbs.breaking import BREAKING
from emulator.verbs.desk import Desk
from emulator.verbs.keeping import KEEPING
from emulator.verbs.looking import LOOKING
from emulator.verbs.verb import Lines, Verb, Words


async def _help(_desk: Desk, _words: Words) -> Lines:
    width = max(len(verb.line()) for verb in VERBS.values())
    return tuple(f"{verb.line():<{width}}  {verb.summary}" for verb in VERBS.values())


async def _quit(desk: Desk, _words: Words) -> Lines:
    desk.leaving.set()
    return ("leaving: every fault heals",)


_ALL = (
    *LOOKING,
    *ASKING,
    *BREAKING,
    *KEEPING,
    Verb("help", "", "these lines", _help),
    Verb("quit", "", "end the run", _quit),
)
VERBS: Mapping[str, Verb] = MappingProxyType({verb.name: verb for verb in _ALL})
"""Name -> verb, in the order in which they are explained."""

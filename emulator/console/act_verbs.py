"""Verbs of administrators: each act is one."""

from typing import TYPE_CHECKING

from emulator.acts.act import PlaceKind
from emulator.acts.catalogue import ACT_VERBS, act_from_words
from emulator.console.verb import WORDS_MAX, Lines, Verb, VerbError, Words
from emulator.spec.warnings.changed_options import options_without_effect
from emulator.state.event_lines import with_names
from faults.words import WordsError

if TYPE_CHECKING:
    from emulator.console.session import Session

PLACES = {kind.name: kind for kind in PlaceKind if kind.name is not None}
"""Placeholder in the words of an act -> what stands there."""


class _Act:
    """A verb that has the administrator carry out an act."""

    def __init__(self, verb: str) -> None:
        self._verb = verb

    async def __call__(self, session: "Session", words: Words) -> Lines:
        try:
            act = act_from_words(self._verb, words)
        except WordsError as error:
            raise VerbError(str(error)) from None
        timed, result = await session.act(act)
        answered = with_names(result.words(), session.cluster.names)
        return (f"{timed.id}: {act.line()}", answered, *options_without_effect(act))


ACTING = tuple(
    Verb(verb, act.wording.usage, act.wording.summary, _Act(verb), act.wording.minimum, WORDS_MAX)
    for verb, act in ACT_VERBS.items()
)

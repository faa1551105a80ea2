"""A verb of the registry as a method."""

from collections.abc import Callable
from typing import Any

from emulator.handle.told import Told
from emulator.verbs.looking import LOOKING
from emulator.verbs.verb import Verb

Say = Callable[[Verb, tuple[object, ...]], Told]


class VerbMethod:
    """Says its verb when it is called; one that only looks also when a notebook shows it: `cluster.status`.

    Args:
        verb: of the registry.
        say: says it with words.
    """

    def __init__(self, verb: Verb, say: Say) -> None:
        self._verb = verb
        self._say = say
        self.__name__ = verb.name.replace("-", "_")
        self.__doc__ = f"{verb.summary[0].upper()}{verb.summary[1:]}.\n\nWords: {verb.usage or 'none'}"

    def __call__(self, *words: object) -> Told:
        """Say it.

        Raises:
            VerbError: it cannot be done; nothing has changed.
            ClusterEndedError: the cluster has ended.
            NodeCrashedError: a node's own code raised.
        """
        return self._say(self._verb, words)

    def __repr__(self) -> str:
        return str(self()) if self._shows_itself() else f"{self._verb.line()}: {self._verb.summary}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - IPython's
        if not self._shows_itself():
            return {"text/plain": repr(self)}
        return self()._repr_mimebundle_()

    def _shows_itself(self) -> bool:
        return self._verb in LOOKING and self._verb.least == 0

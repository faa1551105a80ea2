"""What is wrong with a scenario: one mistake, or all of them at once."""

import re
from collections.abc import Sequence

from emulator.base.errors import UserError
from emulator.base.text import alike, listed
from nodes.fields import shown

MISTAKES_MAX = 100
"""Most mistakes of a file that are reported."""
_LAST_STEP = re.compile(r"(\[\d+\]|(^|\.)[^.\[\]]*|.)$", re.DOTALL)


class SpecError(UserError, ValueError):
    """A scenario is invalid.

    The text is one line about the first mistake: file and line, path of the key (positions count from 0), what is
    wrong there and what was expected. `lines` has a line for each mistake.
    """

    def __init__(
        self, key: str, problem: str, source: str = "", line: int = 0, further: tuple["SpecError", ...] = ()
    ) -> None:
        place = f"{source}:{line}" if source and line else source
        super().__init__(f"{place}: {key}: {problem}" if place else f"{key}: {problem}")
        self.key = key
        """For instance `broker[1].options.brokerHeartbeatInterval`."""
        self.problem = problem
        self.source = source
        """The file or another origin of the scenario; empty for a scenario built in Python."""
        self.line = line
        """Where the key stands in the file, from 1; 0: unknown, or the scenario is no text."""
        self.further = further
        """The other mistakes of the scenario."""
        for note in self.lines[1:]:
            self.add_note(note)  # so a traceback has all of them

    def __reduce__(self) -> tuple[type["SpecError"], tuple[str, str, str, int, tuple["SpecError", ...]]]:
        """Errors cross processes: a campaign's, and Spark's."""
        return SpecError, (self.key, self.problem, self.source, self.line, self.further)

    @classmethod
    def of(cls, mistakes: Sequence["SpecError"]) -> "SpecError":
        """One error for several mistakes, of which there is one at least."""
        first, *others = (item for mistake in mistakes for item in mistake.all)
        if not others:
            return first
        return SpecError(first.key, first.problem, first.source, first.line, tuple(others))

    @property
    def all(self) -> tuple["SpecError", ...]:
        """Every mistake, as an error of its own."""
        return (SpecError(self.key, self.problem, self.source, self.line), *self.further) if self.further else (self,)

    @property
    def lines(self) -> tuple[str, ...]:
        """One line for each mistake."""
        return tuple(str(mistake) for mistake in (self, *self.further))

    def within(self, source: str) -> "SpecError":
        """The same error with the name of its file."""
        return SpecError.of([SpecError(item.key, item.problem, source, item.line) for item in self.all])


class UnknownKeyError(SpecError):
    """A table has a key that means nothing."""

    def __init__(self, key: str, subject: str, wrong: str, known: Sequence[str], explained: str = "") -> None:
        """Refuse a key.

        Args:
            key: its path.
            subject: what it is: `option`.
            wrong: its name.
            known: names of keys that mean something.
            explained: what it is in RocketMQ, or which name was meant; empty: the nearest known name is suggested.
        """
        self.meant = None if explained else next(iter(alike(wrong, known, 1)), None)
        """The known key that is most like it."""
        super().__init__(key, f"unknown {subject}; {explained or _suggestion(self.meant, known)}")


class NameMistakeError(SpecError):
    """A name is unknown, or taken twice: reported only if all tables that give such names could be read."""

    def __init__(self, key: str, problem: str, named: str) -> None:
        super().__init__(key, problem)
        self.named = named
        """What has such names: `node`, `topic`, `group`, ..."""


class EnoughMistakesError(Exception):
    """So many mistakes are known that reading on is of no use."""


class Reading:
    """What is known of a file while it is read: its mistakes, and the tables that they spoil."""

    def __init__(self) -> None:
        self._mistakes: dict[tuple[str, str], SpecError] = {}
        self._excused: dict[tuple[str, str], None] = {}
        """What is there under a mistyped key."""
        self._around: dict[tuple[str, str], None] = {}
        """What has a mistake inside."""
        self.lost: dict[str, None] = {}
        """Paths of tables, and of whole arrays, of which nothing could be made."""

    def add(self, error: SpecError) -> None:
        """Add mistakes; what is wrong at a key, inside of it or around it after something was wrong there only follows.

        Raises:
            EnoughMistakesError: these were the last that are reported.
        """
        for mistake in error.all:
            paths = [(mistake.source, path) for path in paths_to(mistake.key)]
            follows = any(path in self._mistakes or path in self._excused for path in paths)
            if not follows and paths[0] not in self._around:
                self._mistakes[paths[0]] = mistake
                self._around |= dict.fromkeys(paths)
            if len(self._mistakes) >= MISTAKES_MAX:
                raise EnoughMistakesError

    def suppress(self, *keys: str) -> None:
        """Report nothing of these keys any more, for they are most likely there under a mistyped name."""
        self._excused |= dict.fromkeys(("", key) for key in keys)

    @property
    def mistakes(self) -> tuple[SpecError, ...]:
        """All mistakes so far; at the end of very many, that there may be more."""
        found = tuple(self._mistakes.values())
        if len(found) < MISTAKES_MAX:
            return found
        return (*found, SpecError("file", f"there may be more mistakes: the first {MISTAKES_MAX} are reported"))


def paths_to(key: str) -> tuple[str, ...]:
    """A path and all paths that lead to it: `a[1].b`, `a[1]`, `a`."""
    paths = []
    while key:
        paths.append(key)
        key = _LAST_STEP.sub("", key)
    return tuple(paths)


def suggestion(wrong: str, known: Sequence[str]) -> str:
    """The nearest known name, or the list of all: `did you mean "count"?`."""
    return _suggestion(next(iter(alike(wrong, known, 1)), None), known)


def _suggestion(near: str | None, known: Sequence[str]) -> str:
    if near is not None:
        return f'did you mean "{near}"?'
    return f"known are {listed(known)}" if known else "none is known"


def require_known(key: str, subject: str, name: str, known: Sequence[str], named: str = "") -> None:
    """Refuse an unknown name.

    Args:
        key: where it stands.
        subject: the kind of thing that the name should name, for the message.
        name: to look up.
        known: names that exist.
        named: what has such names, if that is not `what`.

    Raises:
        SpecError: at `key`: unknown `what` "name", with the nearest known one.
    """
    if name not in known:
        raise NameMistakeError(key, f'unknown {subject} "{shown(name)}"; {suggestion(name, known)}', named or subject)

"""Verbs from a file, one a line: done in order, up to the first that cannot be done."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import trio

from emulator.console.session import Session
from emulator.console.verb import Lines, Verb, VerbError, Words, do, split, understood

SCRIPT = "script"


class ScriptError(Exception):
    """A line of a script cannot be done; says in one line which, and why."""


async def _script(session: Session, words: Words) -> Lines:
    try:
        told = [line async for line in follow(session, read_script(Path(words[0]), session))]
    except ScriptError as error:
        raise VerbError(str(error)) from None
    return tuple(told)


def read_script(path: Path, session: Session) -> tuple[tuple[str, list[str]], ...]:
    """(where it stands, words) of each line that says something.

    Raises:
        ScriptError: the file cannot be read, or a line is no verb with the words that it takes.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ScriptError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    found: list[tuple[str, list[str]]] = []
    for number, line in enumerate(lines, start=1):
        try:
            words = split(line)
            if words:
                _expect_verb(words, session)
                found.append((f"{path}:{number}", words))
        except VerbError as error:
            raise ScriptError(f"{path}:{number}: {error}") from None
    return tuple(found)


def _expect_verb(words: Words, session: Session) -> None:
    if words[0] == SCRIPT:
        raise VerbError("a script cannot do another one")
    understood(words, session.verbs)


async def follow(session: Session, lines: tuple[tuple[str, list[str]], ...]) -> AsyncIterator[str]:
    """Do line by line; yields what there is to tell.

    Raises:
        ScriptError: a line cannot be done; those before it were.
    """
    for where, words in lines:
        try:
            told = await do(words, session, session.verbs)
        except VerbError as error:
            raise ScriptError(f"{where}: {' '.join(words)}: {error}") from None
        for line in told:
            yield line


class ScriptedRun:
    """Somebody at the session who does what a script says, from when everything is ready; an attendant of a run.

    The run ends when the script is over, and the scenario, too.

    Args:
        path: of the script.
        tell: what comes of each line.
    """

    def __init__(self, path: Path, tell: Callable[[str], None]) -> None:
        self._path = path
        self._tell = tell
        self.error: ScriptError | None = None
        """What kept it from going on."""

    async def attend(self, session: Session) -> None:
        """Do it."""
        session.tellers.append(self._tell)
        await session.cluster.started.wait()
        try:
            async for line in follow(session, read_script(self._path, session)):
                self._tell(line)
        except ScriptError as error:
            self.error = error
        else:
            await session.cluster.world.sleep_until_ns(session.cluster.scenario.run_for_ms * 1_000_000)
        await trio.lowlevel.checkpoint()
        session.leaving.set()


SCRIPTING = (Verb(SCRIPT, "FILE", "do the verbs of a file, a line each, up to the first that fails", _script, 1, 1),)

"""Scripts: files with one verb per line, which are executed in order up to the first failure."""

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from emulator.base.errors import one_line
from emulator.base.files import UnreadableError, read_text
from emulator.console.verb import Lines, Verb, VerbError, Words, execute, find_verb, split
from nodes.fields import shown
from nodes.secret import masked

if TYPE_CHECKING:
    from emulator.console.session import Session

SCRIPT = "script"
SCRIPT_BYTES_MAX = 1024 * 1024
"""Size of a script."""


class ScriptError(Exception):
    """A line of a script failed; the text says in one line which, and why."""

    def __init__(self, text: str) -> None:
        super().__init__(one_line(text))


async def _script(session: "Session", words: Words) -> Lines:
    try:
        lines = [line async for line in follow(session, read_script(session.file(words[0]), session.verbs))]
    except ScriptError as error:
        raise VerbError(str(error)) from None
    return tuple(lines)


def read_script(path: Path, verbs: "Mapping[str, Verb[Session]]") -> tuple[tuple[str, list[str]], ...]:
    """(`FILE:LINE`, words) of each line with a verb.

    Raises:
        ScriptError: the file cannot be read, or a line is not a verb with a valid number of words.
    """
    try:
        lines = read_text(path, SCRIPT_BYTES_MAX).splitlines()
    except UnreadableError as error:
        raise ScriptError(f"{path}: cannot be read: {error}") from None
    found: list[tuple[str, list[str]]] = []
    for number, line in enumerate(lines, start=1):
        try:
            words = split(line)
            if words:
                _require_verb(words, verbs)
                found.append((f"{path}:{number}", words))
        except VerbError as error:
            raise ScriptError(f"{path}:{number}: {error}") from None
    return tuple(found)


def _require_verb(words: Words, verbs: "Mapping[str, Verb[Session]]") -> None:
    if words[0] == SCRIPT:
        raise VerbError("a script cannot do another one")
    find_verb(words, verbs)


async def follow(session: "Session", lines: tuple[tuple[str, list[str]], ...]) -> AsyncIterator[str]:
    """Execute the lines in order; yields their output.

    Raises:
        ScriptError: a line failed; the lines before it were executed.
    """
    for where, words in lines:
        try:
            reported = await execute(words, session, session.verbs)
        except VerbError as error:
            raise ScriptError(f"{where}: {shown(masked(' '.join(words)))}: {error}") from None
        for line in reported:
            yield line


class ScriptedRun:
    """Executes a script once every node is ready; its method `run` is a session task.

    The run ends when both the script and the scenario have ended.

    Args:
        path: of the script.
        report: called with each line of output.
    """

    def __init__(self, path: Path, print_line: Callable[[str], None]) -> None:
        self._path = path
        self._print_line = print_line
        self.error: ScriptError | None = None
        """The failure that ended the script; None if it succeeded."""

    async def run(self, session: "Session") -> None:
        """Execute the script."""
        session.printers.append(self._print_line)
        await session.cluster.started.wait()
        try:
            async for line in follow(session, read_script(self._path, session.verbs)):
                self._print_line(line)
        except ScriptError as error:
            self.error = error
        else:
            await session.cluster.world.sleep_until_ns(session.cluster.scenario.run_for_ms * 1_000_000)
        await trio.lowlevel.checkpoint()
        session.leaving.set()


SCRIPTING = (Verb(SCRIPT, "FILE", "execute the verbs of a file, one per line, up to the first failure", _script, 1, 1),)

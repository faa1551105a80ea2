"""The console of `rmqemu up`: a prompt for verbs, with the events above it."""

import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import trio
import typer

from emulator.verbs.completion import completions
from emulator.verbs.desk import Desk
from emulator.verbs.screen import views_in_colour
from emulator.verbs.verb import VerbError, say, split

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import History

_REFRESH_S = 0.5
"""Faults of the scenario begin and end while somebody thinks."""


class Console:
    """A terminal, or what stands in its place.

    Where there is no terminal it prints event lines, and takes nothing.
    """

    def __init__(self, *, interactive: bool) -> None:
        self._interactive = interactive

    @classmethod
    def of_this_terminal(cls) -> "Console":
        """A prompt if somebody sits before both ends of it."""
        return cls(interactive=sys.stdin.isatty() and sys.stdout.isatty())

    def attendants(self) -> tuple[Callable[[Desk], Awaitable[None]], ...]:
        """Who takes verbs from this terminal."""
        return (self._take_verbs,) if self._interactive else ()

    def print_above(self, line: str) -> None:
        """Print an event; a prompt stays below it."""
        typer.echo(line)

    async def _take_verbs(self, desk: Desk) -> None:
        from prompt_toolkit.patch_stdout import patch_stdout  # noqa: PLC0415 - only a terminal needs it

        desk.tellers.append(self.print_above)
        session = _session(desk)
        with patch_stdout(raw=True):
            while not desk.leaving.is_set():
                try:
                    # A thread of its own: the prompt waits for keys, and `live` is the only mode in which one types.
                    line = await trio.to_thread.run_sync(session.prompt, abandon_on_cancel=True)
                except (EOFError, KeyboardInterrupt):
                    line = "quit"
                await self._say(desk, line)

    async def _say(self, desk: Desk, line: str) -> None:
        try:
            words = split(line)
            if words[:1] == ["views"] and len(words) <= 2:
                typer.echo(views_in_colour(desk, words[1] if len(words) > 1 else None), nl=False)
                return
            for told in await say(line, desk, desk.verbs):
                typer.echo(told)
        except VerbError as error:
            typer.echo(str(error))


def _session(desk: Desk) -> "PromptSession[str]":
    from prompt_toolkit import PromptSession  # noqa: PLC0415

    def prompt() -> str:
        return f"rmqemu [{_how_many(desk)} active]> "

    def toolbar() -> str:
        active = "; ".join(f"{it.id}: {it.fault.describe()}" for it in desk.operator.active.values())
        return f"{desk.now_ms / 1_000:.0f} s  {active or 'nothing is broken; help lists the verbs'}"

    return PromptSession(
        prompt,
        completer=_completer(desk),
        history=_history(),
        bottom_toolbar=toolbar,
        refresh_interval=_REFRESH_S,
        complete_while_typing=False,
    )


def _how_many(desk: Desk) -> str:
    count = len(desk.operator.active)
    return f"{count} fault{'' if count == 1 else 's'}"


def _completer(desk: Desk) -> "Completer":
    from prompt_toolkit.completion import Completer, Completion  # noqa: PLC0415

    class OfVerbs(Completer):
        def get_completions(self, document: "Document", complete_event: "CompleteEvent") -> "Iterator[Completion]":  # noqa: ARG002 - prompt_toolkit's signature
            line = document.text_before_cursor
            begun = line.rpartition(" ")[2]
            for word in completions(desk, line):
                yield Completion(word, start_position=-len(begun))

    return OfVerbs()


def _history() -> "History":
    """What was typed in earlier sessions, if the machine lets us keep it."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory  # noqa: PLC0415

    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "rmqemu"
    try:
        state.mkdir(parents=True, exist_ok=True)
        (state / "history").touch()
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(state / "history"))

"""The console of `rmqemu up`: a prompt for verbs, with the events above it."""

import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import trio
import typer

from emulator.verbs.desk import Desk
from emulator.verbs.registry import VERBS
from emulator.verbs.verb import VerbError, say

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

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
            lines: Iterable[str] = await say(line, desk, VERBS)
        except VerbError as error:
            lines = (f"{error}",)
        for told in lines:
            typer.echo(told)


def _session(desk: Desk) -> "PromptSession[str]":
    from prompt_toolkit import PromptSession  # noqa: PLC0415
    from prompt_toolkit.completion import WordCompleter  # noqa: PLC0415
    from prompt_toolkit.history import InMemoryHistory  # noqa: PLC0415

    def prompt() -> str:
        count = len(desk.operator.active)
        return f"rmqemu [{count} fault{'' if count == 1 else 's'} active]> "

    return PromptSession(
        prompt,
        completer=WordCompleter(lambda: [*VERBS, *desk.cluster.hosts, *desk.operator.active]),
        history=InMemoryHistory(),
        refresh_interval=_REFRESH_S,
        complete_while_typing=False,
    )

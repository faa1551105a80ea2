"""The console of `rmqemu up`: a prompt for verbs, with events printed above it."""

import io
import os
import re
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import trio

from emulator.base.rich_texts import Console, Text, TextTable
from emulator.console.act_verbs import PLACES
from emulator.console.line_printer import LinePrinter
from emulator.console.matrix import Matrix, MatrixRow
from emulator.console.session import Session
from emulator.console.state_verbs import ALL, matrix_of, shared_subjects
from emulator.console.verb import VerbError, split
from emulator.spec.model.addresses import places
from faults.catalogue import CHAOS_NAMES
from faults.link import ProcessStage
from faults.target import ROLES
from nodes.protocol.codes import RequestCode
from nodes.secret import masked
from nodes.visible import visible

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import History


_REFRESH_S = 0.5
"""How often the toolbar is redrawn: faults of the scenario begin and end while the user types."""


class Prompt:
    """The user's side of a live run: prints event lines, and reads verbs in an interactive terminal."""

    def __init__(self, *, interactive: bool) -> None:
        self._interactive = interactive
        self._printer = LinePrinter()
        self._page_line = ""
        """Where the page is; empty: there is none."""

    @classmethod
    def of_this_terminal(cls) -> "Prompt":
        """An interactive prompt if stdin and stdout are terminals."""
        return cls(interactive=sys.stdin.isatty() and sys.stdout.isatty())

    def session_tasks(self) -> tuple[Callable[[Session], Awaitable[None]], ...]:
        """The session task that reads verbs, if the prompt is interactive."""
        return (self._take_verbs,) if self._interactive else ()

    def print_above(self, line: str) -> None:
        """Print a line; the prompt stays below it."""
        self._printer.print(line)

    def print_page_address(self, line: str) -> None:
        """Print where the page is; the toolbar keeps it, since events push the line out of sight."""
        self._page_line = line
        self.print_above(line)

    def close(self) -> None:
        """Print the lines that wait; gives up soon if no one reads them."""
        self._printer.close()

    async def _take_verbs(self, session: Session) -> None:
        from prompt_toolkit.patch_stdout import patch_stdout  # noqa: PLC0415 - only a terminal needs it

        session.printers.append(self.print_above)
        terminal = _terminal(session, lambda: self._page_line)
        with patch_stdout(raw=True):
            while not session.leaving.is_set():
                try:
                    # In a thread, since the prompt blocks; prompts exist only in mode `live`.
                    line = await trio.to_thread.run_sync(terminal.prompt, abandon_on_cancel=True)
                except (EOFError, KeyboardInterrupt):
                    line = "quit"
                await self._print(session, line)

    async def _print(self, session: Session, line: str) -> None:
        # Through the printer: an answer must not overtake the events that came before it.
        try:
            words = split(line)
            if words[:1] == ["views"] and len(words) <= 2:
                self._printer.print_drawn(views_in_colour(session, words[1] if len(words) > 1 else None).rstrip("\n"))
                return
            for reported in await session.say(line):
                self.print_above(reported)
        except VerbError as error:
            self.print_above(str(error))


def _terminal(session: Session, page_line: Callable[[], str]) -> "PromptSession[str]":
    from prompt_toolkit import PromptSession  # noqa: PLC0415

    def prompt() -> str:
        return f"rmqemu [{_how_many(session)} active]> "

    def toolbar() -> str:
        active = visible("; ".join(f"{item.id}: {item.fault.describe()}" for item in session.operator.active.values()))
        status = f"{session.now_ms / 1_000:.0f} s  {active or 'nothing is broken; help lists the verbs'}"
        return f"{status}\n{page_line()}".rstrip()

    return PromptSession(
        prompt,
        completer=_completer(session),
        history=_history(),
        bottom_toolbar=toolbar,
        refresh_interval=_REFRESH_S,
        complete_while_typing=False,
    )


def _how_many(session: Session) -> str:
    count = len(session.operator.active)
    return f"{count} fault{'' if count == 1 else 's'}"


def _completer(session: Session) -> "Completer":
    from prompt_toolkit.completion import Completer, Completion  # noqa: PLC0415

    class OfVerbs(Completer):
        def get_completions(self, document: "Document", complete_event: "CompleteEvent") -> "Iterator[Completion]":  # noqa: ARG002 - prompt_toolkit's signature
            line = document.text_before_cursor
            begun = line.rpartition(" ")[2]
            for word in completions(session, line):
                yield Completion(word, start_position=-len(begun), display=visible(word))

    return OfVerbs()


def _history() -> "History":
    """The history of earlier sessions; in memory only if it cannot be written."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory  # noqa: PLC0415

    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "rmqemu"
    try:
        state.mkdir(parents=True, exist_ok=True)
        (state / "history").touch(0o600)
    except OSError:
        return InMemoryHistory()

    class WithoutSecrets(FileHistory):
        def store_string(self, string: str) -> None:
            super().store_string(masked(string))

    return WithoutSecrets(str(state / "history"))


_WORD = re.compile(r"[A-Za-z][A-Za-z-]*")
_NODES = ("NODE", "NODES", "A", "B", "CONDITION")


def completions(session: Session, line: str) -> tuple[str, ...]:
    """Completions of the last word of a line."""
    before, _, begun = line.rpartition(" ")
    words = before.split()
    if words[:1] == ["at"] and len(words) >= 2:
        words = words[2:]
    offered = session.verbs if not words else _offered(session, words[0])
    return tuple(dict.fromkeys(word for word in offered if word.startswith(begun)))


def _offered(session: Session, name: str) -> Iterable[str]:
    if name not in session.verbs:
        return
    for word in _WORD.findall(session.verbs[name].usage):
        if word.islower():
            yield word
        elif word in PLACES:
            yield from places(session.cluster.scenario).of(PLACES[word])
        else:
            yield from _filling(session, word)


def _filling(session: Session, word: str) -> Iterable[str]:
    if word in _NODES:
        yield from session.cluster.hosts
        yield from session.cluster.scenario.guests
        yield from ROLES if word == "NODES" else ()
    elif word in _FILLINGS:
        yield from _FILLINGS[word](session)


def _subjects(session: Session) -> Iterable[str]:
    yield from (subject for _, subject in shared_subjects(session))
    yield ALL


def _groups(session: Session) -> Iterable[str]:
    return (spec.group for spec in session.cluster.scenario.consumers)


def _topics(session: Session) -> Iterable[str]:
    return (spec.name for spec in session.cluster.scenario.topics)


_FILLINGS: Mapping[str, Callable[[Session], Iterable[str]]] = MappingProxyType(
    {
        "FAULT": lambda session: session.operator.active,
        "SUBJECT": _subjects,
        **dict.fromkeys(("GROUP", "G", "SOURCE", "DESTINATION"), _groups),
        **dict.fromkeys(("TOPIC", "T"), _topics),
        "DOMAIN": lambda session: (spec.name for spec in session.cluster.scenario.domains),
        "CODE": lambda _: (code.name for code in RequestCode),
        "STAGE": lambda _: ProcessStage,
        "NAME": lambda _: CHAOS_NAMES,
        "VERB": lambda session: session.verbs,
    }
)
"""Placeholder in the usage of a verb -> what may stand there."""


_HOLDER_COLOURS = ("green", "red", "yellow", "magenta", "cyan", "blue")
"""Colours of groups of holders, the largest group first."""


def views_in_colour(session: Session, wanted: str | None) -> str:
    """The matrix of `views` in colour, as wide as this terminal.

    Raises:
        VerbError: the subject is unknown.
    """
    shown = matrix_of(session, wanted)
    if not shown.subjects:
        return "nodes of one role agree about everything they share; `views all` shows all of it, agreed or not\n"
    into = io.StringIO()
    console = Console(file=into, force_terminal=True, width=shutil.get_terminal_size().columns, highlight=False)
    console.print(_table(shown))
    for subject in shown.subjects:
        if subject.differs or wanted is not None:
            _print_values(console, session, subject)
    return into.getvalue()


def _table(shown: Matrix) -> TextTable:
    table = TextTable(box=None, pad_edge=False, header_style="bold")
    table.add_column("who believes what", no_wrap=True)
    for node in shown.nodes:
        table.add_column(node, justify="center", overflow="ellipsis", no_wrap=True)
    for subject in shown.subjects:
        cells = [Text(subject.cell(node), _style(subject, subject.cell(node))) for node in shown.nodes]
        table.add_row(Text(f"{subject.kind} {subject.subject}", "bold" if subject.differs else "dim"), *cells)
    return table


def _print_values(console: Console, session: Session, subject: MatrixRow) -> None:
    for letter, value in subject.values.items():
        held = session.lines.value(subject.kind, value)
        line = Text.assemble(f"{subject.kind} {subject.subject} ", (letter, _style(subject, letter)), f": {held}")
        console.print(line, overflow="ellipsis", no_wrap=True)


def _style(subject: MatrixRow, letter: str) -> str:
    if letter not in subject.values:
        return "dim"
    if not subject.differs:
        return "dim green"
    return f"bold {_HOLDER_COLOURS[list(subject.values).index(letter) % len(_HOLDER_COLOURS)]}"

"""Verbs of a user in another terminal: said over the control socket, with the files of that terminal.

A cluster reads and writes nothing outside its run directory for those who speak over its socket. So `script` is read
here and said line by line, and what `save` has saved in the run directory is copied.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path

from emulator.base.errors import UserError
from emulator.base.files import read_bytes
from emulator.console.control_socket import ask
from emulator.console.scripts import SCRIPT, ScriptError, read_script
from emulator.console.verb import Words
from emulator.console.verbs import SAVE, VERBS
from emulator.trace.files import RunFiles, put_in_place
from nodes.fields import shown
from nodes.secret import masked

_SAVED = "saved.toml"
"""File in the run directory with what was last saved from another terminal."""


class VerbRefusedError(UserError):
    """A verb was refused; the text says why in one line."""


def say(socket: Path, words: Words) -> Iterator[str]:
    """Execute a verb on a running cluster; yields the lines of its output.

    Args:
        socket: the control socket of the cluster.
        words: the verb and its words; files are relative to the directory of this process.

    Raises:
        ControlError: no cluster listens on the socket.
        VerbRefusedError: the verb was refused; of a script, the lines before it were executed.
    """
    match list(words):
        case [verb, file] if verb == SCRIPT:
            yield from _script(socket, Path(file))
        case [verb, file] if verb == SAVE:
            yield _save(socket, Path(file))
        case _:
            yield from _reported(socket, words)


def _reported(socket: Path, words: Words) -> tuple[str, ...]:
    done, lines = ask(socket, shlex.join(words))
    if not done:
        raise VerbRefusedError(" ".join(lines))
    return lines


def _script(socket: Path, file: Path) -> Iterator[str]:
    try:
        script = read_script(file, VERBS)
    except ScriptError as error:
        raise VerbRefusedError(str(error)) from None
    for where, words in script:
        try:
            yield from _reported(socket, words)
        except VerbRefusedError as error:
            raise VerbRefusedError(f"{where}: {shown(masked(' '.join(words)))}: {error}") from None


def _save(socket: Path, file: Path) -> str:
    _reported(socket, (SAVE, _SAVED))
    try:
        put_in_place(RunFiles(), file, read_bytes(socket.parent / _SAVED))
    except (OSError, ValueError) as error:
        raise VerbRefusedError(f"{shown(str(file))}: {getattr(error, 'strerror', None) or error}") from None
    return f"saved; do it again with: rmqemu run {file}"

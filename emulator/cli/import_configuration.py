"""`rmqemu import`: configuration files of RocketMQ, Docker and Kubernetes become a scenario."""

from collections.abc import Sequence
from pathlib import Path

from emulator.base.errors import UserError
from emulator.base.files import UnexpectedFileError, read_bytes, resolved
from emulator.base.printing import print_line
from emulator.cli.terminal import NAME
from emulator.importing.cluster import ImportedCluster
from emulator.importing.files import (
    ConfigurationFile,
    counts_of,
    read_configuration,
    scenario_name,
    verdicts_of_cluster,
)
from emulator.importing.scenario_text import scenario_text
from emulator.importing.settings import ConfigurationError
from emulator.importing.verdicts import Fate, Verdict
from emulator.spec import SpecError, loads
from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.tables.bounds import FILE_BYTES_MAX
from emulator.trace.files import RunFiles, put_in_place

FILES_MAX = 1_000


def import_files(paths: Sequence[Path], kind: FileKind | None, output: Path | None) -> None:
    """Write the scenario that configuration files describe, and print what became of their options.

    Args:
        paths: of the files.
        kind: of the node that each properties file is for; None: its options show it.
        output: where no file is yet; None: the scenario is printed, and the rest goes to standard error.

    Raises:
        UserError: a file cannot be read or imported, or there is something at `output`.
    """
    if output is not None and (output.exists() or output.is_symlink()):
        raise UserError(f"{output}: expected a path at which there is nothing yet")
    files = _read(paths)
    cluster = _cluster(files, kind)
    text = scenario_text(cluster, scenario_name(files), [file.source for file in files])
    _require_scenario(text, files)
    if output is None:
        for line in text.splitlines():
            print_line(line)
    else:
        put_in_place(RunFiles(), output, text.encode())
    _print_warnings(cluster, err=output is None)
    _print_counts(verdicts_of_cluster(cluster), err=output is None)
    if output is not None:
        print_line(output)


def print_account(path: Path, kind: FileKind | None) -> None:
    """Print what becomes of each option of a configuration file.

    Args:
        path: of the file.
        kind: of the node that it is for; None: its options show it.

    Raises:
        UserError: it cannot be read or imported.
    """
    cluster = _cluster(_read((path,)), kind)
    verdicts = verdicts_of_cluster(cluster)
    _print_warnings(cluster)
    for verdict in verdicts:
        if not verdict.is_warning:
            print_line(verdict.line())
    _print_counts(verdicts)
    print_line(f"this is a configuration file: {NAME} import {path} makes a scenario of it")


def _read(paths: Sequence[Path]) -> tuple[ConfigurationFile, ...]:
    if len(paths) > FILES_MAX:
        raise UserError(f"expected at most {FILES_MAX} files")
    return tuple(ConfigurationFile(str(path), _content(path)) for path in paths)


def _content(path: Path) -> bytes:
    try:
        return read_bytes(path, FILE_BYTES_MAX)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


def _cluster(files: Sequence[ConfigurationFile], kind: FileKind | None) -> ImportedCluster:
    return read_configuration(files, kind, _next_to)


def _next_to(source: str, path: str) -> bytes | None:
    """The content of a file that a compose file mounts; only files below its own folder are read."""
    folder = resolved(Path(source).parent)
    file = resolved(folder / path)
    if not file.is_relative_to(folder):
        return None
    try:
        return read_bytes(file, FILE_BYTES_MAX)
    except (UnexpectedFileError, OSError):
        return None


def _require_scenario(text: str, files: Sequence[ConfigurationFile]) -> None:
    """Refuse what files describe together if it is no valid scenario.

    Raises:
        UserError: with all mistakes.
    """
    try:
        loads(text, "the scenario of these files")
    except SpecError as error:
        raise ConfigurationError(files[0].source, 0, f"cannot be emulated: {error}") from None


def _print_warnings(cluster: ImportedCluster, *, err: bool = False) -> None:
    for verdict in verdicts_of_cluster(cluster):
        if verdict.is_warning:
            print_line(f"warning: {verdict.line()}", err=err)
    places = ((f"{node.source}:{node.line}" if node.line else node.source, node) for node in cluster.nodes)
    notes = (f"note: {place}: {note}" for place, node in places for note in node.notes)
    for line in dict.fromkeys(notes):  # of nodes alike, once
        print_line(line, err=err)


def _print_counts(verdicts: Sequence[Verdict], *, err: bool = False) -> None:
    for source, counted in counts_of(verdicts).items():
        parts = [f"{number} {fate}" for fate, number in counted.items() if number or fate is Fate.TAKEN]
        print_line(f"{source}: {sum(counted.values())} options: {', '.join(parts)}", err=err)

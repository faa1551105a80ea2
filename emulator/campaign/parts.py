"""The parts of a campaign: files of lines that are only appended to, one line for each ended run.

Each process that runs has a part of its own. A line has a checksum: one that a killed process or a full disk left
half-written is no line, and its case has not been run. A line names its campaign by the digest: one of another
campaign is refused, wherever it came from.
"""

import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from emulator.base.files import read_lines
from emulator.campaign.results import CaseResult, ForeignLineError, line_of, read_line
from emulator.trace.files import RunFiles
from emulator.trace.seals import BrokenSealError

PARTS = "parts"
_SUFFIX = ".jsonl"


class PartWriter:
    """Writes one part.

    Args:
        folder: of all parts.
        campaign: digest of the campaign.
        files: to write with.
    """

    def __init__(self, folder: Path, campaign: str, files: RunFiles) -> None:
        self._campaign = campaign
        host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())
        self._path = folder / f"{host}-{os.getpid()}-{time.time_ns()}{_SUFFIX}"
        self._files = files
        self._created = False

    def append(self, case_result: CaseResult) -> None:
        """Append a line.

        Raises:
            OSError: it cannot be written.
        """
        if not self._created:
            self._files.create(self._path, b"")
            self._created = True
        self._files.append(self._path, f"{line_of(case_result, self._campaign)}\n".encode())


class PartsReader:
    """Reads the lines of all parts, each line once.

    Args:
        folder: of all parts.
        campaign: digest of the campaign; empty: its lines name none.
    """

    def __init__(self, folder: Path, campaign: str) -> None:
        self._folder = folder
        self._campaign = campaign
        self._read_bytes: dict[Path, int] = {}
        self._read_lines: dict[Path, int] = {}
        self.damages: list[str] = []
        """A sentence for each damaged line."""
        self.foreign: list[str] = []
        """A sentence for each line of another campaign, which counts nowhere."""

    def news(self) -> Iterator[CaseResult]:
        """What was appended since the last call.

        Raises:
            OSError: a part cannot be read.
        """
        for path in sorted(self._folder.iterdir()):
            if path.suffix == _SUFFIX and not path.name.startswith("."):
                yield from self._news_of(path)

    def _news_of(self, path: Path) -> Iterator[CaseResult]:
        for line in read_lines(path, self._read_bytes.get(path, 0)):
            self._read_bytes[path] = self._read_bytes.get(path, 0) + len(line) + 1
            number = self._read_lines[path] = self._read_lines.get(path, 0) + 1
            try:
                case_result = read_line(line, self._campaign)
            except (BrokenSealError, KeyError, TypeError, ValueError) as error:
                self.damages.append(f"{path}:{number} is damaged and was left out: {error}")
            except ForeignLineError as error:
                self.foreign.append(f"{path}:{number} is a result {error}; remove the line")
            else:
                yield case_result

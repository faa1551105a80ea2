"""What mqadmin prints of a real cluster and of ours, in a form in which both can be compared."""

import json
import re
from pathlib import Path

RECORDED = Path(__file__).with_name("mqadmin_answers.json")
"""Mapping of lines to what a real cluster let mqadmin print; `about` says which cluster, when and where."""
RECORDED_WITH_USERS = Path(__file__).with_name("mqadmin_users_answers.json")
"""The same of a broker with authentication and authorization; pairs, since the order of the lines counts."""
_REPLACED = (
    # Of logging, of Java's stack traces, and of what depends on the machine and the moment.
    (re.compile(r"(?m)^\d\d:\d\d:\d\d,\d{3} \|-.*\n?"), ""),
    (re.compile(r"(?m)^\s*at .*\n?|^\s*\.\.\. \d+ more\n?"), ""),
    (re.compile(r"\d+\.\d+\.\d+\.\d+(:\d+)?"), "ADDRESS"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(,\d+)?"), "TIME"),
    (re.compile(r"ADDRESS@[^\s,/\]]+"), "CLIENT"),
    (re.compile(r"\b[0-9A-F]{28,}\b"), "ID"),
    (re.compile(r"(?<!CODE: )(?<![\w.])-?\d+(\.\d+)?(?=\b|ms)"), "N"),
    (re.compile(r"N( N)+"), "N"),
    (re.compile(r"language=(JAVA|PYTHON)|\b(JAVA|PYTHON)\b"), "LANGUAGE"),
    (re.compile(r"[ \t]+"), " "),
)


def normalised(text: str, *, nameserver: str, broker: str, scratch: str) -> list[str]:
    """The lines of an output, each once and sorted, without addresses, numbers, instants and stack traces."""
    for place, name in ((scratch, "SCRATCH"), (nameserver, "NS"), (broker, "BROKER")):
        text = text.replace(place, name)
    for pattern, replacement in _REPLACED:
        text = pattern.sub(replacement, text)
    return sorted({line.strip() for line in text.splitlines() if line.strip()})


def subcommands() -> list[str]:
    """The names of all subcommands that `MQAdminStartup` of 5.3.3 registers."""
    names: list[str] = json.loads(RECORDED.read_text())["subcommands"]
    return names


def recorded() -> dict[str, list[str]]:
    """Line of a subcommand -> what a real cluster let it print."""
    answers: dict[str, list[str]] = json.loads(RECORDED.read_text())["answers"]
    return answers


def recorded_with_users() -> list[tuple[str, list[str]]]:
    """(line, what a real broker with users let it print), in the order in which they were run."""
    return [(line, printed) for line, printed in json.loads(RECORDED_WITH_USERS.read_text())["answers"]]

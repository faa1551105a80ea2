"""Writes the page of mqadmin's subcommands from the table of their tests: `python -m project.mqadmin_page`."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from guests.mqadmin_answers import RECORDED
from guests.mqadmin_table import DIFFERENCES, SUBCOMMANDS

PAGE = Path(__file__).parents[2] / "examples" / "guests" / "MQADMIN.md"


def page() -> str:
    """The whole page."""
    return "\n".join([*_head(), *_rows()]) + "\n"


def _head() -> Iterator[str]:
    about = json.loads(RECORDED.read_text())["about"]
    names = dict.fromkeys(line.split(" ")[0] for line, _ in SUBCOMMANDS)
    same = len(SUBCOMMANDS) - len(DIFFERENCES)
    yield "# What mqadmin prints of an emulated cluster"
    yield ""
    yield "Generated from `tests/guests/mqadmin_table.py` by `make reference`; do not edit."
    yield ""
    yield f"The {len(names)} subcommands of mqadmin {about['release']} were run on a real cluster, in"
    yield f"{len(SUBCOMMANDS)} lines ({about['machine']}, recorded {about['recorded']}), and are run on ours by"
    yield f"`make guests`. The real one was {about['cluster']}."
    yield "Outputs are compared line by line, without addresses, numbers, instants and stack traces; codes of errors"
    yield f"count. Of {len(SUBCOMMANDS)} lines {same} print the same."
    yield ""
    yield "NS is the nameserver's address, BROKER that of broker-a; the other words in capitals are files and the id of"
    yield "a message."
    yield ""


def _rows() -> Iterator[str]:
    yield "| line | prints the same | else why not |"
    yield "|---|---|---|"
    for line, _ in SUBCOMMANDS:
        reason = DIFFERENCES.get(line)
        yield f"| `{line}` | {'no' if reason else 'yes'} | {reason or ''} |"


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE}\n")

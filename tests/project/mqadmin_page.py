"""Writes the page of mqadmin's subcommands from the table of their tests: `python -m project.mqadmin_page`."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from guests.mqadmin_answers import RECORDED, RECORDED_WITH_USERS, recorded_with_users
from guests.mqadmin_table import DIFFERENCES, DIFFERENCES_WITH_USERS, SUBCOMMANDS

PAGE = Path(__file__).parents[2] / "examples" / "guests" / "MQADMIN.md"


def page() -> str:
    """The whole page."""
    without_users = _rows((line for line, _ in SUBCOMMANDS), DIFFERENCES)
    with_users = _rows((line for line, _ in recorded_with_users()), DIFFERENCES_WITH_USERS)
    return "\n".join([*_head(), *without_users, *_head_with_users(), *with_users]) + "\n"


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


def _head_with_users() -> Iterator[str]:
    about = json.loads(RECORDED_WITH_USERS.read_text())["about"]
    lines = recorded_with_users()
    yield ""
    yield "## Users and policies"
    yield ""
    yield f"{len(lines)} more lines were run on a real broker with ACL 2.0, one after the other. There were"
    yield f"{about['cluster']}."
    yield f"mqadmin signed as that user. Of the lines {len(lines) - len(DIFFERENCES_WITH_USERS)} print the same."
    yield ""


def _rows(lines: Iterable[str], differences: Mapping[str, str]) -> Iterator[str]:
    yield "| line | prints the same | else why not |"
    yield "|---|---|---|"
    for line in lines:
        reason = differences.get(line)
        yield f"| `{line}` | {'no' if reason else 'yes'} | {reason or ''} |"


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE}\n")

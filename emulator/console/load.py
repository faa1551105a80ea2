"""Verbs that report the load of a cluster: what its nodes ask of one another, and how far groups are behind.

They read the trace of the run so far, as `rmqemu analyze` does when it has ended, so both report the same.
"""

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import trio

from emulator.base.text import nearest
from emulator.console.time_verbs import span_ms
from emulator.console.verb import Lines, Verb, VerbError, Words

if TYPE_CHECKING:
    from emulator.console.session import Session

_RECENT_MS = 10_000
_READER = "emulator.console.load_so_far"


async def _rates(session: "Session", words: Words) -> Lines:
    """Exchanges of the last seconds, the most frequent first, and the request storms that go on."""
    recent_ms = span_ms(words[0]) if words else _RECENT_MS
    return await _read(session, {"recent_ms": recent_ms, "now_ns": session.now_ms * 1_000_000})


async def _lag(session: "Session", words: Words) -> Lines:
    """The queues in which messages wait for a group."""
    from emulator.analysis.inputs.facts import facts_of  # noqa: PLC0415 - else the start of every command would wait

    scenario = session.cluster.scenario
    groups = tuple(dict.fromkeys(consumer.group for consumer in scenario.consumers))
    if words and words[0] not in groups:
        raise VerbError(nearest("group", words[0], groups))
    broker_names = facts_of(scenario, session.now_ms * 1_000_000).broker_names
    return await _read(session, {"broker_names": dict(broker_names), "group": "".join(words)})


async def _read(session: "Session", request: dict[str, Any]) -> Lines:
    """Read the trace of the run so far; in `live` another process does, since the cluster goes on meanwhile.

    Raises:
        VerbError: the trace cannot be written, or not be read.
    """
    session.flush_trace()
    run = session.run_directory.resolve()
    if not session.cluster.world.clock.follows_wall:
        from emulator.console.load_so_far import lines_of  # noqa: PLC0415 - as above

        return lines_of(run, request)
    command = [sys.executable, "-P", "-m", _READER, str(run)]
    requested = json.dumps(request).encode()
    try:
        done = await trio.run_process(command, stdin=requested, capture_stdout=True, capture_stderr=True)
    except (subprocess.CalledProcessError, OSError) as error:
        raise VerbError(f"the trace cannot be read: {_last_line(error)}") from None
    return tuple(json.loads(done.stdout))


def _last_line(error: subprocess.CalledProcessError | OSError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    lines = str(error.stderr, "utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else str(error)


LOAD = (
    Verb("rates", "[FOR]", "what nodes asked of one another in the last 10s, or FOR, and request storms", _rates, 0, 1),
    Verb("lag", "[GROUP]", "messages that wait for groups, by queue", _lag, 0, 1),
)

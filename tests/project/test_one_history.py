"""What a row about owners or processes means is decided in `emulator.history`, and a second time in the pipeline."""

import ast

from project.house import modules, parsed, where

INTERPRETERS = ("emulator/history/", "emulator/pipeline/")
EVENTS = ("OwnershipEvent", "LifecycleEvent")
WRITES = (
    "emulator/cluster/administrator.py",
    "emulator/guests/views/client.py",
    "emulator/guests/views/guest_views.py",
    "emulator/machine/host.py",
    "emulator/machine/process.py",
    "emulator/testing/stage.py",
)
"""They write such rows."""
WORDS = (
    "emulator/analysis/rendering/picture.py",
    "emulator/state/event_lines.py",
    "emulator/web/marks.py",
    "emulator/why/missing_signals.py",
    "emulator/why/words.py",
)
"""They say or draw what has happened, event by event."""
REQUESTS = (
    "emulator/analysis/measures/unsupported_requests.py",
    "emulator/state/live.py",
    "emulator/why/finding.py",
)
"""They list what was asked for and is not emulated, which is no part of a life."""
EVIDENCE = (
    "emulator/analysis/oracles/lost_messages.py",
    "emulator/why/absence.py",
    "emulator/why/answer.py",
    "emulator/why/backlog.py",
    "emulator/why/chain.py",
    "emulator/why/first_offset.py",
    "emulator/why/holders.py",
    "emulator/why/lag.py",
    "emulator/why/message.py",
    "emulator/why/no_owner.py",
    "emulator/why/stalls.py",
    "emulator/why/topic.py",
)
"""They look up rows as evidence; who owned or lived at an instant they ask the history."""
CAUSES = (
    "emulator/analysis/attribution/fates.py",
    "emulator/analysis/attribution/members.py",
    "emulator/analysis/inputs/causes.py",
    "emulator/analysis/inputs/disturbances.py",
)
"""They take events for disturbances, by their kind."""
MEASURES = (
    "emulator/analysis/inputs/messages.py",
    "emulator/analysis/inputs/offsets.py",
    "emulator/analysis/measures/failed_starts.py",
    "emulator/analysis/measures/hand_overs.py",
    "emulator/analysis/measures/rebalances.py",
)
"""They measure what begins with one event, such as where a new owner starts; spans they ask the history for."""


def _names_an_event(node):
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in EVENTS


def test_only_the_history_interprets_rows_of_owners_and_processes():
    naming = [
        where(path)
        for path in modules("emulator")
        if not where(path).startswith(INTERPRETERS) and any(map(_names_an_event, ast.walk(parsed(path))))
    ]

    assert naming == sorted((*WRITES, *WORDS, *REQUESTS, *EVIDENCE, *CAUSES, *MEASURES)), (
        "ask emulator.history who owns or lives; if a module must name such an event, say here why"
    )

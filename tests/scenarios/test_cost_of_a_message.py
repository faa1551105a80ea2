"""What a message costs from its send to its commit, in calls of Python functions: a count that no load changes."""

import sys

import pytest

from emulator.testing import TOPIC, a_scenario, play

pytestmark = pytest.mark.clusters

CALLS_MAX = 470
"""Per message, trio and the trace of this test included; 449 with Python 3.11, fewer with later ones."""


def cost(for_ms):
    """(calls, messages) of a run with one producer and one consumer."""
    calls = 0

    def count(_frame, event, _arg):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        trace = play(a_scenario(consumers=1, rate_per_s=250), for_ms=for_ms)
    finally:
        sys.setprofile(None)
    return calls, len(trace.select("messages", event="stored", topic=TOPIC))


def test_a_message_costs_a_few_hundred_calls():
    cost(4_000)  # what is made on first use
    (some, few), (more, many) = cost(4_000), cost(8_000)

    assert many - few == 1_000
    assert (more - some) / (many - few) < CALLS_MAX

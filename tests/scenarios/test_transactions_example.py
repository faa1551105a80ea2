"""The example of transactions does what it says."""

from pathlib import Path

import pytest

from emulator.run import run_scenario
from emulator.spec import load
from emulator.testing import TOPIC
from emulator.trace.schema import MESSAGES, RPC
from nodes.protocol.codes import RequestCode
from support.run_rows import table_rows

S = 1_000_000_000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    example = Path(__file__).parents[2] / "examples" / "transactions.toml"
    return run_scenario(load(example), runs=tmp_path_factory.mktemp("runs")).path


def requested(path, node):
    rows = table_rows(path, RPC, ("t_ns", "dst", "event"), ("code", "==", int(RequestCode.CHECK_TRANSACTION_STATE)))
    return [row["t_ns"] / S for row in rows if (row["dst"], row["event"]) == (node, "delivered")]


def ended(path, node):
    rows = table_rows(path, RPC, ("t_ns", "src", "event"), ("code", "==", int(RequestCode.END_TRANSACTION)))
    return [row["t_ns"] / S for row in rows if (row["src"], row["event"]) == (node, "delivered")]


def test_who_commits_does_so_after_two_seconds_and_dies_at_the_twenty_first_order(path):
    rows = table_rows(path, MESSAGES, ("t_ns", "event"), ("topic", "==", TOPIC))
    stored = [row["t_ns"] / S for row in rows if row["event"] == "stored"]
    assert len([at_s for at_s in stored if at_s < 31]) == 15  # one after the other
    assert [at_s for at_s in stored if 41 < at_s < 61] == []


def test_all_that_is_not_known_is_asked_about_and_comes_then(path):
    of_both = [at_s for node in ("shop-1", "shop-2") for at_s in requested(path, node)]
    assert sorted(dict.fromkeys(int(at_s) // 30 * 30 for at_s in of_both)) == [30, 60, 90]
    assert len([at_s for at_s in requested(path, "shop-1") if at_s < 40]) > 10
    # What shop-2 began from 25 s to 55 s, and the order at which shop-1 died.
    second = [at_s for at_s in requested(path, "shop-2") if 60 <= at_s < 70]
    assert len(second) == 31 + 1
    assert [at_s for at_s in requested(path, "shop-1") if 60 <= at_s < 70] == []
    assert len([at_s for at_s in ended(path, "shop-2") if second[0] < at_s < second[0] + 0.5]) >= len(second)

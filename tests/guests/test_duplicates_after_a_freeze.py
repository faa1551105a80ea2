"""A push consumer of RocketMQ's own client is frozen, is given up, and comes back: it consumes the freeze again.

With the shipped 120 s of patience and a freeze of 165 s a real cluster counted 4132 to 4145 duplicates at 25 messages
a second, and this one 4140; here all is shorter by options that both have.
"""

import time
from pathlib import Path

import attrs
import pytest

import emulator
from emulator.notebook.handle import ClusterHandle
from emulator.trace.schema import MESSAGES
from guests.java_application import JavaApplication
from support.run_rows import table_rows

HERE = Path(__file__).parent
pytestmark = pytest.mark.guests
FREEZE_S, GOOD_S = 45, 10
PER_S = 12.5
"""In each queue."""
QUEUES = 2
"""Of each of four members."""
TIMES = 3
"""Freezes, if need be: heartbeat and rebalance are overdue together when it comes back, and where the rebalance asks
first, it finds itself on no list, gives its queues up, and reads them from where the others are.
"""


@attrs.frozen
class Storm:
    """What one freeze led to."""

    frozen_s: float
    twice: dict[int, int]
    """Queue -> messages that others had consumed while it stood still."""
    back_by: dict[int, int]
    """Queue -> how far the furthest commit went back."""


def is_a_member(cluster: ClusterHandle) -> bool:
    return "3 members: c1 c2 c3" not in str(cluster.views("billing"))


def one_freeze(runs: Path, class_path: str, how: str) -> Storm:
    with (
        emulator.launch(HERE / "storm.toml", mode="live", runs=runs) as cluster,
        JavaApplication(class_path, "consume", cluster.namesrv_addr, "orders", 5_000) as billing,
    ):
        billing.wait_for("consumed", count=round(GOOD_S * PER_S * QUEUES))
        begun_s = time.monotonic()
        cluster.suspend("guest") if how == "suspend guest" else billing.freeze()
        time.sleep(FREEZE_S)
        given_up = not is_a_member(cluster)
        meanwhile = billing.reported("consumed", begun_s + 1)
        cluster.resume("guest") if how == "suspend guest" else billing.thaw()
        frozen_s = time.monotonic() - begun_s
        time.sleep(GOOD_S)
        assert (given_up, meanwhile, is_a_member(cluster)) == (True, [], True)
        consumed = [tuple(map(int, line.split()[2:4])) for line in billing.reported("consumed")]
        path = cluster.path
    rows = list(table_rows(path, MESSAGES, ("event", "queue_id", "offset"), ("topic", "==", "orders")))
    by_others = dict.fromkeys((row["queue_id"], row["offset"]) for row in rows if row["event"] == "consumed")
    twice: dict[int, int] = {}
    for queue_id, offset in consumed:
        twice[queue_id] = twice.get(queue_id, 0) + ((queue_id, offset) in by_others)
    committed: dict[int, int] = {}
    back_by: dict[int, int] = {}
    for row in (row for row in rows if row["event"] == "committed"):
        queue_id, offset = int(row["queue_id"]), int(row["offset"])
        back_by[queue_id] = max(back_by.get(queue_id, 0), committed.get(queue_id, 0) - offset)
        committed[queue_id] = offset
    return Storm(frozen_s, twice, back_by)


@pytest.mark.trap("X20")
@pytest.mark.parametrize("how", ["SIGSTOP", "suspend guest"])
def test_it_gets_its_queues_back_and_consumes_again_what_came_during_the_freeze(tmp_path, class_path, how):
    for time_ in range(TIMES):
        storm = one_freeze(tmp_path / str(time_), class_path, how)
        came = storm.frozen_s * PER_S
        hit = [queue_id for queue_id, count in storm.twice.items() if 0.9 * came < count < 1.3 * came]
        if len(hit) == QUEUES:
            break
    assert len(hit) == QUEUES, storm
    # It has asked no one where to go on: what it commits lies behind what others have committed meanwhile.
    assert all(storm.back_by[queue_id] > 0.8 * came for queue_id in hit), storm

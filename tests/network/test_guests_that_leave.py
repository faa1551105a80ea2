"""When a client of a guest is gone: its connections end, it unregisters, it is silent, or the broker was down."""

import pytest

from emulator.guests.views.guest_views import BACK_MS, HEARTBEAT_MS, SCAN_EVERY_MS
from emulator.guests.views.holds import PULL_AGAIN_MS
from emulator.testing.worlds import process_of
from support.watched_nodes import BROKER, NAMESERVER, consumer, executed, guest_rows, owned


def test_a_dead_broker_takes_no_queue_from_anybody_and_gives_time_to_come_back():
    async def scene(stage):
        broker, other = stage.member("c@1"), stage.dial("broker-b")
        other.heartbeat("c@1", consumer())
        broker.pull(0)
        await stage.hosts[BROKER].kill()
        broker.end(by_node=True)
        for _ in range(120):
            other.heartbeat("c@1", consumer())
            await stage.after(1_000)
        before = len(stage.world.fabric.listeners)
        await stage.hosts[BROKER].restart()
        process_of(stage.hosts[BROKER]).listen(10_911, None)
        for _ in range(20):
            other.heartbeat("c@1", consumer())
            await stage.after(1_000)
        return before

    run = executed(scene)

    assert run.result == 2
    assert owned(run) == [("shop", "acquired", 0), ("shop", "dropped", 0)]
    (dropped,) = run.trace.select("ownership", event="dropped")
    assert 120_000 < dropped["t_ns"] / 1e6 < 120_000 + PULL_AGAIN_MS + 2 * SCAN_EVERY_MS


def test_who_says_farewell_gives_up_all_of_that_group_and_is_stopped_when_its_connections_end():
    async def scene(stage):
        broker = stage.member("c@1", "shop", consumer(), consumer(group="h"))
        broker.pull(0)
        broker.pull(0, group="h")
        broker.unregister("c@1")
        await stage.after(1_000)
        broker.unregister("c@1", "h")
        broker.end()
        await stage.after(1_000)

    run = executed(scene)

    assert guest_rows(run, "ownership", "event", "group") == [
        ("acquired", "g"),
        ("acquired", "h"),
        ("dropped", "g"),
        ("dropped", "h"),
    ]
    assert guest_rows(run, "lifecycle", "event") == [("started",), ("ready",), ("stopped",)]


def test_all_connections_at_once_are_the_end_of_a_process_and_what_comes_then_is_the_next_one():
    async def scene(stage):
        nameserver, broker = stage.dial(NAMESERVER), stage.member("c@1")
        broker.end()
        nameserver.end()
        await stage.after(1_000)
        stage.member("c@2")
        return stage.names

    run = executed(scene)

    assert guest_rows(run, "lifecycle", "node", "incarnation", "event") == [
        ("shop", 1, "started"),
        ("shop", 1, "ready"),
        ("shop", 1, "killed"),
        ("shop", 2, "started"),
        ("shop", 2, "ready"),
    ]
    assert run.result == {"c@1": "shop", "c@2": "shop"}


@pytest.mark.parametrize(("by_node", "patience_ms"), [(False, BACK_MS), (True, HEARTBEAT_MS)])
def test_who_does_not_come_back_after_its_last_connection_is_over(by_node, patience_ms):
    async def scene(stage):
        stage.dial(NAMESERVER)
        stage.member("c@1").end(by_node=by_node)
        await stage.after(60_000)

    (killed,) = executed(scene).trace.select("lifecycle", event="killed")

    assert patience_ms <= killed["t_ns"] / 1e6 <= patience_ms + SCAN_EVERY_MS


def test_who_closes_a_connection_and_dials_again_has_never_been_away():
    async def scene(stage):
        stage.dial(NAMESERVER)
        broker = stage.member("c@1")
        broker.pull(0)
        broker.end()
        await stage.after(3_000)
        again = stage.dial()
        for _ in range(60):
            again.nothing_found(again.pull(0))
            await stage.after(1_000)

    run = executed(scene)

    assert owned(run) == [("shop", "acquired", 0)]
    assert guest_rows(run, "lifecycle", "event") == [("started",), ("ready",)]


def test_a_world_that_ends_says_nothing_of_its_guests():
    async def scene(stage):
        nameserver, broker = stage.dial(NAMESERVER), stage.member("c@1")
        nameserver.end()
        broker.end()

    assert guest_rows(executed(scene), "lifecycle", "event") == [("started",), ("ready",)]

"""What watchers of a cluster are reported, under virtual time."""

import json

import attrs
import pytest
import trio

from emulator.testing import ConsoleUser, a_scenario, run_at_console
from emulator.web.feed import PAST, WATCHERS_MAX, PageFeed, TooManyWatchersError
from emulator.web.offers import offer


def watched(tmp_path, sitting):
    """Run a cluster of two brokers and two consumers with a feed; the sitting is given both."""

    async def with_a_feed(me: ConsoleUser) -> None:
        feed = PageFeed(me.session)
        me.session.cluster.world.recorder.listeners.append(feed.note)
        me.session.cluster.world.recorder.batch_listeners.append(feed.on_batch)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(feed.push)
            await sitting(me, feed)
            nursery.cancel_scope.cancel()
        done.append(True)

    done = []
    run_at_console(
        attrs.evolve(a_scenario(consumers=2, brokers=("broker-a", "broker-b")), run_for_ms=60_000),
        tmp_path,
        with_a_feed,
    )
    assert done


def received(messages):
    """What waits for a watcher."""
    found = []
    while True:
        try:
            found.append(json.loads(messages.receive_nowait()))
        except trio.WouldBlock:
            return found


def test_a_new_watcher_sees_everything_and_then_only_what_changes(tmp_path):
    async def sitting(me, feed):
        await me.at_ms(10_000)
        with feed.watch() as messages:
            (whole,) = received(messages)
            assert whole["now_ms"] == 10_000
            assert whole["nodes"]["c1"]["state"] == "running"
            assert whole["queues"]
            assert all(len(queue["owners"]) == 1 for queue in whole["queues"].values())
            await me.at_ms(11_100)
            quiet = received(messages)
            assert [message["now_ms"] for message in quiet] == [10_000, 10_200, 10_400, 10_600, 10_800, 11_000]
            assert all("nodes" not in message and "links" not in message for message in quiet)
            await me.say("kill c1")
            await me.say("cut c2 broker-a")
            await me.at_ms(11_500)
            changed, *_ = received(messages)
            assert list(changed["nodes"]) == ["c1"]
            assert list(changed["faults"]) == ["kill-1", "cut-1"]
            assert sorted(changed["links"]["cut-1"]["pairs"]) == [["broker-a", "c2"], ["c2", "broker-a"]]
            assert any("FAULT begin" in line for line in changed["lines"])
            await me.say("heal all")
            await me.at_ms(12_000)
            healed, *_ = received(messages)
            assert healed["faults"] == {"kill-1": None, "cut-1": None}
            assert healed["links"] == {"cut-1": None}

    watched(tmp_path, sitting)


def test_a_fault_on_all_links_is_reported_as_one(tmp_path):
    async def sitting(me, feed):
        await me.at_ms(10_000)
        await me.say("loss 20")
        link = feed.whole()["links"]["loss-1"]
        assert (link["everywhere"], link["pairs"], link["label"]) == (True, [], "loss 20%")
        await me.say("delay 40")
        assert feed.whole()["links"]["delay-1"]["label"] == "delay 40 ms"

    watched(tmp_path, sitting)


def test_views_report_who_differs_and_forget_the_dead(tmp_path):
    async def sitting(me, feed):
        await me.at_ms(10_000)
        view = next(view for view in feed.whole()["views"].values() if view["kind"] == "consumer_ids")
        assert not view["differs"]
        await me.say("cut c2 broker-a")
        await me.say("kill c2")
        await me.at_ms(12_000)
        view = next(view for view in feed.whole()["views"].values() if view["kind"] == "consumer_ids")
        assert view["differs"]
        assert [holders["nodes"] for holders in view["roles"]["broker"]] == [["broker-a"], ["broker-b"]]
        assert '"c2"' not in json.dumps(feed.whole()["views"])

    watched(tmp_path, sitting)


def test_who_reads_nothing_is_left_behind_and_others_are_not(tmp_path):
    async def sitting(me, feed):
        await me.at_ms(5_000)
        with feed.watch() as deaf, feed.watch() as reading:
            got = 0
            for instant_s in range(6, 16):
                await me.at_ms(instant_s * 1_000)
                got += len(received(reading))
            assert got > 45
            waiting = []
            with pytest.raises(trio.EndOfChannel):  # noqa: PT012 - after so many messages
                while True:
                    waiting.append(deaf.receive_nowait())
            assert len(waiting) == 25

    watched(tmp_path, sitting)


def test_there_is_room_for_so_many_watchers_and_again_when_one_goes(tmp_path):
    async def sitting(me, feed):
        await me.at_ms(1_000)
        crowd = [feed.watch() for _ in range(WATCHERS_MAX)]
        for item in crowd:
            item.__enter__()
        with pytest.raises(TooManyWatchersError, match="16 pages are open already"), feed.watch():
            pass
        crowd[0].__exit__(None, None, None)
        with feed.watch():
            pass

    watched(tmp_path, sitting)


def test_what_was_before_can_be_asked_for_and_is_as_it_was_then(tmp_path):
    async def sitting(me, feed):
        await me.at_ms(10_000)
        before = {name: feed.whole()[name] for name in PAST}
        before = json.loads(json.dumps(before))
        await me.say("cut c2 broker-a")
        await me.say("kill c1")
        await me.at_ms(15_000)
        after = {name: feed.whole()[name] for name in PAST}
        assert all(after[name] != before[name] for name in ("nodes", "faults", "links", "views", "queues"))
        assert feed.past(10_000) == {"at_ms": 10_000, **before}
        assert feed.past(15_000) == {"at_ms": 15_000, **after}
        assert feed.past(99_000)["at_ms"] == 15_000

    watched(tmp_path, sitting)


def test_a_nameserver_notifies_its_brokers_topics_and_who_asks_it(tmp_path):
    async def sitting(me, feed):
        await me.at_ms(20_000)
        me.session.cluster.world.recorder.flush()
        whole = feed.whole()
        known = whole["nameservers"]["ns-1"]
        assert list(known["brokers"]) == ["broker-a", "broker-b"]
        assert known["brokers"]["broker-a"] == {"0": f"{whole['nodes']['broker-a']['ip']}:10911"}
        assert known["topics"] >= 2
        assert known["followers"] == ["c1", "c2"]
        assert 10_000 <= whole["heard"]["ns-1 broker-a"] <= 20_000
        assert whole["heard"]["broker-a c1"] <= 20_000
        await me.say("kill broker-b")
        await me.say("kill c2")
        await me.at_ms(21_000)
        known = feed.whole()["nameservers"]["ns-1"]
        assert (list(known["brokers"]), known["followers"]) == (["broker-a"], ["c1"])

    watched(tmp_path, sitting)


def test_a_second_reports_its_load_and_what_is_wrong_in_it(tmp_path):
    async def sitting(me, feed):
        for second in range(15):
            await me.at_ms(second * 1_000)
            me.session.cluster.world.recorder.flush()  # once a second of wall time, which does not pass here
            if second == 10:
                await me.say("kill c1, c2")
        seconds = feed.whole()["seconds"]
        assert list(seconds) == [str(second) for second in range(12)]
        requested = sum(entry["counts"].get("requests without messages", 0) for entry in seconds.values())
        assert requested > 20
        assert seconds["10"]["counts"]["no owner"] > 0
        (mark,) = [mark for mark in feed.whole()["marks"].values() if mark["what"] == "fault"]
        assert (mark["text"], mark["from_ms"], mark["to_ms"]) == ("kill c1, c2", 10_000, None)
        assert 10_000 <= mark["shown_ms"] <= 10_200
        assert list(feed.past(mark["shown_ms"])["faults"]) == ["kill-1"]
        assert feed.past(mark["shown_ms"] - 1)["faults"] == {}
        undo = [offer(me.session.operator.active["kill-1"])]
        assert feed.whole()["offers"] == {"c1": undo, "c2": undo}

    watched(tmp_path, sitting)

"""Faults of certain frames: by code, group, topic, direction, number, and by what a node is doing."""

import pytest

from emulator.testing import RowOfTrace, Stage, Trace, a_scenario, execute
from fault_kinds.at_work import busy_cluster
from fault_kinds.by_script import broken, once
from nodes.protocol.codes import RequestCode
from nodes.rpc.errors import RemotingTimeoutError
from support.asking_guest import a_guest
from support.grouped import MASTER, a_group, stages

BEGIN_MS, END_MS = 65_000, 125_000
HEART_BEAT = int(RequestCode.HEART_BEAT)
MEMBERS = int(RequestCode.GET_CONSUMER_LIST_BY_GROUP)


def dropped(trace: Trace, **wanted: object) -> list[RowOfTrace]:
    return trace.select("rpc", event="dropped", detail="it", **wanted)


def executed(line: str, *, begin_ms: float = BEGIN_MS, end_ms: float = END_MS) -> Trace:
    return broken(busy_cluster(1), once(line, begin_ms, end_ms), for_ms=end_ms + 1_000)


def heart_beats(trace: Trace, src: str) -> list[tuple[float, str, str]]:
    """(sent, to whom, fate) of the requests that left during the fault, in order."""
    rows = trace.select("rpc", code=HEART_BEAT, src=src, kind="request")
    return sorted((row.sent_ms, row.dst, row.event) for row in rows if BEGIN_MS <= row.sent_ms < END_MS)


@pytest.mark.parametrize(
    ("words", "fates"), [("next 1", "d.."), ("next 2", "dd."), ("skip 1 next 1", ".d."), ("", "ddd")]
)
def test_the_next_few_vanish_after_some_have_passed(words, fates):
    beats = heart_beats(executed(f"drop HEART_BEAT from c1 to broker-a {words}"), "c1")

    to_a = "".join("d" if fate == "dropped" else "." for _, dst, fate in beats if dst == "broker-a")
    assert len(to_a) >= 2
    assert to_a[:3] == fates[: len(to_a)]
    assert not [beat for beat in beats if beat[1] == "broker-b" and beat[2] == "dropped"]


def test_the_number_counts_over_all_links_together():
    trace = executed("drop HEART_BEAT next 3")

    assert len(dropped(trace)) == 3
    assert len(dict.fromkeys(row.src for row in dropped(trace))) > 1


def test_a_code_means_requests_and_their_answers():
    trace = executed(f"drop {MEMBERS}")
    one_way = executed(f"drop {MEMBERS} from broker-a to c1")

    assert [row.code for row in dropped(trace)] == [MEMBERS] * len(dropped(trace))
    assert dropped(trace, kind="request") != [] == dropped(trace, kind="response")
    answers = dropped(one_way)
    assert answers != []
    assert [(row.src, row.dst, row.kind) for row in answers] == [("broker-a", "c1", "response")] * len(answers)
    assert (
        trace.select("rpc", code=MEMBERS, kind="request", event="delivered", after_ms=BEGIN_MS, until_ms=END_MS) == []
    )


@pytest.mark.parametrize(("line", "kinds"), [("drop topic orders", ["request"]), ("drop group pg", ["request"])])
def test_sends_are_known_by_topic_and_group_also_with_names_of_one_letter(line, kinds):
    trace = executed(line, end_ms=70_000)

    sends = dropped(trace, code=int(RequestCode.SEND_MESSAGE_V2))
    assert list(dict.fromkeys(row.kind for row in sends)) == kinds
    assert trace.select("messages", event="stored", topic="orders", after_ms=BEGIN_MS + 1, until_ms=70_000) == []


def test_batches_and_replies_of_version_2_have_names_of_one_letter_too():
    async def script(stage: Stage) -> None:
        await stage.begin("drop topic orders")
        guest = await a_guest(stage)
        for code in (RequestCode.SEND_BATCH_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2):
            with pytest.raises(RemotingTimeoutError):
                await guest.ask("broker-a", code, guest.header("orders", {}), b"", timeout_ms=1_000)

    trace = execute(a_scenario(), script)
    assert [row.code for row in trace.select("rpc", event="dropped")] == [320, 325]


@pytest.mark.parametrize("line", ["drop SEND_MESSAGE_V2 topic b", "drop SEND_MESSAGE_V2 group g", "drop topic order"])
def test_other_topics_and_groups_pass(line):
    assert dropped(executed(line, end_ms=70_000)) == []


def test_a_group_is_read_in_the_headers_of_its_requests():
    trace = executed("drop group g", end_ms=90_000)

    codes = dict.fromkeys(row.code for row in dropped(trace))
    assert MEMBERS in codes
    assert int(RequestCode.PULL_MESSAGE) in codes
    assert int(RequestCode.SEND_MESSAGE_V2) not in codes
    assert HEART_BEAT not in codes  # its groups are in the body


def test_only_frames_that_are_meant_are_lost_by_chance():
    trace = executed("loss 100 c1 code HEART_BEAT")

    lost = dropped(trace)
    assert lost != []
    assert {(row.code, row.src) for row in lost} == {(HEART_BEAT, "c1")}


def test_only_frames_that_are_meant_are_delayed_and_none_is_overtaken():
    trace = executed("delay 500 c1 broker-a one-way code HEART_BEAT")
    rows = [
        row
        for row in trace.select("rpc", src="c1", dst="broker-a", event="delivered")
        if row.sent_ms >= BEGIN_MS and row.at_ms <= END_MS and row.kind != "connection"
    ]

    beats = [row for row in rows if row.code == HEART_BEAT]
    assert beats != []
    assert [row.at_ms - row.sent_ms for row in beats] == [501] * len(beats)
    by_connection: dict[int, list[float]] = {}
    for row in rows:
        by_connection.setdefault(row.connection, []).append(row.sent_ms)
    assert all(sent == sorted(sent) for sent in by_connection.values())
    others = [row.at_ms - row.sent_ms for row in rows if row.code != HEART_BEAT]
    assert 1 in others
    # What was sent right behind a heartbeat waits for it.
    assert max(others) > 1


def test_jitter_never_changes_the_order_on_a_connection():
    trace = executed("delay 10 c1 broker-a jitter 300", end_ms=BEGIN_MS + 20_000)
    rows = trace.select("rpc", src="c1", dst="broker-a", event="delivered", after_ms=BEGIN_MS)
    by_connection: dict[int, list[float]] = {}
    for row in rows:
        if row.kind != "connection":
            by_connection.setdefault(row.connection, []).append(row.sent_ms)

    assert sum(map(len, by_connection.values())) > 50
    assert all(sent == sorted(sent) for sent in by_connection.values())


def test_a_fault_during_the_start_means_the_frames_of_who_starts_only():
    async def deeds(breaker):
        stage = breaker.stage
        await stage.at_ms(30_000)
        await breaker.begin("it", "drop during starting")
        await stage.kill("c1")
        await stage.for_ms(1_000)
        stage.start("c1")
        await stage.for_ms(20_000)

    trace = broken(busy_cluster(1), deeds)

    (started,) = [row.at_ms for row in trace.select("lifecycle", node="c1", event="started", after_ms=30_000)]
    ready = [row.at_ms for row in trace.select("lifecycle", node="c1", event="ready", after_ms=started)]
    lost = dropped(trace)
    assert lost != []
    assert all("c1" in (row.src, row.dst) for row in lost)
    assert all(started <= row.sent_ms <= (ready or [float("inf")])[0] for row in lost)


def test_a_fault_while_one_stops_means_its_last_words():
    async def deeds(breaker):
        stage = breaker.stage
        await stage.at_ms(30_000)
        await breaker.begin("it", "drop UNREGISTER_CLIENT during stopping")
        await breaker.begin("other", "drop HEART_BEAT during stopping")
        await stage.stop("c1")
        await stage.for_ms(10_000)

    trace = broken(busy_cluster(1), deeds)

    lost = dropped(trace)
    assert [(row.code, row.src) for row in lost] == [(int(RequestCode.UNREGISTER_CLIENT), "c1")] * len(lost) != []
    assert [row.src for row in trace.select("rpc", event="dropped", detail="other", code=HEART_BEAT)] in ([], ["c1"])


# As shipped, a broker asks for the members of its group as old nameservers are asked: for the route of their topic.
@pytest.mark.parametrize("code", ["EXCHANGE_BROKER_HA_INFO", "GET_ROUTEINFO_BY_TOPIC"])
def test_a_master_stays_off_line_as_long_as_its_pre_online_requests_vanish(code):
    def online_after(line):
        async def deeds(breaker):
            stage = breaker.stage
            await stage.at_ms(20_000)
            await stage.kill(MASTER)
            await stage.for_ms(20_000)
            if line:
                await breaker.begin("it", line)
            stage.start(MASTER)
            await stage.for_ms(30_000)
            if line:
                await breaker.end("it")
            await stage.for_ms(20_000)

        trace = broken(a_group(), deeds)
        online = [at_ms for at_ms, value in stages(trace, MASTER, after_ms=40_000) if value == "online"]
        return online[0] - 40_000, dropped(trace)

    undisturbed_ms, _ = online_after("")
    disturbed_ms, lost = online_after(f"drop {code} during pre-online")

    assert undisturbed_ms < 15_000
    assert disturbed_ms > 30_000
    assert {row.code for row in lost} == {int(RequestCode[code])}
    assert all(MASTER in (row.src, row.dst) for row in lost)


def test_a_fault_during_pre_online_is_over_when_the_broker_is_online():
    async def deeds(breaker):
        stage = breaker.stage
        await stage.at_ms(20_000)
        await stage.kill(MASTER)
        await stage.for_ms(1_000)
        await breaker.begin("it", "delay 300 during pre-online")
        stage.start(MASTER)
        await stage.for_ms(30_000)

    trace = broken(a_group(), deeds)

    (online,) = [at_ms for at_ms, value in stages(trace, MASTER, after_ms=21_000) if value == "online"]
    rows = trace.select("rpc", src=MASTER, event="delivered", after_ms=21_000)
    assert [row for row in rows if row.sent_ms < online and row.at_ms - row.sent_ms >= 300] != []
    assert [row for row in rows if row.sent_ms > online and row.at_ms - row.sent_ms >= 300] == []

"""The one writer of the trace: numbering, causes, the digest, and what it hands on."""

import json
import math
import time
from contextvars import copy_context

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from emulator.machine.world import run_world
from emulator.testing.worlds import PORT, add_host, listening, process_of, until_ms
from emulator.time.failure import Failure
from emulator.time.mode import TimeMode
from emulator.time.timeline import Timeline
from emulator.trace import recorder as recorder_module
from emulator.trace.files import RunFiles
from emulator.trace.journal import JOURNAL
from emulator.trace.recorder import NodeIdentity, Recorder, canonical
from emulator.trace.schema import BELIEFS, LIFECYCLE, TABLES, TraceLevel
from emulator.trace.segments import SegmentWriter
from emulator.trace.stored import stored_trace
from nodes.beliefs import (
    AdminRecord,
    Belief,
    BeliefKind,
    CallTimedOut,
    Lifecycle,
    LifecycleEvent,
    MessageEvent,
    MessageRecord,
    Ownership,
    OwnershipEvent,
    PassOutcome,
    RebalancePass,
)
from nodes.cause import cause
from nodes.protocol.command import Command
from nodes.rpc.client import RpcClient
from nodes.rpc.server import RpcServer

NODE = NodeIdentity("c-1", "consumer", 2)
EVENTS = (
    Belief(BeliefKind.ROUTE, "orders", {"b": 1, "a": [1, 2]}, "127.1.1.1:9876"),
    Belief(BeliefKind.ROUTE, "orders", None),
    Ownership(OwnershipEvent.ACQUIRED, "g", "orders", "broker-a", 3, 17),
    MessageRecord(MessageEvent.CONSUMED, "g", "orders", "broker-a", 3, 16, "c-1@1"),
    Lifecycle(LifecycleEvent.READY, "g"),
    CallTimedOut(4, "127.1.2.1:10911", 34, 9),
    RebalancePass(PassOutcome.BALANCED, "g", "orders", "client", 9, 2, 8, 4, "127.1.2.1:10911", 1, 240),
    AdminRecord("DELETE_TOPIC_IN_BROKER", "orders", "", "broker-a", "127.1.200.1:32769", 8, {"force": "true"}),
)


def filled(writer, events=2_000, batch_rows=None, monkeypatch=None):
    if batch_rows is not None:
        monkeypatch.setattr(recorder_module, "_BATCH_ROWS", batch_rows)
    recorder = Recorder(Timeline(), writer)
    copy_context().run(fill, recorder, events)
    return recorder


def fill(recorder, events):
    timeline = recorder._timeline
    for number in range(events):
        timeline.now_ns += 1_000
        cause.set(number // 2)
        recorder.event(NODE, EVENTS[number % len(EVENTS)])
        if number % 50 == 0:
            recorder.begin_cause("c-1", f"timer-{number}")
        if number % 99 == 0:
            recorder.fault("begin", f"f{number}", "cut", "a -> b", {"one_way": True}, 0)


def read_back(directory):
    import pyarrow.parquet as pq

    return {t.name: pq.read_table(directory / "trace" / t.name).to_pylist() for t in TABLES}


def test_every_table_takes_rows_of_exactly_its_columns(tmp_path):
    filled(SegmentWriter(tmp_path)).flush()

    tables = read_back(tmp_path)

    assert {name: list(rows[0]) for name, rows in tables.items() if rows} == {
        t.name: [c.name for c in t.columns] for t in TraceLevel.FULL.tables
    }


def test_a_row_says_who_what_when_and_why(tmp_path):
    filled(SegmentWriter(tmp_path), events=6).flush()
    tables = read_back(tmp_path)
    identity = {"node": "c-1", "role": "consumer", "incarnation": 2}
    text = '{"a":[1,2],"b":1}'

    assert tables["beliefs"][0] == {
        "seq": 1, "t_ns": 1_000, **identity, "kind": "route", "subject": "orders", "value": text,
        "value_hash": canonical(json.loads(text))[1], "source": "127.1.1.1:9876", "cause": 0,
    }  # fmt: skip
    assert (tables["beliefs"][1]["value"], tables["beliefs"][1]["value_hash"]) == ("null", "")
    assert tables["ownership"][0] == {
        "seq": 5, "t_ns": 3_000, **identity, "event": "acquired", "group": "g", "topic": "orders",
        "broker_name": "broker-a", "queue_id": 3, "offset": 17, "cause": 1,
    }  # fmt: skip
    timed_out = {
        k: tables["rpc"][0][k] for k in ("event", "connection", "src", "dst", "code", "status", "opaque", "cause")
    }
    assert timed_out == {
        "event": "timed_out", "connection": 4, "src": "c-1", "dst": "127.1.2.1:10911", "code": 34, "status": -1,
        "opaque": 9, "cause": 2,
    }  # fmt: skip


def test_seq_has_no_gaps_over_all_tables_of_a_run(tmp_path):
    async def main(world):
        server = add_host(world, 1, "server")
        rpc = RpcServer(process_of(server))
        rpc.register(1, lambda _c, r: r.answer())
        process_of(server).listen(PORT, rpc)

        async def life(host):
            client = RpcClient(host)
            for _ in range(3_000):
                await client.call(f"{server.ip}:{PORT}", 1, timeout_ms=1_000)
            host.record(Belief(BeliefKind.ROUTE, "t", 1))

        client = add_host(world, 2, "client", life)
        await until_ms(world, 10)
        await client.kill()
        return world.recorder.digest(), dict(world.recorder.counts)

    _, counts = run_world(main, writer=SegmentWriter(tmp_path))
    tables = read_back(tmp_path)

    seqs = sorted(row["seq"] for rows in tables.values() for row in rows)
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(seqs) > 6_000
    assert counts == {name: len(rows) for name, rows in tables.items()}
    for rows in tables.values():
        assert [r["seq"] for r in rows] == sorted(r["seq"] for r in rows)
        assert all(r.get("cause", 0) < r["seq"] for r in rows)


@pytest.mark.parametrize("batch_rows", [1, 7, 1_000])
def test_the_digest_depends_on_the_rows_alone(tmp_path, monkeypatch, batch_rows):
    without_writer = filled(None).digest()

    assert filled(None, batch_rows=batch_rows, monkeypatch=monkeypatch).digest() == without_writer
    assert filled(SegmentWriter(tmp_path)).digest() == without_writer
    assert filled(None, events=1_999).digest() != without_writer


def test_the_digest_depends_on_what_is_believed():
    digests = []
    for value in (["a"], ["b"], None):
        recorder = filled(None, events=0)
        recorder.event(NODE, Belief(BeliefKind.ROUTE, "t", value))
        digests.append(recorder.digest())

    assert len(dict.fromkeys(digests)) == len(digests)


def test_the_digest_may_be_asked_for_in_between():
    recorder = filled(None, events=10)
    first = recorder.digest()
    again = recorder.digest()
    recorder.event(NODE, EVENTS[0])

    assert first == again
    assert recorder.digest() != first


def test_listeners_hear_every_row_but_those_of_rpc_and_causes():
    heard = []
    recorder = Recorder(Timeline(), None)
    recorder.listeners.append(lambda table, row: heard.append((table.name, row[0])))
    for event in EVENTS:
        recorder.event(NODE, event)
    recorder.begin_cause("c-1", "timer")
    recorder.fault("end", "f1", "cut", "a -> b", {}, 3)

    assert heard == [
        (BELIEFS.name, 1), (BELIEFS.name, 2), ("ownership", 3), ("messages", 4), (LIFECYCLE.name, 5),
            ("passes", 7), ("admin", 8), ("faults", 10)
    ]  # fmt: skip


def test_the_same_value_has_the_same_text_and_hash_in_whatever_order_it_was_built():
    assert canonical({"a": 1, "b": [1, "ü"]}) == canonical({"b": (1, "ü"), "a": 1})
    assert canonical({"a": 1}) != canonical({"a": 2})
    assert canonical(None) == ("null", "")


_KEYS = st.text(max_size=4)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=()), max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=3).map(tuple) | st.dictionaries(_KEYS, inner),
    max_leaves=8,
)


@given(_VALUES.filter(lambda value: value is not None))
@example({"b": 1 << 70, "a": ["\ud800", "\x00\x1f\x7f\u2028"], "é": {"\U0001f600": -1, "\uffff": True}})
@example({BeliefKind.ROUTE: [BeliefKind.ROUTE]})
def test_the_text_of_a_value_is_that_of_the_json_module(value):
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    assert canonical(value)[0] == text.encode(errors="replace").decode()


def test_a_disk_that_is_full_ends_the_run_and_no_node_is_blamed(tmp_path, monkeypatch):
    class FullDisk(RunFiles):
        def append(self, path, content):
            if path.name == JOURNAL and len(content) > 1_000:
                raise OSError(28, "No space left on device")
            super().append(path, content)

    monkeypatch.setattr(recorder_module, "_BATCH_ROWS", 50)
    monkeypatch.setattr(recorder_module, "WRITE_EVERY_S", 0.0)
    failure = Failure()
    writer = SegmentWriter(tmp_path, {}, FullDisk(), on_error=failure.report)
    ends = []

    async def main(world):
        server, _ = await listening(world, 1, "server")

        async def life(host):
            channel = await host.connect(f"{server.ip}:{PORT}", None, 1_000)
            for _ in range(100):
                channel.send(Command(1))

        ends.extend((server, add_host(world, 2, "client", life)))
        await until_ms(world, 100)

    with pytest.raises(OSError, match="No space left"):
        run_world(main, mode=TimeMode.SIM, writer=writer, failure=failure)
    assert [host.errors for host in ends] == [[], []]


ODD = (
    Belief(BeliefKind.ROUTE, "a lone \ud800 surrogate", {"in": "\udfff"}),
    MessageRecord(MessageEvent.CONSUMED, "g", "orders", "broker-a", 3, 2**63, "c-1@1"),
    MessageRecord(MessageEvent.CONSUMED, "g", "orders", "broker-a", 3, -(2**70) - 1, "c-1@1"),
    MessageRecord(MessageEvent.CONSUMED, "g", "orders", "broker-a", 3, 2**63 - 1, "ü"),
)


@pytest.mark.parametrize("batch_rows", [1, 4_000])
def test_numbers_beyond_64_bits_wrap_and_text_that_is_no_unicode_is_marked_in_place_of_ending_the_run(
    tmp_path, monkeypatch, batch_rows
):
    monkeypatch.setattr(recorder_module, "_BATCH_ROWS", batch_rows)
    recorder = Recorder(Timeline(), SegmentWriter(tmp_path))
    for event in ODD:
        recorder.event(NODE, event)
    recorder.flush()
    tables = read_back(tmp_path)

    assert [(row["subject"], row["value"]) for row in tables["beliefs"]] == [("a lone ? surrogate", '{"in":"?"}')]
    assert [row["offset"] for row in tables["messages"]] == [-(2**63), -1, 2**63 - 1]
    assert tables["messages"][-1]["client_id"] == "ü"


def test_what_is_repaired_has_one_digest_however_rows_are_batched(monkeypatch):
    digests = []
    for batch_rows in (1, 3, 4_000):
        monkeypatch.setattr(recorder_module, "_BATCH_ROWS", batch_rows)
        recorder = Recorder(Timeline(), None)
        for event in ODD:
            recorder.event(NODE, event)
        digests.append(recorder.digest())

    assert len(dict.fromkeys(digests)) == 1


def test_rows_are_on_disk_within_a_second_of_wall_time_even_if_nothing_else_happens(tmp_path, monkeypatch):
    now_s = [1_000.0]
    monkeypatch.setattr(recorder_module, "monotonic", lambda: now_s[0])
    recorder = Recorder(Timeline(), SegmentWriter(tmp_path))
    assert recorder.keep_up() == math.inf, "no row waits"
    for event in EVENTS:
        recorder.event(NODE, event)
    now_s[0] += 0.25
    assert recorder.keep_up() == 0.75
    assert sum(stored_trace(tmp_path).counts().values()) == 0
    now_s[0] += 0.75
    assert recorder.keep_up() == math.inf

    assert sum(stored_trace(tmp_path).counts().values()) == len(EVENTS)
    assert stored_trace(tmp_path).waiting["lifecycle"] == [(5, 0, "c-1", "consumer", 2, "ready", "g", 0)]


def test_rows_that_come_without_a_pause_are_on_disk_within_a_second_too(tmp_path, monkeypatch):
    now_s = [1_000.0]
    monkeypatch.setattr(recorder_module, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(recorder_module, "_BATCH_ROWS", 10)
    recorder = Recorder(Timeline(), SegmentWriter(tmp_path))
    for _ in range(25):
        now_s[0] += 0.1
        recorder.begin_cause("c-1", "timer")

    assert len(stored_trace(tmp_path).waiting["causes"]) == 20


def test_a_live_cluster_in_which_nothing_happens_has_its_rows_on_disk_in_time(tmp_path, monkeypatch):
    class Noting(RunFiles):
        def append(self, path, content):
            super().append(path, content)
            instants_s.append(time.monotonic())

    monkeypatch.setattr(recorder_module, "WRITE_EVERY_S", 0.1)
    instants_s = []
    writer = SegmentWriter(tmp_path, {}, Noting())

    async def main(world):
        instants_s[:] = [time.monotonic()]
        world.recorder.begin_cause("c-1", "timer")
        await until_ms(world, 1_500)

    run_world(main, mode=TimeMode.LIVE, writer=writer)
    begin_s, *appended_s = instants_s
    assert 0 < appended_s[0] - begin_s < 1
    assert len(appended_s) == 1, "without new rows nothing is written"

"""Frames of rows: lag, sends, rates, beliefs and log, against plain counts of the rows of hand-made traces."""

import json
import random
from collections import Counter

import pytest

import emulator
from analysis.trace_rows import HandMadeTrace
from support.small_runs import BROKER, CLIENT_ID, END_S, frame, two_consumers, write

NS = 1_000_000_000


def random_messages(seed):
    """Two queues of a group of two consumers: messages are stored, consumed and committed in any order."""
    chance, trace, ends = random.Random(seed), HandMadeTrace(), [0, 0]
    for node in "ab":
        trace.at(0).life(node, "started", "g", role="consumer").subscribe(node)
    for step in range(60):
        queue_id, node = chance.choice((0, 1)), chance.choice("ab")
        trace.at(step / 2 + chance.choice((0, 0, 0.25)))
        match chance.choice(("store", "store", "consume", "commit", "own", "filter")):
            case "store":
                trace.store(ends[queue_id], queue_id=queue_id)
                ends[queue_id] += 1
            case "consume" if ends[queue_id]:
                trace.consume(node, chance.randrange(ends[queue_id]), queue_id=queue_id)
            case "filter" if ends[queue_id]:
                trace.message(node, "filtered", chance.randrange(ends[queue_id]), queue_id)
            case "commit":
                trace.commit(node, chance.randint(0, ends[queue_id]), queue_id=queue_id)
            case "own":
                trace.own(node, "acquired", queue_id, offset=chance.randint(0, ends[queue_id]))
    return trace


def lag_at(trace, queue_id, t_ns):
    """The lag of a queue after all rows up to an instant; None: nothing is known of it yet."""
    end, done = 0, []
    ownership = [("own", row) for row in trace.rows["ownership"]]
    for kind, row in sorted(
        ownership + [("message", row) for row in trace.rows["messages"]], key=lambda item: item[1][0]
    ):
        event, offset = row[5], row[10]
        if row[1] > t_ns or row[9] != queue_id:
            continue
        if event == "stored":
            end = offset + 1
            done = done or [offset]
        else:
            done.append(offset + 1 if kind == "message" and event != "committed" else offset)
    return max(0, end - max(done)) if done else None


@pytest.mark.parametrize("seed", range(12))
def test_lag_is_what_the_rows_so_far_leave_to_do(seed, tmp_path):
    trace = random_messages(seed)
    path = write(trace, tmp_path / "r")

    found = emulator.traces(path).lag(every_s=2.5)

    instants = [round(2.5 * NS) * number for number in range(1, END_S * 2 // 5 + 1)]
    expected = {(t_ns, queue_id): lag_at(trace, queue_id, t_ns) for t_ns in instants for queue_id in (0, 1)}
    rows = {(row.t_ns, row.queue_id): row.lag for row in found.itertuples()}
    assert rows == {place: lag for place, lag in expected.items() if lag is not None}
    assert set(zip(found["group"], found["topic"], found["broker_name"], found["node"], strict=True)) == {
        ("g", "t", "broker-a", "")
    }


def test_each_consumer_of_a_group_that_broadcasts_has_its_own_lag(tmp_path):
    trace = HandMadeTrace()
    for node in "ab":
        trace.at(0).life(node, "started", "g", role="consumer").subscribe(node, model="BROADCASTING")
        trace.own(node, "acquired", offset=0)
    trace.at(1).store(0, 1, 2).consume("a", 0, 1).consume("b", 0)

    found = emulator.traces(write(trace, tmp_path / "r")).lag(every_s=END_S)

    assert {row.node: row.lag for row in found.itertuples()} == {"a": 1, "b": 2}


@pytest.mark.parametrize("every_s", [0.5, 1, 7])
def test_sends_count_what_was_stored_in_each_period(every_s, tmp_path):
    trace = random_messages(5)
    period_ns = round(every_s * NS)
    expected = Counter(
        (row[1] // period_ns * period_ns, row[9]) for row in trace.rows["messages"] if row[5] == "stored"
    )

    found = emulator.traces(write(trace, tmp_path / "r")).sends(every_s)

    assert {(row.t_ns, row.queue_id): row.stored for row in found.itertuples()} == expected
    assert found["t_ns"].is_monotonic_increasing


def test_rates_count_frames_by_pair_request_and_fate(tmp_path):
    trace, chance = HandMadeTrace(), random.Random(1)
    expected = Counter()
    for step in range(80):
        t_s = step / 4
        src, dst = chance.choice((("a", "broker-a"), ("b", "broker-a")))
        code, name = chance.choice(((34, "HEART_BEAT"), (11, "PULL_MESSAGE"), (9_999, "")))
        event = chance.choice(("delivered", "dropped"))
        frame(trace.at(t_s), t_s - 0.1, src, BROKER if event == "dropped" else dst, code, event)
        expected[int(t_s) // 3 * 3 * NS, src, dst, code, name, event] += 1

    found = emulator.traces(write(trace, tmp_path / "r")).rates(every_s=3)

    keys = ["t_ns", "src", "dst", "code", "request", "event"]
    assert dict(zip(found[keys].itertuples(index=False, name=None), found["frames"], strict=True)) == expected
    assert set(found["kind"]) == {"request"}


def test_beliefs_have_names_in_place_of_addresses_and_client_ids(tmp_path):
    trace = two_consumers()
    trace.at(30).believe("broker-a", {"state": "TRANSFER"}, subject=BROKER, kind="ha_state")
    trace.at(31).believe("a", {"cids": ["10.0.0.9@x"]}, source="10.0.0.9:1")

    found = emulator.traces(write(trace, tmp_path / "r")).beliefs()

    views = found[found["kind"] == "view"]
    assert list(
        zip(views["t_ns"] // NS, views["node"], views["reported_by"], map(json.loads, views["value"]), strict=True)
    ) == [
        (1, "a", "broker-a", {"cids": ["a"]}),
        (10, "b", "broker-a", {"cids": []}),
        (31, "a", "10.0.0.9:1", {"cids": ["10.0.0.9@x"]}),
    ]
    assert list(found.loc[found["kind"] == "ha_state", "subject"]) == ["broker-a"]
    assert CLIENT_ID not in found.to_csv()
    assert found["seq"].is_monotonic_increasing


def test_beliefs_of_one_kind_are_those_of_all_kinds(tmp_path):
    runs = emulator.traces(write(two_consumers(), tmp_path / "r"))
    every = runs.beliefs()

    for kind in ("view", "subscription"):
        assert runs.beliefs(kind).to_dict("records") == every[every["kind"] == kind].to_dict("records")
    assert runs.beliefs("ha_state").empty


def test_the_log_is_a_table_with_time_and_seq_also_where_a_kill_cut_its_last_line(tmp_path):
    path = write(two_consumers(), tmp_path / "r")
    lines = [
        {"t_s": 1.5, "seq": 3, "level": "warning", "event": "heartbeat failed", "node": "a", "broker": "broker-a"},
        {"t_s": 2.5, "seq": 4, "level": "info", "event": "pulled", "node": "b\u2028", "queueId": 1},
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (path / "log.jsonl").write_text(text + '{"t_s": 3.', "utf-8")

    found = emulator.traces(path).log()

    columns = ["run", "variant", "seed", "t_s", "seq", "level", "event", "node", "broker", "queueId"]
    assert list(found.columns) == columns
    assert found[["t_s", "seq", "node"]].values.tolist() == [[1.5, 3, "a"], [2.5, 4, "b\u2028"]]


def test_a_run_without_a_log_has_an_empty_one(tmp_path):
    found = emulator.traces(write(two_consumers(), tmp_path / "r")).log()

    assert found.empty
    assert list(found.columns) == ["run", "variant", "seed", "t_s", "seq", "level", "event", "node"]


def test_an_empty_trace_gives_empty_frames(tmp_path):
    runs = emulator.traces(write(HandMadeTrace(), tmp_path / "r"))

    for rows in (runs.beliefs(), runs.lag(), runs.sends(), runs.rates(), runs.shared(), runs.holds()):
        assert rows.empty
        assert list(rows.columns[:3]) == ["run", "variant", "seed"]

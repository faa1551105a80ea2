"""What is measured of which client: every symptom and rule against every way to consume.

Three runs with a group of each mode show that each measured cell is not always zero, and hand-made traces those of
guests, whose processes are not emulated. A cell that does not exist stays empty in all of them.
"""

from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import emulator
from analysis.trace_rows import HandMadeTrace, found_in
from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.judge import judge_run
from emulator.analysis.measures.not_measured import NOT_MEASURED, UNSEEN_RULES, UNSEEN_SYMPTOMS, GuestKind
from emulator.analysis.oracles.catalogue import ORACLES
from emulator.analysis.report import TABLES_OF_REPORT
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run
from nodes.protocol.extra_info import build_extra_info
from support.every_case import each_case

MEASURED, NOT_THERE, UNSEEN = "yes", "-", "not measured"
MODES = {
    "push": "",
    "in order": "options = { consumeOrderly = true }",
    "broadcasting": 'options = { messageModel = "BROADCASTING" }',
    "pop": 'mode = "pop"',
    "lite": "lite_pull = true",
    "classic": "classic_pull = true",
    "push5": 'mode = "push5"\nendpoints = ["proxy-1"]',
    "fifo": 'mode = "push5"\norderly = true\nendpoints = ["proxy-1"]',
    "simple": 'mode = "simple"\nendpoints = ["proxy-1"]',
}
"""Mapping column -> what makes a group of a scenario consume so."""
GUESTS = {"guest of brokers": GuestKind.BROKERS, "guest of proxies": GuestKind.PROXIES}
OF_PROXIES = ("push5", "fifo", "simple")
"""Columns of clients that call proxies."""
COLUMNS = (*MODES, *GUESTS)
"""In the order of `GRID`."""
GRID = """
lost messages                  yes yes yes yes yes yes yes yes yes  ?  yes
dead letters                   yes yes  -   -   -   -  yes yes yes yes yes
skipped messages               yes yes yes yes yes yes yes yes yes yes yes
missed messages                 -   -  yes  -   -   -   -   -   -   -   -
no proxy                        -   -   -   -   -   -  yes yes yes  -   -
consumer lag                   yes yes yes yes yes yes yes yes yes yes yes
late messages                  yes yes yes yes yes yes yes yes yes  ?  yes
stalled queues                 yes yes yes yes yes yes yes yes yes yes yes
failing listener               yes yes yes yes  -   -  yes yes yes  ?   ?
messages consumed again        yes yes yes yes yes yes yes yes yes  ?   ?
popped messages consumed again  -   -   -  yes  -   -  yes  -  yes  ?   ?
out of order                    -   -   -   -   -   -  yes  -  yes  -   ?
churn                          yes yes  -  yes yes yes  -   -   -  yes  -
uneven queues                  yes yes  -   -  yes yes  -   -   -  yes  -
idle members                   yes yes  -   -  yes yes  -   -   -  yes  -
stale routes                   yes yes yes yes yes yes yes yes yes yes yes
V1                             yes yes  -  yes yes yes  -   -   -  yes  -
V2                             yes yes  -  yes yes yes  -   -   -  yes  -
V3                              -  yes  -   -   -   -   -   -   -   ?   -
V4                             yes yes  -  yes yes yes yes yes yes yes yes
V5                             yes yes  -   -  yes  -   -   -   -  yes  -
V6                             yes yes  -   -  yes yes  -   -   -  yes  -
V7                             yes yes yes yes yes yes yes yes yes  ?  yes
V8                             yes yes yes yes yes yes yes yes yes yes yes
V12                            yes yes yes yes yes yes yes yes yes  ?   ?
V14                             -   -   -  yes  -   -  yes yes yes  -  yes
"""
OTHERS = {
    "producers": (
        *("discarded messages", "rolled back by another producer", "committed by another producer"),
        "transactions ended twice",
        *("checked although committed", "failed sends", "V16"),
    ),
    "brokers, controllers and their topics": (
        *("lost topic", "broker busy", "no writable queue", "late deliveries", "notify fan-out", "expired messages"),
        *("V9", "V10", "V15", "V17", "V18", "V19"),
    ),
    "any client, by its requests": ("request storm", "denied requests", "failed starts"),
    "proxies": ("V20",),
    "assigners, an option of push consumers": ("V13",),
    "what V1 and V2 count": ("V11",),
}
"""What does not depend on how a client consumes."""
TABLES = {
    "lost messages": ("losses",),
    "dead letters": ("dead_letter",),
    "skipped messages": ("reset",),
    "missed messages": ("missed_at_start",),
    "no proxy": ("without_proxy",),
    "consumer lag": ("lags",),
    "late messages": ("late",),
    "stalled queues": ("stalls",),
    "failing listener": ("listener_failures",),
    "messages consumed again": ("duplicates",),
    "popped messages consumed again": ("popped_again",),
    "out of order": ("out_of_order",),
    "churn": ("rebalances",),
    "uneven queues": ("queue_balance",),
    "idle members": ("idle",),
    "stale routes": ("stale_routes",),
    **{oracle.id: (oracle.table.name,) for oracle in ORACLES},
}
"""Where the rows of a measure are."""


def cells():
    """(measure, column) -> a cell of `GRID`."""
    for line in GRID.strip().splitlines():
        *words, last = line.split()
        marks = [*words, last][-len(COLUMNS) :]
        measure = " ".join(line.split()[: -len(COLUMNS)])
        yield from (
            ((measure, column), UNSEEN if mark == "?" else mark) for column, mark in zip(COLUMNS, marks, strict=True)
        )


CELLS = dict(cells())

HEAD = """
[scenario]
name = "modes"
run_for_s = {run_for_s}
[nameserver]
count = 1
[[broker]]
name = "broker-a"
options = {{ channelExpiredTimeout = 15000 }}
[[broker]]
name = "broker-b"
[[proxy]]
name = "proxy-1"
[[topic]]
name = "orders"
queues = 2
[[producer]]
group = "till"
topic = "orders"
rate_per_s = 3
keys = {{ count = 3 }}
"""
GROUP = """
[[consumer]]
group = "{name}"
names = ["{name}-1", "{name}-2"]
topics = ["orders"]
{mode}
"""
NAMES = {column: column.replace(" ", "-") for column in MODES}


def lines_of_faults(*entries):
    """Tables of faults: (what, at which second, for how many seconds)."""
    return "".join(f'[[fault]]\ndo = "{do}"\nat_s = {at_s}\nfor_s = {for_s}\n' for do, at_s, for_s in entries)


def executed(more: str, run_for_s: int, also=None):
    """The findings of a run with a group of each mode."""
    text = HEAD.format(run_for_s=run_for_s)
    for column, mode in MODES.items():
        text += GROUP.format(name=NAMES[column], mode=(also or {}).get(column, mode))
    return judged(text + more)


def judged(text: str):
    with TemporaryDirectory() as runs:
        return judge_run(open_run(run_scenario(loads(text, "modes"), runs=Path(runs)).path))


def cut_off_and_killed():
    """One member of each group is half cut off, the other one killed, and so are a broker and the proxy."""
    return executed(
        lines_of_faults(
            *((f"cut {name}-1 {peer_of(column)}", 30, 75) for column, name in NAMES.items()),
            *((f"kill {name}-2", 120, 20) for name in NAMES.values()),
            ("kill broker-b", 150, 60),
            ("kill proxy-1", 150, 15),
        ),
        220,
    )


def peer_of(column):
    return "proxy-1" if column in OF_PROXIES else "broker-a"


def without_the_disk():
    """A broker loses messages that it has acknowledged, while all consumers sleep."""
    asleep = ((f"suspend {name}-{number}", 25, 10) for name in NAMES.values() for number in (1, 2))
    killed = ((f"kill {name}-2", 33, 10) for name in NAMES.values())
    lost = (("lost-writes broker-a", 15, 40), ("power-off broker-a", 32, 8))
    return executed(lines_of_faults(*lost, *asleep, *killed), 80)


def failing_and_reset():
    """Listeners fail, and an administrator skips what waits while all consumers sleep."""
    tries = {
        "push": "options = { maxReconsumeTimes = 1 }",
        "in order": "options = { consumeOrderly = true, maxReconsumeTimes = 1, suspendCurrentQueueTimeMillis = 100 }",
        "pop": 'mode = "pop"\noptions = { maxReconsumeTimes = 1 }',
        **{column: f"start_after_s = 5\n{MODES[column]}" for column in RETRIES},
    }
    also = {column: f"fail_times = 3\n{tries.get(column, mode)}" for column, mode in MODES.items() if FAILS[column]}
    admin = [f"update-sub-group {name} retryMaxTimes=1{order}" for name, order in RETRIES.items()]
    text = "".join(f'[[admin]]\ndo = "{do}"\nat_s = 1\n' for do in admin)
    text += "".join(f'[[admin]]\ndo = "skip-accumulated-message {name} orders"\nat_s = 40\n' for name in NAMES.values())
    asleep = ((f"suspend {name}-{number}", 30, 15) for name in NAMES.values() for number in (1, 2))
    return executed(text + lines_of_faults(*asleep), 100, also)


def slow():
    """Listeners need longer than the invisible time of their messages, and a consumer that broadcasts comes late."""
    also = {
        "pop": 'mode = "pop"\nconsume_ms = 9000\noptions = { popInvisibleTime = 5000 }',
        "push5": f"{MODES['push5']}\nconsume_ms = 15000\noptions = {{ consumptionThreadCount = 5 }}",
        "broadcasting": 'options = { messageModel = "BROADCASTING", consumeFromWhere = "CONSUME_FROM_LAST_OFFSET" }',
        "simple": f"{MODES['simple']}\nconsume_ms = 11000\noptions = {{ invisibleDuration = 10000 }}",
    }
    return executed(lines_of_faults(("kill broadcasting-1", 0, 30)), 100, also)


def unordered_groups_of_a_fifo_topic():
    """Two members of each group work on messages of one key."""
    head = HEAD.format(run_for_s=40).partition("[[topic]]")[0]
    groups = (GROUP.format(name=name, mode=f'mode = "{name}"\nconsume_ms = 1500') for name in ("push5", "simple"))
    sent = (
        '[[producer]]\ngroup = "till"\ntopic = "orders"\nendpoints = ["proxy-1"]\nfifo = true\nkeys = { count = 1 }\n'
    )
    topic = '[[topic]]\nname = "orders"\nqueues = 1\nmessage_type = "FIFO"\n'
    return judged(f"{head}{topic}{''.join(groups)}{sent}rate_per_s = 2\n")


FAILS = {column: column not in ("lite", "classic") for column in MODES}
RETRIES = {"push5": "", "simple": "", "fifo": " consumeMessageOrderly=true"}


def of_group(row):
    """The group of a row, or of its node."""
    queue = getattr(row, "queue", None)
    group = getattr(queue, "group", None) or getattr(row, "group", "") or getattr(row, "subject", "").partition("/")[0]
    return group or (getattr(row, "node", "") or getattr(row, "client", "")).rpartition("-")[0]


def counted(report):
    """Table -> group -> rows; of some tables only those with an amount."""
    found = defaultdict(Counter)
    for table, rows in ((table, report.of(table)) for table in TABLES_OF_REPORT):
        for row in rows:
            name = getattr(row, "reason", "") if table.name == "business_losses" else table.name
            found[name][of_group(row)] += 1
            if table.name == "latencies" and row.late:
                found["late"][row.group] += row.late
            if table.name == "keys" and row.unordered_fifo and row.two_in_queue_ns:
                found["out_of_order"][row.group] += 1
            if table.name == "popped" and row.consumed_and_revived:
                found["popped_again"][row.queue.group] += row.consumed_and_revived
    return found


def successor(*, in_order):
    """Starts below the last commit, by hand: a run has them where a broker answers with an old offset."""
    trace = HandMadeTrace().life("broker-a", "started", role="broker").life("c1", "started", "g").subscribe("c1")
    trace.at(1).own("c1", "acquired", offset=0).at(2).store(*range(9)).at(3).commit("c1", 9)
    trace.at(60).own("c1", "dropped", offset=9)
    trace = trace.at(61).own("c2", "locked") if in_order else trace.at(61)
    return found_in(trace.own("c2", "acquired", offset=4), 100)["start_anomalies"]


@cache
def evidence():
    """Measure, column -> rows in all runs."""
    found = defaultdict(Counter)
    for column in ("push", "in order", "lite"):
        found["start_anomalies"][NAMES[column]] += len(successor(in_order=column == "in order"))
    runs = (cut_off_and_killed, without_the_disk, failing_and_reset, slow, unordered_groups_of_a_fifo_topic)
    for make in runs:
        for name, of in counted(make()).items():
            found[name].update(of)
    return found


# --- guests, by hand: the watch of their frames writes the rows that emulated members write themselves


ROUTE = {"broker-a": {"addrs": {"0": "127.1.2.1:10911"}, "queues": [2, 2, 6]}}
OTHER_ROUTE = {"broker-b": {"addrs": {"0": "127.1.2.2:10911"}, "queues": [2, 2, 6]}}
HANDLE = build_extra_info(0, 1_000, 60_000, 0, "t", "broker-a", 0, 0)
GROUP_OF_GUESTS = "g"


def a_cluster_with_guests(delivery=None):
    """A broker, a nameserver, and two clients of a guest that subscribe."""
    trace = HandMadeTrace()
    trace.roles |= {"broker-a": "broker", "ns": "nameserver"}
    trace.life("broker-a", "started").life("ns", "started").believe("ns", ROUTE, "t", "route")
    value = {"expression": "*", "type": "TAG", "model": "CLUSTERING"} | ({"delivery": delivery} if delivery else {})
    for node in ("shop", "shop/2"):
        trace.life(node, "started", node).life(node, "ready", "g").believe(node, value, "g/t", "subscription")
    return trace


def given_up(trace):
    """What brokers and administrators do does not depend on who consumes."""
    trace.at(300).message("broker-a", "dead_lettered", 9).message("broker-a", "reset", 60)
    return trace.at(310).store(*range(60, 70))  # nobody moves any more


def members_of_brokers():
    """Clients of RocketMQ 4 of a guest: views differ, owners overlap, a queue has none, and routes are old."""
    trace = a_cluster_with_guests().at(1)
    for node, cids in (("shop", ["a"]), ("shop/2", ["a", "b"])):
        trace.believe(node, ROUTE, "t", "route").believe(node, {"cids": cids, "queues": {"broker-a": 2}}, "g/t", "view")
    for queue_id in (0, 1):
        trace.at(2).own("shop", "acquired", queue_id, offset=0)
    trace.at(3).store(*range(20)).at(5).commit("127.0.0.1:9", 10)
    trace.own("shop/2", "acquired", 0, offset=4).at(60).own("shop", "dropped", 0, offset=10)
    trace.at(61).own("shop/2", "dropped", 0, offset=10).at(100).own("shop", "acquired", 0, offset=10)
    trace.at(120).commit("127.0.0.1:9", 6).at(130).believe("ns", OTHER_ROUTE, "t", "route")
    return given_up(trace)


def members_of_proxies():
    """Clients of RocketMQ 5 of a guest: a message comes late, one is lost with the log, and one is given up."""
    trace = a_cluster_with_guests("proxy").at(1)
    route = {"broker-a": {"endpoints": ["p:8081"], "ids": [0], "queues": 2}}
    for node in ("shop", "shop/2"):
        trace.believe(node, route, "t", "proxy_route").own(node, "pop_acquired", -1)
    trace.at(3).store(*range(20))
    for offset in range(3):
        trace.message("broker-a", "popped", offset, key=HANDLE)
    trace.commit("127.1.3.1:9", 3).at(30).message("broker-a", "acked", 0, tags="stored", key=HANDLE)
    trace.message("broker-a", "lost", 1, tags="gone", key=HANDLE).store(*range(3), queue_id=1)
    trace.message("broker-a", "popped", 0, 1, key=HANDLE).message("broker-a", "cut", 2, 1)
    trace.at(100).commit("127.1.3.1:9", 2).at(130).believe("ns", OTHER_ROUTE, "t", "route")
    return given_up(trace)


@cache
def evidence_of_guests(kind):
    """Measure -> rows about the group of a guest."""
    trace = members_of_brokers() if kind is GuestKind.BROKERS else members_of_proxies()
    return found_in(trace, 500, names={"vm@1#2": "shop", "vm@1#3": "shop/2"})


def amount_of_guests(measure, kind):
    found = counted(evidence_of_guests(kind))
    return sum(rows for name in TABLES[measure] for rows in found[name].values())


# --- tests ----------------------------------------------------------------------------------


def test_every_symptom_and_every_rule_has_its_place():
    named = Counter([*dict.fromkeys(measure for measure, _ in CELLS), *(name for of in OTHERS.values() for name in of)])
    assert named == Counter([*map(str, SymptomKind), *(oracle.id for oracle in ORACLES)])


def test_what_is_not_measured_is_said_in_the_report():
    for column, kind in GUESTS.items():
        unseen = [measure for measure, of in CELLS if of == column and CELLS[measure, of] == UNSEEN]
        assert unseen == [*sorted(UNSEEN_SYMPTOMS[kind], key=ORDER.index), *UNSEEN_RULES[kind]]
        (row,) = evidence_of_guests(kind).of(NOT_MEASURED)
        assert (row.group, row.node, row.calls) == ("g", "shop", kind)
        assert row.symptoms == ", ".join(UNSEEN_SYMPTOMS[kind])
        assert row.rules == ", ".join(UNSEEN_RULES[kind])


ORDER = list(dict.fromkeys(measure for measure, _ in CELLS))


@each_case(("measure", "column"), [cell for cell in CELLS if cell[1] in GUESTS], ids=lambda word: word)
def test_guests_are_measured_as_the_table_says(measure, column):
    assert (amount_of_guests(measure, GUESTS[column]) > 0) is (CELLS[measure, column] == MEASURED)


@pytest.mark.slow
@pytest.mark.parametrize(("measure", "column"), [cell for cell in CELLS if cell[1] in MODES], ids=lambda word: word)
def test_a_run_shows_what_is_measured_and_none_what_does_not_exist(measure, column):
    found = sum(evidence()[name][NAMES[column]] for name in TABLES[measure])
    assert (found > 0) is (CELLS[measure, column] == MEASURED)


def test_the_readme_of_the_analysis_has_the_table():
    words = {MEASURED: "yes", NOT_THERE: "", UNSEEN: "not measured"}
    lines = [f"| | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(words[CELLS[name, column]] for column in COLUMNS)} |" for name in ORDER]
    assert "\n".join(lines) in (Path(emulator.__file__).parent / "analysis" / "README.md").read_text()

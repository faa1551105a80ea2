"""What differs between two scenarios, by name and in words."""

from hypothesis import given
from hypothesis import strategies as st

from emulator.spec import from_dict, loads
from emulator.spec.reading.differences import differences
from fuzz.random_scenario import random_tables
from support.every_case import each_case

BASE = """
[scenario]
name = "small"
run_for_s = 60
[[broker]]
name = "broker-a"
[[broker]]
name = "broker-b"
[[topic]]
name = "orders"
[[consumer]]
group = "g"
names = ["c1", "c2"]
topics = ["orders"]
[[fault]]
id = "cut"
do = "cut c1 broker-a"
at_s = 10
for_s = 5
"""


def reported(*changes, added=""):
    changed = BASE + added
    for old, new in changes:
        assert old in changed
        changed = changed.replace(old, new)
    return [difference.words() for difference in differences(loads(BASE, "a"), loads(changed, "b"))]


def test_equal_scenarios_do_not_differ():
    assert reported() == []
    assert reported(("run_for_s = 60", "run_for_ms = 60_000")) == []


@each_case(
    ("change", "words"),
    [
        (("run_for_s = 60", "run_for_s = 60\nseed = 2"), ["seed 1 in A, 2 in B"]),
        (("[[topic]]", "[network]\njitter_ms = 3\n[[topic]]"), ["network: jitter_ms 0 in A, 3 in B"]),
        (("run_for_s = 60", "run_for_s = 60\neven_starts = true"), ["even_starts false in A, true in B"]),
        (("[[fault]]", '[[producer]]\ngroup = "p"\ntopic = "orders"\n[[fault]]'), ["producer producer-1 only in B"]),
        (("run_for_s = 60", "run_for_s = 90"), ["run_for_ms 60000 in A, 90000 in B"]),
        (('"c1", "c2"', '"c1"'), ["consumer g: names c1 c2 in A, c1 in B"]),
        (("for_s = 5", "for_s = 6"), ["fault cut: for_ms 5000 in A, 6000 in B"]),
        (("for_s = 5", ""), ["fault cut: for_ms 5000 in A, until the end in B"]),
        (('broker-a"\nat_s', 'broker-a one-way"\nat_s'), ["fault cut: one_way not set in A, true in B"]),
        (('name = "orders"\n', 'name = "orders"\nqueues = 4\n'), ["topic orders: queues 8 in A, 4 in B"]),
        (
            ('name = "broker-b"', 'name = "broker-b"\noptions = { channelExpiredTimeout = 30000 }'),
            ["broker broker-b: channelExpiredTimeout 120000 in A, 30000 in B"],
        ),
        (
            ('topics = ["orders"]', 'topics = ["orders"]\noptions = { consumeOrderly = true }'),
            ["consumer g: consumeOrderly false in A, true in B"],
        ),
    ],
)
def test_a_key_that_differs_is_reported_with_both_values(change, words):
    assert reported(change) == words


def test_an_option_that_several_nodes_change_in_the_same_way_is_one_line():
    options = "\noptions = { channelExpiredTimeout = 30000 }"
    assert reported(
        ('name = "broker-a"', f'name = "broker-a"{options}'), ('name = "broker-b"', f'name = "broker-b"{options}')
    ) == ["broker broker-a, broker-b: channelExpiredTimeout 120000 in A, 30000 in B"]


def test_what_only_one_has_is_reported_with_what_it_is():
    fault = '[[fault]]\nid = "kill"\ndo = "kill c2"\nat_s = 20\nfor_s = 5\n'
    nemesis = '[[nemesis]]\nid = "n"\ndo = "kill c2"\nevery_s = 20\nmin_s = 5\n'
    producer = '[[producer]]\ngroup = "p"\ntopic = "orders"\n'

    assert reported(added=fault) == ["fault kill only in B: 20000 ms +5000 ms: kill c2"]
    assert reported(added=nemesis) == ["nemesis n only in B: every 20000 ms: kill c2"]
    assert reported(added=producer) == ["producer producer-1 only in B"]
    assert reported(('[[broker]]\nname = "broker-b"\n', "")) == [
        "broker broker-b only in A",
        "topic orders: brokers broker-a broker-b in A, broker-a in B",
    ]


@given(st.integers(0, 200), st.integers(0, 200))
def test_random_scenarios_differ_unless_they_are_equal_and_the_same_way_back(item, other):
    a, b = (from_dict(random_tables(seed)) for seed in (item, other))
    there, back = differences(a, b), differences(b, a)

    assert bool(there) is (a != b)
    assert sorted((d.what, repr(d.first), repr(d.second)) for d in there if d.key) == sorted(
        (d.what, repr(d.second), repr(d.first)) for d in back if d.key
    )
    assert all("\n" not in d.words() for d in there)

"""Several brokers on one address, and brokers that take a while to boot."""

from emulator.run import run_scenario
from emulator.spec import loads
from emulator.time.mode import TimeMode
from studies.timelines.seeds import read_story

TWO = """
[scenario]
name = "two"
run_for_s = 40
preset = "rip32"
broker_boot_spread_s = 8
[nameserver]
count = 1
[[broker]]
name = "ba"
replicas = 2
one_address = true
"""


def reported(text, tmp_path, mode=TimeMode.SIM):
    result = run_scenario(loads(text, "x"), runs=tmp_path, mode=mode)
    return result.manifest, read_story(result.path)


def test_both_are_registered_under_one_address_with_their_own_ports(tmp_path):
    manifest, story = reported(TWO, tmp_path)
    live = [row.value for row in story.beliefs if row.kind == "live_brokers"][-1]

    assert live == {"0": "127.1.2.1:10911", "1": "127.1.2.1:10921"}
    assert manifest["addresses"]["127.1.2.1"] == "ba"


def test_memory_and_sockets_carry_them_alike(tmp_path):
    in_memory, _ = reported(TWO, tmp_path)
    over_sockets, _ = reported(TWO, tmp_path, TimeMode.FAST)

    assert in_memory["digest"] == over_sockets["digest"]


def test_a_broker_is_ready_some_time_after_its_start_and_another_time_after_its_next(tmp_path):
    again = '[[fault]]\nkind = "kill"\nnode = "ba"\nat_s = 20\nfor_s = 5\n'
    _, story = reported(TWO + again, tmp_path)
    ours = [row for row in story.lives if row.node == "ba" and row.event in ("started", "ready")]
    boots_s = [(ready.t_ns - started.t_ns) / 1e9 for started, ready in zip(ours[::2], ours[1::2], strict=True)]

    assert len(boots_s) == 2
    assert all(0 < seconds <= 8 for seconds in boots_s)
    assert boots_s[0] != boots_s[1]


def test_a_broker_that_is_asked_to_stop_while_it_boots_ends_without_having_been_ready(tmp_path):
    again = '[[fault]]\nkind = "kill"\nnode = "ba"\nat_s = 20\nfor_s = 5\n'
    stop = '[[fault]]\nkind = "restart"\nnode = "ba"\nat_s = 25.001\n'
    manifest, story = reported(TWO + again + stop, tmp_path)
    events = [row.event for row in story.lives if row.node == "ba"]

    assert manifest["crashes"] == []
    assert events == ["started", "ready", "killed", "started", "stopping", "stopped", "started"]

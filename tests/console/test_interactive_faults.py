"""Breaking a cluster by hand: what is done, what is refused, and that it can be done again."""

import attrs

from emulator.run.run import BY_HAND_FILE
from emulator.spec import load
from emulator.testing import ConsoleUser, Trace, a_scenario, run_at_console
from emulator.trace.run_directory import open_run
from nodes.beliefs import BeliefKind


def scenario(run_for_s=60, **given):
    return attrs.evolve(a_scenario(consumers=2, nameservers=2, **given), run_for_ms=run_for_s * 1_000)


def faults(trace: Trace) -> list[tuple[float, str, str, str]]:
    return [(row.at_ms, row.event, row.kind, row.subject) for row in trace.select("faults")]


def view_changes(trace: Trace) -> dict[tuple[str, str, str], list[str]]:
    """(node, kind, subject) -> what it believed, one after the other."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in trace.select("beliefs"):
        found.setdefault((row.node, row.kind, row.subject), []).append(row.value)
    return found


def test_a_cut_begins_where_it_is_said_and_ends_where_it_is_healed(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(10_000)
        assert await me.say("cut c1 broker-a one-way") == ("cut-1: cut c1 -> broker-a",)
        assert await me.say("faults") == ("cut-1: cut c1 -> broker-a, since 10.000 s, hit 0 times",)
        assert await me.say("links") == ("c1 -> broker-a: cut-1",)
        await me.at_ms(20_000)
        assert await me.say("heal cut-1") == ("healed cut-1: cut c1 -> broker-a",)
        assert await me.say("faults") == ("no fault is active",)

    _, trace = run_at_console(scenario(), tmp_path, sitting)
    assert faults(trace) == [(10_000, "begin", "cut", "c1 -> broker-a"), (20_000, "end", "cut", "c1 -> broker-a")]


def test_a_fault_with_a_length_ends_by_itself(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(10_000)
        assert await me.say("suspend c2 for 5s") == ("suspend-1: suspend c2, until 15.000 s",)
        assert await me.say("loss 20 c1 for 8s") == ("loss-1: lose 20 % on c1 <-> *, until 18.001 s",)
        await me.at_ms(12_000)
        await me.say("heal loss-1")
        await me.at_ms(20_000)
        assert await me.say("faults") == ("no fault is active",)

    _, trace = run_at_console(scenario(), tmp_path, sitting)
    assert [(at_ms, event, kind) for at_ms, event, kind, _ in faults(trace)] == [
        (10_000, "begin", "suspend"),
        (10_001, "begin", "loss"),
        (12_000, "end", "loss"),
        (15_000, "end", "suspend"),
    ]


def test_whoever_leaves_finds_everything_healed(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(10_000)
        for line in ("loss 20", "delay 50 c1 broker-a jitter 5", "suspend c2", "kill ns-2", "power-off ns-1"):
            await me.say(line)
        await me.at_ms(30_000)
        await me.say("quit")

    path, trace = run_at_console(scenario(), tmp_path, sitting)
    assert open_run(path).end_ns == 30_000_000_000
    begun = sorted(kind for _, event, kind, _ in faults(trace) if event == "begin")
    assert len(begun) == 5
    assert begun == sorted(kind for _, event, kind, _ in faults(trace) if event == "end")


REFUSED = [
    ("cut c1 c1", "expected another node than c1: a node has no link to itself"),
    ("cut c1 brokr-a", "there is no node brokr-a; did you mean broker-a?"),
    ("cut", "expected: cut A [B] [one-way]"),
    ("cut c1 broker-a c2", "expected: cut A [B] [one-way]"),
    ("kill no one at all", "expected the exact name of a node"),
    ("kill acting master of broker-b", 'unknown broker "broker-b"'),
    ("kill minor members of absent", 'unknown group "absent"'),
    ("scale absent 3", 'unknown group "absent"'),
    ("scale g 2", "g has 2 members: there is nothing to scale"),
    ("drop HEARTBEAT", "expected a request code, not HEARTBEAT; did you mean HEART_BEAT?"),
    ("drop HEART_BEAT from c1 next", "expected something after next"),
    ("drop HEART_BEAT during lunch", "expected one of starting, pre-online, stopping, not 'lunch'"),
    ("skew broker-a 0", "expected a whole number of milliseconds other than 0"),
    ("partition ring", "expected one of isolate, majorities-ring, bridge, not 'ring'"),
    ("partition majorities-ring", "expected 4 nodes at least for majorities-ring: servers"),
    ("chaos minr-kill", "expected one of minor-kill"),
    ("slow-disk broker-a 0", "expected a whole number of milliseconds >= 1, not 0"),
    ("permission broker-a", "expected: permission NODES PERM [topic T]"),
    ("permission broker-a 6", "expected a permission of 4 (read only) or 2 (write only), not 6"),
    ("permission broker-a r", "expected a permission of 4 (read only) or 2 (write only), not 'r'"),
    ("permission c1 4", "expected brokers, not c1: only brokers have permissions"),
    ("permission owner of orders/broker-a/0 4", "expected brokers, not owner of orders/broker-a/0"),
    ("permission brokers 4 topic nothing", "no master among broker-a has a topic nothing: nothing to restrict"),
    ("permission brokers 4 topic TBW102", "expected a topic that is not RocketMQ's own"),
    ("kill guest", "expected a node: guest is a guest, which only faults of links and suspend can hit, not kill"),
    ("power-off guest", "expected a node: guest is a guest"),
    ("skew guest 5", "expected a node: guest is a guest"),
    ("slow-cpu c1, guest 100", "expected a node: guest is a guest"),
    ("slow-disk guest 100", "expected a node: guest is a guest"),
    ("permission guest 4", "expected a node: guest is a guest"),
    ("resume guest", "guest is not suspended: there is nothing to resume"),
    ("suspend c2 for ever", "expected a time such as 30s, 500ms or 2m, not ever"),
    ("suspend for 5s", "expected: suspend NODES"),
    ("loss 120", "expected a number of percent from 0 to 100, not 120"),
    ("loss much", "expected a number of percent such as 20 or 0.5, not much"),
    ("resume c1", "c1 is not suspended: there is nothing to resume"),
    ("start c1", "c1 runs: there is nothing to start"),
    ("heal cut-9", "there is no active fault cut-9; there are none"),
    ("susspend c1", "there is no verb susspend; did you mean suspend?"),
    ("undo", "there is no verb undo; did you mean heal?"),
    ("undo cut-1", "there is no verb undo; did you mean heal?"),
    ("views absent", "there is no subject absent; there are "),
    ('cut "c1', 'cut "c1: no closing quotation'),
]


def test_what_cannot_be_is_refused_in_one_line_and_changes_nothing(tmp_path):
    answers = {}

    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(2_000)
        for line, _ in REFUSED:
            answers[line] = await me.refused(line)

    path, trace = run_at_console(scenario(5), tmp_path, sitting)
    assert {line: answers[line] for line, why in REFUSED if not answers[line].startswith(why)} == {}
    assert [answer for answer in answers.values() if "\n" in answer] == []
    assert faults(trace) == []
    assert not (path / BY_HAND_FILE).exists()


def test_faults_of_one_process_overlap_and_each_heals_on_its_own(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(5_000)
        await me.say("suspend c1")
        await me.say("kill c1")
        assert (await me.refused("suspend c1")) == "c1 is down: there is nothing to suspend"
        assert await me.say("power-off c1") == ("power_off-1: power off c1",)
        assert await me.say("heal kill-1") == ("healed kill-1: kill c1",)
        assert me.session.host("c1").power_state.value == "powered off"
        assert await me.say("start c1") == ("healed power_off-1: power off c1",)
        assert me.session.host("c1").power_state.value == "running"
        assert await me.say("resume c1") == ("healed suspend-1: suspend c1",)

    run_at_console(scenario(10), tmp_path, sitting)


def test_what_was_done_by_hand_is_retained_and_gives_the_same_views_again(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        afternoon = {15: "cut c1 broker-a", 30: "kill ns-1", 50: "heal all", 60: "suspend c2", 90: "resume c2"}
        for at_s, line in afternoon.items():
            await me.at_ms(at_s * 1_000)
            await me.say(line)

    first, by_hand = run_at_console(scenario(300), tmp_path, sitting)

    async def no_node(_me: ConsoleUser) -> None: ...

    _, again = run_at_console(load(first / BY_HAND_FILE), tmp_path, no_node)
    assert view_changes(by_hand) == view_changes(again)
    assert len(view_changes(by_hand)) > 20


def test_save_writes_a_scenario_that_can_be_read(tmp_path):
    saved = tmp_path / "afternoon.toml"

    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(5_000)
        await me.say("kill c1")
        assert await me.say(f"save {saved}") == (f"saved; do it again with: rmqemu run {saved}",)
        assert "No such file" in await me.refused(f"save {tmp_path / 'nowhere' / 'x.toml'}")

    run_at_console(scenario(10), tmp_path / "runs", sitting)
    assert [timed.id for timed in load(saved).faults.faults] == ["kill-1"]


def test_views_report_who_believes_what_and_diff_about_what_two_differ(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(40_000)
        assert "nodes of one role agree about everything they share" in await me.say("status")
        assert (await me.say("diff ns-1 ns-2"))[0].startswith("ns-1 and ns-2 agree")
        await me.say("cut broker-a ns-2")
        await me.at_ms(200_000)
        kind = BeliefKind.LIVE_BROKERS
        assert f"they differ about {kind} broker-a" in await me.say("status")  # ns-2 believes nothing any more
        rows = [line for line in await me.say("views broker-a") if line.startswith(f"{kind} broker-a ")]
        assert rows[0].split()[2:] == ["A", "·", "·", "they", "differ"]

    run_at_console(scenario(210), tmp_path, sitting)


def test_a_program_outside_stands_still_until_the_last_of_its_suspensions_ends(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        program = me.session.cluster.world.guests.program("guest")
        await me.at_ms(5_000)
        assert await me.say("suspend guest") == ("suspend-1: suspend guest",)
        assert program.suspended
        assert await me.refused("suspend guest") == "guest is suspended: there is nothing to suspend"
        assert await me.say("suspend c1, guest") == ("suspend-2: suspend c1, guest",)
        await me.say("heal suspend-1")
        assert program.suspended
        assert await me.say("faults") == ("suspend-2: suspend c1, guest, since 5.002 s, hit 1 time",)
        await me.say("resume guest")
        assert not program.suspended
        await me.say("suspend *")
        assert not program.suspended  # which are all nodes
        await me.say("heal all")
        await me.say("suspend guest")

    _, trace = run_at_console(scenario(10), tmp_path, sitting)
    assert [(event, subject) for _, event, _, subject in faults(trace)][-2:] == [("begin", "guest"), ("end", "guest")]

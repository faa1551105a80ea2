"""Whole clusters under virtual time: what is asked at the session, and what of the finished run."""

import attrs

from emulator.spec.model.proxies import ProxySpec
from emulator.spec.model.scenario import NameserverSpec
from emulator.testing import ConsoleUser, a_scenario, consumer_group, run_at_console
from emulator.trace.run_directory import open_run
from emulator.why.answer import answer_of_run
from emulator.why.words import names_of
from nodes.config import ConsumerConfig, NameserverConfig
from nodes.config.proxy import ProxyConfig


def scenario(run_for_s, **given):
    given = {"consumers": 2, "brokers": ("broker-a", "broker-b"), **given}
    return attrs.evolve(a_scenario(**given), run_for_ms=run_for_s * 1_000)


def has(lines, *parts):
    """Whether one line has all these parts."""
    return any(all(part in line for part in parts) for line in lines)


def executed(run, tmp_path, lines):
    """The run directory and the trace of a cluster to which lines were said at instants in s."""

    async def sitting(me: ConsoleUser) -> None:
        for at_s, line in lines.items():
            await me.at_ms(at_s * 1_000)
            await me.say(line)

    return run_at_console(run, tmp_path, sitting)


def test_a_cut_between_a_consumer_and_a_broker_is_named_by_the_queue_that_got_a_second_owner(tmp_path):
    path, trace = executed(scenario(320), tmp_path, {15: "cut c2 broker-b one-way"})
    doubled = [
        (row.at_ms, row.topic, row.broker_name, row.queue_id)
        for row in trace.select("ownership", event="acquired", node="c1", after_ms=140_000)
        if trace.owners(row.at_ms, row.topic)[row.broker_name, row.queue_id] == ["c1", "c2"]
    ]
    at_ms, topic, broker_name, queue_id = doubled[0]
    reported = answer_of_run([f"queue {topic}/{broker_name}/{queue_id} at {at_ms + 100:.0f}ms"], open_run(path))

    assert "has 2 owners: c2 since" in reported[0]
    assert has(reported, "c1  acquired queue")
    assert has(reported, "c1    came to hold view g/", "1 members: c1;", "(c2 gone), reported by broker-b")
    assert has(reported, "c1    since broker-b answered GET_CONSUMER_LIST_BY_GROUP (38)")
    assert "broker-b gave these members, which it held since:" in reported
    assert has(reported, "broker-b    since its timer scanExceptionChannel")
    assert has(reported, "  cut-1 (cut c2 -> broker-b), from 15.000 s", "it took", "GET_CONSUMER_LIST_BY_GROUP (38)")
    assert has(reported, "the last HEART_BEAT (34) of c2 reached broker-b at")
    assert has(reported, "calls of c2 to broker-b that failed", "connection not answered", "timed out")
    assert has(reported, "c2 keeps it: no pass since has seen other members or queues")


def test_a_member_that_is_listed_twice_leads_to_the_proxy_that_it_has_left(tmp_path):
    config = ConsumerConfig(namesrv_addr="proxy-1;proxy-2")
    proxies = tuple(ProxySpec(name, ProxyConfig()) for name in ("proxy-1", "proxy-2"))
    run = attrs.evolve(scenario(130, consumers=0), proxies=proxies, consumers=consumer_group(3, config))
    path, trace = executed(run, tmp_path, {30: "kill proxy-1"})
    lost = next(
        row
        for row in trace.select("ownership", event="dropped", after_ms=32_000)
        if trace.owners(100_000, row.topic).get((row.broker_name, row.queue_id), []) == []
    )
    reported = answer_of_run([f"queue {lost.topic}/{lost.broker_name}/{lost.queue_id} at 100s"], open_run(path))

    assert "proxy-2 gave these members, which it held since:" in reported
    assert has(reported, "  proxy-2  proxy_members g: ", " at proxy-1 and proxy-2", "(before: 3 members: ")
    assert has(reported, "  kill-1 (kill proxy-1), from 30.000 s", "it hit proxy-1 itself")


def test_a_killed_broker_leads_to_the_operator_by_its_closed_connection(tmp_path):
    path, _ = executed(scenario(100), tmp_path, {60: "kill broker-b"})
    run = open_run(path)
    reported = answer_of_run(["live_brokers broker-b at 90s"], run)

    assert has(reported, "ns-1      live_brokers broker-b: nothing any more (broker-b gone)")
    assert has(reported, "since broker-b closed its connection")
    assert has(reported, "operator", "since the operator began kill-1 (kill broker-b)")
    assert has(reported, "kill-1 (kill broker-b), from 60.000 s", "it hit broker-b itself")

    routed = answer_of_run(["route orders of c1 at 95s"], run)
    assert has(routed, "c1  route orders: broker-a", "(broker-b gone), reported by ns-1")
    assert "ns-1 sent this; it held since:" in routed
    assert has(routed, "operator", "since the operator began kill-1 (kill broker-b)")


def test_a_broker_without_power_is_found_by_the_expiry_scan_and_the_fault_is_named(tmp_path):
    patient = NameserverConfig(server_channel_max_idle_time_seconds=3_600)
    path, _ = executed(
        scenario(260, nameservers=(NameserverSpec("ns-1", patient),)), tmp_path, {60: "power-off broker-b"}
    )
    reported = answer_of_run(["live_brokers broker-b of ns-1 at 250s"], open_run(path))

    assert has(reported, "ns-1  live_brokers broker-b: nothing any more (broker-b gone)")
    assert has(reported, "ns-1    since its timer scanNotActiveBroker (the nameserver's scan for brokers")
    assert has(reported, "power_off-1 (power off broker-b), from 60.000 s", "it hit broker-b itself")
    assert has(reported, "broker-b was powered off at 60.000 s")
    assert has(reported, "the last REGISTER_BROKER (103) of broker-b reached ns-1 at")


def test_a_broker_without_power_leads_to_the_idle_connection_where_that_is_found_first(tmp_path):
    path, _ = executed(scenario(260), tmp_path, {60: "power-off broker-b"})
    reported = answer_of_run(["live_brokers broker-b of ns-1 at 250s"], open_run(path))

    assert has(reported, "ns-1    since its timer allIdle (the closing of idle connections)")
    assert has(reported, "power_off-1 (power off broker-b), from 60.000 s", "it hit broker-b itself")


def test_a_suspended_consumer_that_was_given_up_is_named_behind_the_scan(tmp_path):
    path, _ = executed(scenario(260, brokers=("broker-a",)), tmp_path, {40: "suspend c2"})
    run = open_run(path)
    reported = answer_of_run(["consumer_ids g at 250s"], run)

    assert has(reported, "broker-a  consumer_ids g: 1 members: c1 (c2 gone)")
    assert has(reported, "since its timer scanExceptionChannel")
    assert has(reported, "suspend-1 (suspend c2), from 40.000 s", "it hit c2 itself")
    assert has(reported, "the last HEART_BEAT (34) of c2 reached broker-a at")
    assert has(answer_of_run(["queue orders/broker-a/3 at 250s"], run), "c2 keeps it: it stands still since 40.000 s")


def test_a_calm_rebalance_leads_to_the_start_of_who_joined_and_no_fault(tmp_path):
    path, trace = executed(scenario(60, spread_ms=20_000), tmp_path, {})
    first, second = sorted(trace.select("lifecycle", event="started", role="consumer"), key=lambda row: row.seq)
    reported = answer_of_run([f"view g/orders of {first.node} at 55s"], open_run(path))

    assert has(reported, f"{first.node}        view g/orders: 2 members: c1 c2") or has(
        reported, f"({second.node} new), reported by"
    )
    assert has(reported, f"since HEART_BEAT (34) of {second.node} arrived")
    assert has(reported, f"{second.node}", "since its process 1 started")
    assert reported[-1] == "  no fault was active"


def test_a_running_cluster_answers_at_its_desk_and_its_trace_stays_the_same(tmp_path):
    lines = []

    async def asking(me: ConsoleUser) -> None:
        for at_s in (5, 50, 51):
            await me.at_ms(at_s * 1_000)
            lines.append(await me.say(f"why queue orders/broker-a/0 at {at_s}s"))
        assert (await me.refused("why queue orders/broker-a")).startswith("expected a queue as TOPIC/BROKER/ID")
        assert (await me.refused("why absent")).startswith("there is no subject absent; some of")
        assert await me.refused("why") == "expected: why QUESTION"

    path, _ = run_at_console(scenario(60), tmp_path, asking)
    untouched, _ = executed(scenario(60), tmp_path, {})

    assert lines[1][0].startswith("at 50.000 s queue orders/broker-a/0 of group g has one owner: c1 since")
    assert lines[1][1:-2] == lines[2][1:-2]
    assert open_run(path).manifest["digest"] == open_run(untouched).manifest["digest"]


def test_brokers_that_share_an_address_are_reported_apart(tmp_path):
    from pathlib import Path

    from emulator.run import run_scenario
    from emulator.spec import load

    shared = load(Path(__file__).parents[2] / "examples" / "rip32" / "p1_kill.toml")
    run = open_run(run_scenario(attrs.evolve(shared, run_for_ms=330_000), runs=tmp_path).path)

    assert has(answer_of_run(["live_brokers ba"], run), "live_brokers ba: id 1 ba-s1, id 2 ba-s2 (ba gone)")


def test_a_client_id_that_could_be_of_several_nodes_is_left_as_it_is():
    names = names_of({"c1": "127.1.10.1", "c2": "127.1.10.1", "c3": "127.1.10.2"}, ())

    assert names.within("127.1.10.1@1401#7 127.1.10.2@1501#7") == "127.1.10.1@1401#7 c3"
    assert (names.node("127.1.10.1@1401#7"), names.node("127.1.10.2:40000")) == ("127.1.10.1@1401#7", "c3")


def test_a_queue_that_an_assigner_gave_away_leads_to_its_allocation_and_to_the_member_that_it_has_not_heard(tmp_path):
    pinned = ConsumerConfig(client_rebalance=False, pinned_assigner=True)
    path, trace = executed(scenario(260, consumers=consumer_group(3, pinned)), tmp_path, {15: "cut c2 broker-a"})
    broker_name, queue_id = next(queue for queue, owners in trace.owners(14_000).items() if owners == ["c2"])
    reported = answer_of_run([f"queue orders/{broker_name}/{queue_id} at 250s"], open_run(path))

    assert "has 2 owners: c2 since" in reported[0]
    assert "broker-a sent this; it had allocated the queues:" in reported
    assert has(reported, "broker-a  allocation g/orders: epoch", "(c2 gone, c1 and c3 changed)")
    assert "broker-a allocated them among the members that it held since:" in reported
    assert has(reported, "broker-a    since its timer scanExceptionChannel")
    assert has(reported, "keeps it: broker-a assigns it the same queues since")
    assert has(reported, "c2 keeps it: no broker has assigned it queues since")
    assert has(reported, "calls of c2 to broker-a that failed", "QUERY_ASSIGNMENT (400) timed out")


def test_an_assigner_is_the_first_master_of_the_route_that_a_member_held(tmp_path):
    pinned = ConsumerConfig(client_rebalance=False, pinned_assigner=True)
    path, _ = executed(scenario(120, consumers=consumer_group(2, pinned)), tmp_path, {30: "kill broker-a"})
    run = open_run(path)
    reported = answer_of_run(["assigner g/orders of c1"], run)

    assert reported[0].endswith("c1  assigner g/orders: broker-b (before: broker-a)")
    assert "it is the first master of the route that c1 held:" in reported
    assert has(reported, "operator", "since the operator began kill-1 (kill broker-a)")

    followed = answer_of_run(["epoch g/orders of c1"], run)
    assert has(followed, "c1  epoch g/orders:", "of broker-b (before:", "of broker-a), reported by broker-b")
    assert "broker-b sent this; it had allocated the queues:" in followed


def test_a_member_that_allocates_for_itself_again_works_from_a_view_again(tmp_path):
    lines = {30: "rebalance g assigner", 60: "rebalance g client"}
    path, _ = executed(scenario(100), tmp_path, lines)
    run = open_run(path)

    forgot = answer_of_run(["view g/orders of c1 at 50s"], run)
    assert has(forgot, "c1        view g/orders: nothing any more")
    assert has(forgot, "since the operator began rebalance-1 (rebalance g, by=assigner)")
    assert not has(forgot, "the queues are those of the route")
    assert has(answer_of_run(["assigner g/orders of c1 at 90s"], run), "nothing any more (before: broker-a)")
    assert has(answer_of_run(["rebalance_mode g of c1"], run), "each member allocates for itself (before: one broker")
    collecting = answer_of_run(["queue orders/broker-a/0 at 49s"], run)
    assert has(collecting, "c1 keeps it: no broker has assigned it queues since 31.0")
    assert has(answer_of_run(["queue orders/broker-a/0 at 55s"], run), "keeps it: broker-a assigns it the same queues")
    assert has(answer_of_run(["queue orders/broker-a/0 at 90s"], run), "it works from view g/orders: 2 members")

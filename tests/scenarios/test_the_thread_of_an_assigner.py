"""An assigner with a thread that looks at its groups periodically: what members get is as old as its last round."""

import json

import pytest

from emulator.analysis.findings.finding import Cause
from emulator.analysis.inputs.bounds import bounds_of
from emulator.testing import GROUP, TOPIC, Stage, a_scenario, broker_groups, consumer_group, execute
from emulator.testing.worlds import add_host, execute_world, process_of, until_ms
from nodes.broker.clients.assigner_rounds import AssignerRounds, SeenGroup
from nodes.config import BrokerConfig, ConsumerConfig
from support.ordered import holds

PERIOD_MS = 15_000
SUBJECT = f"{GROUP}/{TOPIC}"
PINNED = ConsumerConfig(client_rebalance=False, pinned_assigner=True)


def run(period_ms, script=None, *, consumers=3, for_ms=0):
    broker = BrokerConfig(assigner_rebalance_interval_ms=period_ms)
    return execute(scenario(broker, consumers=consumers), script, for_ms=for_ms)


def scenario(broker, *, consumers=3, options=PINNED):
    brokers = broker_groups("broker-a", config=broker)
    return a_scenario(consumers=consumer_group(consumers, options), brokers=brokers, queues=6)


def allocated(trace):
    """(instant in ms, members) of each allocation."""
    rows = trace.select("beliefs", kind="allocation", subject=SUBJECT)
    return [(row.at_ms, len(json.loads(row.value)["shares"])) for row in rows]


async def one_dies_at_40_s(stage: Stage) -> None:
    await stage.at_ms(40_000)
    await stage.kill("c2")
    await stage.at_ms(70_000)


def test_members_own_nothing_before_the_first_round():
    trace = run(PERIOD_MS, for_ms=60_000)

    taken = [at_ms for name in ("c1", "c2", "c3") for at_ms in holds(trace, name, "acquired", topic=TOPIC)]
    assert min(taken) > PERIOD_MS
    assert sorted(map(len, trace.owners().values())) == [1] * 6


@pytest.mark.parametrize(("period_ms", "latest_ms"), [(0, 41_000), (PERIOD_MS, 46_000)])
def test_the_queues_of_a_dead_member_wait_for_the_next_round(period_ms, latest_ms):
    trace = run(period_ms, one_dies_at_40_s)

    (heirs_ms,) = {at_ms for at_ms, members in allocated(trace) if at_ms > 40_000}
    assert latest_ms - 1_000 <= heirs_ms <= latest_ms
    assert [len(owners) for owners in trace.owners().values()] == [1] * 6
    alone = [owners for at_ms, held in trace.owners_over_time() if at_ms > latest_ms for owners in held.values()]
    assert all(len(owners) == 1 for owners in alone)


def test_a_round_that_sees_a_change_wakes_the_members_which_need_not_wait_for_their_own_round():
    trace = run(PERIOD_MS, one_dies_at_40_s)

    taken = [at_ms for name in ("c1", "c3") for at_ms in holds(trace, name, "acquired", topic=TOPIC)]
    assert 45_000 <= max(taken) < 45_200


def test_a_group_that_is_gone_is_looked_at_no_more():
    async def main(world):
        answers = [SeenGroup((), ("c1",)), SeenGroup((), ("c1",)), None]
        looked, changed = [], []

        async def look(*of):
            looked.append(of)
            return answers.pop(0)

        rounds = AssignerRounds(process_of(add_host(world, 1, "broker-a")), PERIOD_MS, look, changed.append)
        assert rounds.seen(GROUP, TOPIC) is None
        rounds.start()
        await until_ms(world, 6 * PERIOD_MS)
        return looked, changed

    assert execute_world(main).result == ([(GROUP, TOPIC)] * 3, [GROUP, GROUP])


def test_what_a_notification_explains_lasts_a_round_longer_and_only_where_members_ask_an_assigner():
    broker = BrokerConfig(assigner_rebalance_interval_ms=PERIOD_MS)

    with_thread, without = bounds_of(scenario(broker)), bounds_of(scenario(BrokerConfig()))
    alone = bounds_of(scenario(broker, options=ConsumerConfig()))
    assert with_thread.of(Cause.NOTIFIED) - without.of(Cause.NOTIFIED) == PERIOD_MS
    assert alone == without

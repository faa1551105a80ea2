"""Queues that are lent by five lock services and Redlock, under pause, clock jump, cut, death and a lost node."""

import attrs
import pytest

from emulator.testing import GROUP, execute
from nodes.config import Exclusivity, LockServiceKind, StatefulSetConfig
from support.statefulsets import ORDINAL, a_statefulset, at_once, processed, twice_at_once

CONSUME_MS = 200
LEASE = attrs.evolve(ORDINAL, exclusivity=Exclusivity.LEASE)
PATIENT = StatefulSetConfig(liveness_probe_failure_threshold=1_000)
KINDS = list(LockServiceKind)
NUMBERED = [kind for kind in KINDS if kind is not LockServiceKind.REDLOCK]


def some(kinds, *always):
    """All kinds, of which `make test` runs some, and `make proofs` the others."""
    return [pytest.param(kind, marks=() if kind in always else pytest.mark.slow) for kind in kinds]


def executed(kind, script, *, replicas=2, for_ms=120_000, **options):
    consumer = attrs.evolve(LEASE, lock_service=kind, **options)
    scenario = a_statefulset(replicas, consumer=consumer, config=PATIENT, consume_ms=CONSUME_MS, rate_per_s=8)
    return execute(scenario, script, for_ms=for_ms)


def done_in(trace, from_ms=0, to_ms=10**9, node=None):
    return [
        item for item in processed(trace, CONSUME_MS) if from_ms <= item.begin_ms < to_ms and node in (None, item.node)
    ]


async def pause_of_the_first(stage):
    """The second pod is there from 40 s on, when the first has been suspended for 10 s."""
    await stage.at_ms(30_000)
    await stage.begin("cut kubernetes consumer-0")
    await stage.begin(f"scale {GROUP} 2")
    await stage.suspend("consumer-0", 40_000)


@pytest.mark.parametrize("kind", KINDS)
def test_a_scale_processes_nothing_twice(kind):
    async def script(stage):
        for at_ms, replicas in ((30_000, 3), (60_000, 1), (90_000, 2)):
            await stage.at_ms(at_ms)
            await stage.begin(f"scale {GROUP} {replicas}")

    done = processed(executed(kind, script), CONSUME_MS)

    assert at_once(done) == []
    messages = [(item.queue_id, item.offset) for item in done]
    assert len(messages) == len(set(messages)) > 700


@pytest.mark.parametrize("kind", some(NUMBERED, LockServiceKind.LEASE, LockServiceKind.ZOOKEEPER))
def test_every_new_holder_has_a_larger_token(kind):
    async def script(stage):
        await stage.at_ms(30_000)
        await stage.begin(f"scale {GROUP} 3")

    rows = executed(kind, script, for_ms=80_000).select("beliefs", kind="lease", node="leases")

    by_queue = {}
    for row in rows:
        if row.held:
            by_queue.setdefault(row.subject, []).append(row.held["token"])
    assert any(len(tokens) > 1 for tokens in by_queue.values())
    assert all(tokens == sorted(set(tokens)) for tokens in by_queue.values())


@pytest.mark.parametrize(
    "kind",
    some(
        [kind for kind in KINDS if kind is not LockServiceKind.POSTGRESQL],
        LockServiceKind.DYNAMODB,
        LockServiceKind.REDLOCK,
    ),
)
def test_a_suspended_holder_has_a_message_next_to_the_next_holder(kind):
    done = processed(executed(kind, pause_of_the_first, replicas=1), CONSUME_MS)

    assert twice_at_once(done)


def test_a_suspended_process_keeps_its_advisory_locks_because_its_kernel_answers_for_it():
    trace = executed(LockServiceKind.POSTGRESQL, pause_of_the_first, replicas=1, tcp_keepalives_idle=5)

    assert at_once(processed(trace, CONSUME_MS)) == []
    mine = {item.queue_id for item in done_in(trace, to_ms=30_000)}
    assert {item.queue_id for item in done_in(trace, 36_000, 69_000)} < mine


@pytest.mark.parametrize("kind", some(NUMBERED, LockServiceKind.BLOB, LockServiceKind.POSTGRESQL))
def test_with_fencing_tokens_a_former_holder_commits_nothing(kind):
    trace = executed(kind, pause_of_the_first, replicas=1, fencing=True)

    committed = {}
    for row in trace.select("messages", event="committed", group=GROUP):
        queue = (row.topic, row.queue_id)
        assert row.offset >= committed.get(queue, -1)
        committed[queue] = row.offset


@pytest.mark.parametrize(
    ("kind", "jumps"),
    [
        (LockServiceKind.LEASE, True),
        (LockServiceKind.BLOB, True),
        (LockServiceKind.DYNAMODB, False),
        (LockServiceKind.ZOOKEEPER, False),
        (LockServiceKind.POSTGRESQL, False),
    ],
)
def test_only_services_with_a_wall_clock_give_locks_away_when_it_jumps(kind, jumps):
    async def script(stage):
        await stage.at_ms(30_200)
        await stage.begin("cut kubernetes consumer-0")
        await stage.begin(f"scale {GROUP} 2")
        await stage.begin("skew leases 20000")

    done = processed(executed(kind, script, replicas=1, for_ms=60_000), CONSUME_MS)

    assert bool(at_once(done)) is jumps


def test_redlock_gives_a_lock_away_when_the_clocks_of_most_nodes_jump_and_not_before():
    async def script(stage, nodes):
        await stage.at_ms(30_200)
        await stage.begin("cut kubernetes consumer-0")
        await stage.begin(f"scale {GROUP} 2")
        for number in range(nodes):
            await stage.begin(f"skew leases-{number + 1} 20000")

    def overlaps(nodes):
        trace = executed(LockServiceKind.REDLOCK, lambda stage: script(stage, nodes), replicas=1, for_ms=60_000)
        return bool(at_once(processed(trace, CONSUME_MS)))

    assert [overlaps(nodes) for nodes in (2, 3)] == [False, True]


def test_redlock_forgets_what_restarted_nodes_have_lent():
    async def script(stage):
        await stage.at_ms(30_200)
        await stage.begin("cut kubernetes consumer-0")
        await stage.begin(f"scale {GROUP} 2")
        for number in (1, 2, 3):
            await stage.begin(f"restart leases-{number}")

    assert at_once(processed(executed(LockServiceKind.REDLOCK, script, replicas=1, for_ms=60_000), CONSUME_MS))


def test_redlock_goes_on_without_two_of_five_nodes_and_stops_without_three():
    async def script(stage):
        await stage.at_ms(30_000)
        await stage.kill("leases-1")
        await stage.kill("leases-2")
        await stage.at_ms(70_000)
        await stage.kill("leases-3")

    trace = executed(LockServiceKind.REDLOCK, script, for_ms=120_000)

    assert done_in(trace, 60_000, 70_000)
    assert not done_in(trace, 86_000)


def test_the_locks_of_a_killed_pod_are_free_at_once_at_a_database_and_after_their_time_elsewhere():
    async def script(stage):
        await stage.at_ms(30_000)
        await stage.kill("consumer-0")

    def back_ms(kind):
        trace = executed(kind, script, replicas=1, for_ms=80_000)
        return min(item.begin_ms for item in done_in(trace, 30_500)) - 30_000

    assert back_ms(LockServiceKind.POSTGRESQL) < 8_000
    for kind in (LockServiceKind.LEASE, LockServiceKind.DYNAMODB, LockServiceKind.ZOOKEEPER, LockServiceKind.REDLOCK):
        assert 9_000 < back_ms(kind) < 25_000


def test_a_database_notices_a_cut_holder_only_by_keepalives():
    async def script(stage):
        await stage.at_ms(30_000)
        await stage.begin("cut kubernetes consumer-0")
        await stage.begin("cut leases consumer-0")
        await stage.begin(f"scale {GROUP} 2")

    idle_s = 10
    trace = executed(LockServiceKind.POSTGRESQL, script, replicas=1, for_ms=760_000, tcp_keepalives_idle=idle_s)

    mine = {item.queue_id for item in done_in(trace, to_ms=30_000)}
    # A message that is in process is finished; after that no consumer has the queues that the other pod is to have.
    given = {item.queue_id for item in done_in(trace, 720_000)}
    silent = [item for item in done_in(trace, 40_000, 690_000) if item.queue_id in mine]
    assert not silent
    assert given


def test_a_session_that_is_cut_off_stops_before_it_expires():
    async def script(stage):
        await stage.at_ms(30_000)
        await stage.begin("cut kubernetes consumer-0")
        await stage.begin("cut leases consumer-0")
        await stage.begin(f"scale {GROUP} 2")

    trace = executed(LockServiceKind.ZOOKEEPER, script, replicas=1, for_ms=80_000)

    assert at_once(processed(trace, CONSUME_MS)) == []
    last_ms = max(item.end_ms for item in done_in(trace, node="consumer-0"))
    first_ms = min(item.begin_ms for item in done_in(trace, node="consumer-1"))
    assert last_ms < 42_000 < first_ms < 52_000

"""The threads of a concurrent consumer: as many as it needs at a time, at most `consumeThreadMin`, and they stay."""

import pytest
import trio

from emulator.testing import a_scenario, consumer_group, execute
from nodes.config import ConsumerConfig


def pool_threads():
    """How many tasks of the running world are threads of a pool."""
    tasks, count = [trio.lowlevel.current_root_task()], 0
    while tasks:
        task = tasks.pop()
        count += task.name.endswith("/ConsumeMessageThread")
        tasks += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return count


@pytest.mark.parametrize(("consume_ms", "threads"), [(0, 16), (5_000, 20)])
def test_a_pool_has_the_threads_that_were_busy_at_a_time_and_keeps_them(consume_ms, threads):
    """Ten messages a second, each of which takes a thread for so long; the first pull finds sixteen."""
    config = ConsumerConfig(consume_thread_min=20)
    scenario = a_scenario(consumers=consumer_group(1, config, consume_ms=consume_ms), queues=1, rate_per_s=10)
    counted = []

    async def script(stage):
        await stage.at_ms(25_000)
        counted.append(pool_threads())
        await stage.at_ms(40_000)
        counted.append(pool_threads())

    trace = execute(scenario, script)
    assert counted == [threads, threads]
    consumed = trace.select("messages", event="consumed")
    assert len(consumed) >= 30_000 // max(100, consume_ms // threads)

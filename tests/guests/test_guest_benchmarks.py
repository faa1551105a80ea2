"""Figures against a real broker, on next to nothing: that they are measured, not what they are."""

import pytest

from studies.bench import guest_rows
from studies.bench.figures import Work

pytestmark = pytest.mark.guests
TINY = Work(size=0.01, rounds=0.1)


@pytest.mark.parametrize("threads", guest_rows.THREADS)
def test_a_java_producer_is_timed_against_both_brokers(need, threads):
    need("java", "mvn")

    sends = guest_rows.sends_per_s("sends", threads, TINY)
    slowest = guest_rows.p99_ms("p99", threads, TINY)

    assert sends.value > 0
    assert sends.ratio > 0
    assert 0 < slowest.value < 3_000
    assert "a real 5.3.3 broker in turn" in sends.reference


def test_the_first_message_is_timed_and_memory_is_read_when_it_has_come(need):
    need("java", "mvn")

    first = guest_rows.first_message_s("first", TINY)
    memory = guest_rows.memory_mib("memory", TINY)

    assert 0 < first.value < 60
    assert memory.value > 10
    assert memory.ratio < 1

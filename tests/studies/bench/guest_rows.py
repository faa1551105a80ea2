"""What a Java producer sees of an emulated cluster, next to RocketMQ 5.3.3 itself: one nameserver, one broker each."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import TypeVar

import attrs

from emulator.trace.schema import TraceLevel
from studies.bench.figures import Row, Sample, Work
from studies.bench.guest_clusters import GuestCluster, emulated_cluster, real_cluster
from studies.bench.guest_java import Load, sync_producer

T = TypeVar("T")
_Make = Callable[[], AbstractContextManager[GuestCluster]]
_ROUNDS = 3
_WARM_S, _RUN_S = 5, 6
"""All processes are new in each run. A JVM goes on compiling for long after the first seconds: a real broker that has
been under load for half a minute takes 1.5 times as many."""
_WARM_ROUNDS = 1
_HOT_S, _LONG_S = 30, 60
THREADS = (1, 4)
_REAL = "a real 5.3.3 broker in turn"
_SMALL_HEAPS = "a real nameserver and broker with heaps of 256 MiB"


@attrs.frozen
class _Sends:
    """What one run of so many threads measured."""

    per_s: float
    """Messages."""
    p99_ms: float


def sends_per_s(name: str, threads: int, work: Work) -> Row:
    """Sync sends of 100 bytes, trace on, next to the same of a real broker."""
    own, real = _measured_sends(work)[threads]
    return _row(name, "sends/s", _REAL, _each(own, lambda run: run.per_s), _each(real, lambda run: run.per_s))


def p99_ms(name: str, threads: int, work: Work) -> Row:
    """The slowest hundredth of the same sends."""
    own, real = _measured_sends(work)[threads]
    return _row(name, "ms", _REAL, _each(own, lambda run: run.p99_ms), _each(real, lambda run: run.p99_ms))


def first_message_s(name: str, work: Work) -> Row:
    """From the start of the servers' processes to the first message that they have taken."""
    own, real = _measured_starts(work)
    subject = f"{_SMALL_HEAPS}, a producer that tries all the time"
    return _row(
        name,
        "s",
        subject,
        _each(own, lambda item: item.first_message_s),
        _each(real, lambda item: item.first_message_s),
    )


def memory_mib(name: str, work: Work) -> Row:
    """What the servers' processes take when they have taken the first message."""
    own, real = _measured_starts(work)
    return _row(
        name, "MiB", _SMALL_HEAPS, _each(own, lambda item: item.memory_mib), _each(real, lambda item: item.memory_mib)
    )


def warm_messages_per_s(name: str, load: Load, work: Work) -> Row:
    """Messages of a producer next to a broker that has been under load for half a minute; level `findings`."""
    own, real = _measured_warm(load, work)
    subject = f"{_REAL}, as warm"
    return _row(name, "messages/s", subject, _each(own, lambda run: run.per_s), _each(real, lambda run: run.per_s))


def warm_p99_ms(name: str, load: Load, work: Work) -> Row:
    """The slowest hundredth of the same sends."""
    own, real = _measured_warm(load, work)
    return _row(
        name, "ms", f"{_REAL}, as warm", _each(own, lambda run: run.p99_ms), _each(real, lambda run: run.p99_ms)
    )


@cache
def _measured_sends(work: Work) -> dict[int, tuple[list[_Sends], list[_Sends]]]:
    """Threads -> runs against the emulated broker, and against the real one."""
    runs: dict[int, tuple[list[_Sends], list[_Sends]]] = {threads: ([], []) for threads in THREADS}
    for number, make in _in_turn(work.repeated(_ROUNDS), emulated_cluster):
        for threads in THREADS:
            runs[threads][number].append(_sends(make, Load(threads), work.sized(_WARM_S), work.sized(_RUN_S)))
    return runs


@cache
def _measured_warm(load: Load, work: Work) -> tuple[list[_Sends], list[_Sends]]:
    runs: tuple[list[_Sends], list[_Sends]] = ([], [])
    for number, make in _in_turn(work.repeated(_WARM_ROUNDS), partial(emulated_cluster, TraceLevel.FINDINGS)):
        runs[number].append(_sends(make, load, work.sized(_HOT_S), work.sized(_LONG_S)))
    return runs


def _sends(make: _Make, load: Load, warm_s: int, run_s: int) -> _Sends:
    with make() as cluster, sync_producer() as producer:
        took_us = producer.send(cluster.namesrv_addr, load, warm_s=warm_s, run_s=run_s)
    return _Sends(load.batch * len(took_us) / run_s, took_us[len(took_us) * 99 // 100] / 1_000)


@attrs.frozen
class _Start:
    """What one start of a cluster measured."""

    first_message_s: float
    memory_mib: float


@cache
def _measured_starts(work: Work) -> tuple[list[_Start], list[_Start]]:
    """Starts of the emulated cluster, and of the real one."""
    starts: tuple[list[_Start], list[_Start]] = ([], [])
    for number, make in _in_turn(work.repeated(_ROUNDS), emulated_cluster):
        with sync_producer() as producer:
            begun_s = time.time()
            with make() as cluster:
                at_s = producer.first_message_at_s(cluster.namesrv_addr)
                starts[number].append(_Start(at_s - begun_s, cluster.memory_mib()))
    return starts


def _in_turn(rounds: int, emulated: _Make) -> Iterator[tuple[int, _Make]]:
    for _ in range(rounds):
        yield from enumerate((emulated, real_cluster))


def _each(runs: Sequence[T], figure: Callable[[T], float]) -> Sample:
    return Sample(tuple(map(figure, runs)))


def _row(name: str, unit: str, subject: str, own: Sample, real: Sample) -> Row:
    relative_path = f"{subject}: {real.median:,.4g} {unit} (spread {real.spread_pct:.0f} %)"
    return Row(name, own.median, unit, own.spread_pct, relative_path, own.median / real.median)

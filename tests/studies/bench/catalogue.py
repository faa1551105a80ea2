"""All benchmarks by name, and what each is expected to reach."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs

from emulator.cli.demo import SCENARIO
from emulator.spec.bundled import example
from emulator.time.mode import TimeMode
from emulator.trace.schema import TraceLevel
from nodes.config import STATEFUL, AllocateStrategy
from studies.bench import guest_rows, rows, turns
from studies.bench.figures import Floor, Judged, Row, Work
from studies.bench.guest_java import Load


@attrs.frozen
class Benchmark:
    """One name in `bench.json`."""

    name: str
    floor: Floor | None
    """What the reference machine reaches; None: no one has promised anything."""
    measured: Callable[[str, Work], Row]

    def measure(self, work: Work) -> Row:
        """Run it."""
        return self.measured(self.name, work)


def _ratio(limit: float) -> Floor:
    return Floor(Judged.RATIO, limit)


def _ratio_at_most(limit: float) -> Floor:
    return Floor(Judged.RATIO, limit, at_most=True)


def _value(limit: float) -> Floor:
    return Floor(Judged.VALUE, limit)


def _seconds(limit: float) -> Floor:
    return Floor(Judged.VALUE, limit, at_most=True)


def _rpc(connections: int, *, typed: bool = False) -> Callable[[str, Work], Row]:
    return lambda name, work: rows.rpc(name, connections, work, typed=typed)


def _speed(shape: rows.Shape, mode: TimeMode, window_s: int, rounds: int) -> Callable[[str, Work], Row]:
    return partial(_measure_speed, shape, mode, window_s, rounds)


def _measure_speed(shape: rows.Shape, mode: TimeMode, window_s: int, rounds: int, name: str, work: Work) -> Row:
    return rows.emulated_s_per_s(name, shape, mode, work, window_s=window_s, rounds=rounds)


def _dying_masters(groups: int) -> Callable[[str, Work], Row]:
    return lambda name, work: rows.dying_masters_s_per_s(name, groups, work)


def _elected_masters(groups: int) -> Callable[[str, Work], Row]:
    return lambda name, work: rows.elected_masters_s_per_s(name, groups, work)


def _guest(figure: Callable[[str, int, Work], Row], threads: int) -> Callable[[str, Work], Row]:
    return lambda name, work: figure(name, threads, work)


def _warm(subject: str, load: Load, limit: float) -> tuple[Benchmark, Benchmark]:
    """Messages/s and p99 of a guest against a real broker, both warm."""
    return (
        Benchmark(f"guest_warm_{subject}", _ratio(limit), partial(_measure_warm, guest_rows.warm_messages_per_s, load)),
        Benchmark(
            f"guest_warm_p99_ms_{subject}", _ratio_at_most(1.0), partial(_measure_warm, guest_rows.warm_p99_ms, load)
        ),
    )


def _measure_warm(figure: Callable[[str, Load, Work], Row], load: Load, name: str, work: Work) -> Row:
    return figure(name, load, work)


def _allocation(strategy: AllocateStrategy) -> Benchmark:
    # Less than proportional: what members cost does not grow with the queues.
    growth = _ratio_at_most(1.2)
    name = f"allocation_{strategy.lower()}_s"
    return Benchmark(name, growth, lambda name, work: rows.allocation_s(name, strategy, work))


_SMALL = rows.Shape(nameservers=3, brokers=17, acting=True)
_LARGE = rows.Shape(nameservers=3, brokers=30, consumers=300)


def _cpu(workload: Path, level: TraceLevel, limit: float) -> Benchmark:
    """CPU next to the pinned release; the release writes all rows, whatever the level."""
    rounds = 5

    def measured(name: str, work: Work) -> Row:
        return turns.against_pinned(name, workload, level, work.repeated(rounds))

    return Benchmark(f"cpu_{workload.stem}_{level}", _ratio_at_most(limit), measured)


_WORKLOADS = (
    Path(str(example(SCENARIO))),
    *(turns.WORKLOADS / f"{name}.toml" for name in ("start_250", "groups_30", "data_path", "fourteen")),
)

BENCHMARKS = (
    *(_cpu(workload, TraceLevel.FINDINGS, 0.6) for workload in _WORKLOADS),
    *(_cpu(workload, TraceLevel.FULL, 0.75) for workload in _WORKLOADS),
    Benchmark("rpc_1", _ratio(0.85), _rpc(1)),
    Benchmark("rpc_100_connections", _ratio(1.2), _rpc(100)),
    Benchmark("rpc_typed", _ratio(1.0), _rpc(100, typed=True)),
    Benchmark("rpc_traced", _ratio(0.5), lambda name, work: rows.rpc_traced(name, 100, work)),
    Benchmark("guest_routes_grpc", None, rows.guest_routes_per_s),
    Benchmark("emulated_s_per_s_20_nodes_fast", _value(150), _speed(_SMALL, TimeMode.FAST, 1_200, 5)),
    Benchmark("emulated_s_per_s_20_nodes_sim", _value(400), _speed(_SMALL, TimeMode.SIM, 1_200, 5)),
    Benchmark("emulated_s_per_s_333_nodes_fast", _value(30), _speed(_LARGE, TimeMode.FAST, 180, 3)),
    Benchmark("emulated_s_per_s_333_nodes_sim", _value(60), _speed(_LARGE, TimeMode.SIM, 180, 3)),
    Benchmark("emulated_s_per_s_30_groups", _value(20), _dying_masters(30)),
    # Linear: doubling the groups halves the speed, and costs no more.
    Benchmark("emulated_s_per_s_60_groups", _ratio(0.85), _dying_masters(60)),
    # A new master costs at most 1.3 times what an acting slave costs.
    Benchmark("emulated_s_per_s_30_elected_groups", _ratio(1 / 1.3), _elected_masters(30)),
    Benchmark("demo_emulation_s", _seconds(15), rows.demo_emulation_s),
    Benchmark("ready_s", _seconds(2), rows.ready_s),
    Benchmark("memory_per_idle_consumer_kib", None, rows.memory_per_idle_consumer_kib),
    Benchmark("idle_cpu_per_node_pct", None, rows.idle_cpu_per_node_pct),
    *(_allocation(strategy) for strategy in AllocateStrategy if strategy not in STATEFUL),
    # An allocation that remembers may cost a few times what one that forgets costs.
    Benchmark("allocation_sticky_s", _ratio_at_most(5), rows.sticky_s),
    Benchmark("guest_sends_1_thread", _ratio(1.1), _guest(guest_rows.sends_per_s, 1)),
    Benchmark("guest_p99_ms_1_thread", _ratio_at_most(1.0), _guest(guest_rows.p99_ms, 1)),
    Benchmark("guest_sends_4_threads", _ratio(1.1), _guest(guest_rows.sends_per_s, 4)),
    Benchmark("guest_p99_ms_4_threads", _ratio_at_most(1.0), _guest(guest_rows.p99_ms, 4)),
    *_warm("1_thread", Load(1), 1.0),
    *_warm("4_threads", Load(4), 0.9),
    *_warm("4_threads_1_kib", Load(4, body_bytes=1_024), 0.9),
    *_warm("16_threads_1_kib", Load(16, body_bytes=1_024), 0.9),
    *_warm("4_threads_batches_of_32", Load(4, batch=32), 0.9),
    Benchmark("guest_first_message_s", _ratio_at_most(1 / 3), guest_rows.first_message_s),
    Benchmark("guest_memory_mib", _ratio_at_most(0.1), guest_rows.memory_mib),
)

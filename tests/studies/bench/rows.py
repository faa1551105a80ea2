"""How each figure is made: which runs, next to which rivals, in which unit."""

import time
from collections.abc import Callable
from functools import partial

import attrs

from emulator.spec.model.presets import Preset
from emulator.time.mode import TimeMode
from nodes.config import AllocateStrategy
from studies.bench import (
    allocation_trials,
    cluster_trials,
    group_trials,
    guest_call_trials,
    life_trials,
    rivals,
    rpc_trials,
)
from studies.bench.figures import Row, Sample, Work, interleave
from studies.bench.trial import run_trial

_RPC_ROUNDS = 5
_CALLS = 30_000
_GUEST_CALLS = 3_000
_LIVE = "requests/s, live mode"
REAL_TIME = "real time"


@attrs.frozen
class Shape:
    """How big a cluster is."""

    nameservers: int
    brokers: int
    consumers: int = 0
    acting: bool = False
    """Brokers beat and ask for their group's members once a second (`enableSlaveActingMaster`), which is no default."""


def rpc(name: str, connections: int, work: Work, *, typed: bool = False) -> Row:
    """Our calls, trace off, with `trio.socket` and `asyncio.Protocol` with messages of the same length."""
    calls = work.sized(_CALLS)
    ours = rpc_trials.typed_per_s if typed else rpc_trials.commands_per_s
    request_bytes, reply_bytes = rpc_trials.typed_bytes() if typed else rpc_trials.command_bytes()
    rival = partial(
        run_trial, connections=connections, calls=calls, request_bytes=request_bytes, reply_bytes=reply_bytes
    )
    own, raw, protocol = interleave(
        (
            lambda: run_trial(ours, connections=connections, calls=calls),
            lambda: rival(rivals.trio_socket_per_s),
            lambda: rival(rivals.asyncio_protocol_per_s),
        ),
        work.repeated(_RPC_ROUNDS),
    )
    size = f"{request_bytes} and {reply_bytes} bytes"
    return Row(
        name,
        own.median,
        _LIVE,
        own.spread_pct,
        _with_figure(f"raw trio.socket ping-pong, {size}", raw),
        own.median / raw.median,
        _with_figure(f"asyncio Protocol ping-pong, {size}", protocol),
        own.median / protocol.median,
    )


def rpc_traced(name: str, connections: int, work: Work) -> Row:
    """Our calls with the trace on, next to the same with the trace off."""
    commands = partial(run_trial, rpc_trials.commands_per_s, connections=connections, calls=work.sized(_CALLS))
    on, off = interleave((lambda: commands(traced=True), lambda: commands(traced=False)), work.repeated(_RPC_ROUNDS))
    return Row(name, on.median, _LIVE, on.spread_pct, _with_figure("the same, trace off", off), on.median / off.median)


def guest_routes_per_s(name: str, work: Work) -> Row:
    """Routes that a guest gets over gRPC, trace off, next to routes in RocketMQ's own frames."""
    routes = partial(run_trial, guest_call_trials.routes_per_s, calls=work.sized(_GUEST_CALLS))
    calls, frames = interleave((lambda: routes(grpc=True), lambda: routes(grpc=False)), work.repeated(_RPC_ROUNDS))
    rival = _with_figure("the same guest with RocketMQ's own frames", frames)
    return Row(name, calls.median, _LIVE, calls.spread_pct, rival, calls.median / frames.median)


def emulated_s_per_s(
    name: str, shape: Shape, mode: TimeMode, work: Work, *, window_s: int, rounds: int, settle_s: int = 60
) -> Row:
    """How fast virtual time passes in a cluster that has settled, trace on."""
    speed = _alone(
        partial(
            run_trial,
            cluster_trials.emulated_s_per_s,
            **attrs.asdict(shape),
            mode=mode,
            settle_s=settle_s,
            window_s=work.sized(window_s),
        ),
        work.repeated(rounds),
    )
    return Row(name, speed.median, "emulated s/s", speed.spread_pct, REAL_TIME, speed.median)


def dying_masters_s_per_s(name: str, groups: int, work: Work) -> Row:
    """How fast virtual time passes while masters die; with it half as many groups, and what doubling them costs."""
    speed = partial(run_trial, group_trials.dying_masters_s_per_s, window_s=work.sized(600))
    own, half = interleave((lambda: speed(groups=groups), lambda: speed(groups=groups // 2)), work.repeated(3))
    subject = f"twice the time of {groups // 2} groups: {half.median / 2:.1f}"
    return Row(name, own.median, "emulated s/s", own.spread_pct, subject, 2 * own.median / half.median)


def elected_masters_s_per_s(name: str, groups: int, work: Work) -> Row:
    """How fast virtual time passes while masters die and controllers elect others; with it acting slaves."""
    speed = partial(run_trial, group_trials.dying_masters_s_per_s, groups=groups, window_s=work.sized(600))
    own, acting = interleave((lambda: speed(preset=Preset.CONTROLLER), speed), work.repeated(3))
    subject = f"the same groups with acting slaves: {acting.median:.1f}"
    return Row(name, own.median, "emulated s/s", own.spread_pct, subject, own.median / acting.median)


def demo_emulation_s(name: str, work: Work) -> Row:
    """How long the demonstration's emulation takes; its 600 emulated seconds are never shortened."""
    wall = _alone(partial(run_trial, cluster_trials.demo_emulation_s), work.repeated(3))
    return Row(name, wall.median, "s", wall.spread_pct, "none: 600 emulated s in sim mode", None)


def ready_s(name: str, work: Work) -> Row:
    """From the start of the interpreter to the moment at which every queue has its owner."""
    wall = _alone(lambda: run_trial(life_trials.ready_s, begun_s=time.monotonic()), work.repeated(5))
    subject = "none: live mode, Python's start included, 1 nameserver, 2 brokers, 2 consumers, 8 queues"
    return Row(name, wall.median, "s", wall.spread_pct, subject, None)


def memory_per_idle_consumer_kib(
    name: str, work: Work, *, fewer: int = 100, more: int = 200, settle_s: int = 60
) -> Row:
    """What one more consumer that owns nothing takes, from two clusters of different size."""
    resident = partial(run_trial, life_trials.resident_kib, settle_s=settle_s)
    small, large = interleave((lambda: resident(consumers=fewer), lambda: resident(consumers=more)), work.repeated(3))
    each = Sample(tuple((b - a) / (more - fewer) for a, b in zip(small.values, large.values, strict=True)))
    subject = f"none: resident memory with {more} consumers less that with {fewer}, sim mode"
    return Row(name, each.median, "KiB", each.spread_pct, subject, None)


def idle_cpu_per_node_pct(name: str, work: Work, *, consumers: int = 20, wall_s: int = 20, settle_s: int = 5) -> Row:
    """What a node of a live cluster that is left alone takes of a core."""
    duration_s = work.sized(wall_s)
    share = _alone(
        partial(run_trial, life_trials.idle_cpu_pct, consumers=consumers, wall_s=duration_s, settle_s=settle_s), 1
    )
    subject = f"none: 1 nameserver, 2 brokers, {consumers} consumers over {duration_s} wall s"
    return Row(name, share.median, "% of a core", share.spread_pct, subject, None)


def allocation_s(name: str, strategy: AllocateStrategy, work: Work, *, consumers: int = 1_000) -> Row:
    """How long a whole group takes to allocate its queues; with it, a queue's part of that among few and among many."""
    few, usual, many = (work.sized(queues) for queues in (1_000, 10_000, 100_000))
    group = partial(run_trial, allocation_trials.whole_group_s, strategy=strategy, consumers=consumers)
    among_few, wall, among_many = interleave(
        (lambda: group(queues=few), lambda: group(queues=usual), lambda: group(queues=many)), work.repeated(5)
    )
    each_of_few, each_of_many = among_few.median / few, among_many.median / many
    subject = f"a queue's part: {each_of_many * 1e6:.3g} us of {many:,}, {each_of_few * 1e6:.3g} us of {few:,}"
    return Row(name, wall.median, "s", wall.spread_pct, subject, each_of_many / each_of_few)


def sticky_s(name: str, work: Work, *, consumers: int = 1_000) -> Row:
    """How long a broker allocates the queues of a group that a member has left; with it, AVG for all members."""
    queues = work.sized(10_000)
    sides = (
        partial(run_trial, allocation_trials.sticky_s, queues=queues, consumers=consumers),
        partial(run_trial, allocation_trials.whole_group_s, strategy="AVG", queues=queues, consumers=consumers),
    )
    own, avg = interleave(sides, work.repeated(5))
    subject = f"AVG, asked by each of {consumers:,} members for {queues:,} queues: {avg.median:.3g} s"
    return Row(name, own.median, "s", own.spread_pct, subject, own.median / avg.median)


def _alone(side: Callable[[], list[float]], rounds: int) -> Sample:
    return interleave((side,), rounds)[0]


def _with_figure(subject: str, sample: Sample) -> str:
    return f"{subject}: {sample.median:,.0f}/s (spread {sample.spread_pct:.0f} %)"

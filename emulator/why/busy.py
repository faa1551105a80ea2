"""Why a node is busy where no fault is the cause: its options allow too few requests a second."""

from collections.abc import Callable

from emulator.analysis.findings.words import count
from emulator.analysis.oracles.busy_brokers import BusySpan
from emulator.spec.model.scenario import Scenario
from nodes.config import BrokerConfig, ControllerConfig, NameserverConfig
from nodes.config.processing_times import OTHERS, ProcessingTime, ProcessingTimes
from nodes.config.proxy import ProxyConfig
from nodes.config.request_pools import broker_pool, controller_pool, nameserver_pool, proxy_pool
from nodes.protocol.codes import RequestCode
from nodes.units import NS_PER_MS, NS_PER_S

_LENT = 2
"""Buffers that are always lent: those of the file that is written, and of the next one."""


def options_behind(span: BusySpan, scenario: Scenario) -> str:
    """The options of a node that keep a pool busy, on one line; empty if the scenario does not have it."""
    for broker in scenario.brokers:
        if broker.name == span.node:
            return _buffers(span, broker.config) or _threads(span, broker.config, broker.config.times, broker_pool)
    for nameserver in scenario.nameservers:
        if nameserver.name == span.node:
            return _threads(span, nameserver.config, nameserver.config.times, nameserver_pool)
    for controller in scenario.controllers:
        if controller.name == span.node:
            return _threads(span, controller.config, controller.config.times, controller_pool)
    for proxy in scenario.proxies:
        if proxy.name == span.node:
            return _threads(span, proxy.config, proxy.config.times, proxy_pool)
    return ""


def _buffers(span: BusySpan, config: BrokerConfig) -> str:
    """Why sends are refused before they wait, if the log has buffers."""
    if not config.transient_store_pool_enable or "REJECTREQUEST" not in span.reasons:
        return ""
    size = config.transient_store_pool_size
    if size > _LENT:
        return f"transientStorePoolSize = {size}: all buffers are lent, and the disk is too slow to commit them"
    return f"transientStorePoolSize = {size}: the file that is written and the next one have {_LENT} buffers"


def _threads(
    span: BusySpan,
    config: BrokerConfig | NameserverConfig | ControllerConfig | ProxyConfig,
    times: ProcessingTimes,
    pool_of: Callable[[int], str | None],
) -> str:
    """How many requests a second the threads of a pool can handle."""
    time = _time_of(span.pool, times, pool_of)
    if time is None or not time.mean_ns:
        return ""
    option = f"{span.pool}ThreadPoolNums"
    threads = int(getattr(config, _field_name(option)))
    per_s = threads * NS_PER_S / time.mean_ns
    each = f"{time.mean_ns / NS_PER_S:g} s" if time.mean_ns >= NS_PER_S else f"{time.mean_ns / NS_PER_MS:g} ms"
    return f"{option} = {threads}: {count(threads, 'thread')} with {each} for a request can handle {per_s:g} a second"


def _time_of(pool: str, times: ProcessingTimes, pool_of: Callable[[int], str | None]) -> ProcessingTime | None:
    """The longest processing time that a scenario gives to requests of a pool."""
    codes = RequestCode.__members__
    named = [
        time for name, time in times.by_name.items() if name == pool or (name in codes and pool_of(codes[name]) == pool)
    ]
    return max(named, key=lambda time: time.mean_ns, default=times.by_name.get(OTHERS))


def _field_name(option: str) -> str:
    """`sendMessageThreadPoolNums` -> `send_message_thread_pool_nums`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in option)

"""Consumers in order: their scenarios, and what traces say of locks."""

from typing import Any

import attrs

from emulator.spec.model.scenario import Scenario
from emulator.testing import RowOfTrace, Trace
from nodes.config import ConsumerConfig
from nodes.protocol.codes import RequestCode

LOCK, UNLOCK = RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ


def orderly(**options: Any) -> ConsumerConfig:
    """A consumer with a listener for messages in order."""
    return ConsumerConfig(consume_orderly=True, **options)


def in_order(scenario: Scenario, *, consume_ms: int, **options: Any) -> Scenario:
    """The same scenario, its consumers in order."""
    groups = [attrs.evolve(group, config=orderly(**options), consume_ms=consume_ms) for group in scenario.consumers]
    return attrs.evolve(scenario, consumers=tuple(groups))


def requested(trace: Trace, src: str, dst: str, code: RequestCode, **between: float) -> list[float]:
    """When requests of a code arrived, in ms."""
    rows = trace.select("rpc", src=src, dst=dst, code=int(code), event="delivered", **between)
    return [row.at_ms for row in rows if row.kind != "response"]


def consumed_by(trace: Trace, node: str, **wanted: Any) -> list[RowOfTrace]:
    """What a consumer's listener has done."""
    return trace.select("messages", event="consumed", node=node, **wanted)


def holds(trace: Trace, node: str, event: str, **wanted: Any) -> list[float]:
    """When a hold on a queue changed in this way: ms."""
    return [row.at_ms for row in trace.select("ownership", node=node, event=event, **wanted)]

"""Fencing tokens: a queue is pulled and committed only by senders whose lock is not older than one that was seen."""

import json

from nodes.beliefs import Belief, BeliefKind
from nodes.broker.context import BrokerContext
from nodes.broker.part import Part
from nodes.broker.tables.clients.fencing_tokens import FencingTokens, FencingVerdict
from nodes.protocol.codes import ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers import PullMessageRequestHeader, UpdateConsumerOffsetRequestHeader

_FILE = "fencingTokens.json"
_SEPARATOR = "@"


class Fencing(Part):
    """Refuses requests with a smaller token than the greatest of the queue; requests without one pass. Not RocketMQ's.

    Emits:
        FENCING whenever the greatest token of a queue changes, or a request is refused.
    """

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._table = FencingTokens()

    def load(self) -> None:
        """Read the tokens that an earlier process has seen."""
        content = self._broker.host.disk.read(_FILE)
        if content is not None:
            self._table = FencingTokens(json.loads(content))

    def refusal(
        self, request: Command, header: PullMessageRequestHeader | UpdateConsumerOffsetRequestHeader
    ) -> Command | None:
        """The answer to a request that comes too late; None: it may pass."""
        token = header.fencing_token
        if token is None:
            return None
        key = _SEPARATOR.join((header.consumer_group, header.topic, str(header.queue_id)))
        verdict = self._table.judge(key, token)
        if verdict is FencingVerdict.SAME:
            return None
        self._believe(header, key)
        if verdict is FencingVerdict.LATER:
            self._broker.host.disk.write(_FILE, lambda: json.dumps(dict(self._table.greatest)).encode())
            return None
        greatest = self._table.greatest[key]
        return request.answer(ResponseCode.FENCED, f"the token is {token}, a later holder of {key} has {greatest}")

    def _believe(self, header: PullMessageRequestHeader | UpdateConsumerOffsetRequestHeader, key: str) -> None:
        broker, table = self._broker, self._table
        subject = f"{header.consumer_group}/{header.topic}/{broker.broker_name}/{header.queue_id}"
        value = {"token": table.greatest[key], "refused": table.refused[key]}
        broker.host.record(Belief(BeliefKind.FENCING, subject, value))

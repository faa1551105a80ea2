"""What a pop leaves behind: records in the revive topic, and rows in the trace."""

from nodes.beliefs import MessageEvent, MessageRecord
from nodes.broker.context import BrokerContext
from nodes.broker.messages.escape_bridge import EscapeBridge
from nodes.broker.tables.pop.check_point import (
    ACK_TAG,
    ACK_TIME_INTERVAL_MS,
    BATCH_ACK_TAG,
    CK_TAG,
    AckMsg,
    BatchAckMsg,
    PopCheckPoint,
    PopOutcome,
    build_cluster_revive_topic,
)
from nodes.broker.tables.store.put_message_result import PutMessageResult, PutMessageStatus
from nodes.protocol.extra_info import build_extra_info
from nodes.protocol.model import Message
from nodes.protocol.properties import TAGS, TIMER_DELIVER_MS, UNIQ_KEY

_STORED = (
    PutMessageStatus.PUT_OK,
    PutMessageStatus.FLUSH_DISK_TIMEOUT,
    PutMessageStatus.FLUSH_SLAVE_TIMEOUT,
    PutMessageStatus.SLAVE_NOT_AVAILABLE,
)


def is_stored(result: PutMessageResult) -> bool:
    """Whether a record is in a log, be it late."""
    return result.status in _STORED


class ReviveLog:
    """Writes check points and acknowledgements as messages of the timer, due when they are to be looked at.

    Mirrors:
        `PopMessageProcessor#buildCkMsg`, and what `AckMessageProcessor`, `ChangeInvisibleTimeProcessor` and
        `PopBufferMergeService` make of acknowledgements.

    Emits:
        CHECK_POINT for each check point of a pop.
    """

    def __init__(self, broker: BrokerContext, escape: EscapeBridge) -> None:
        self._broker = broker
        self._escape = escape
        self.topic = build_cluster_revive_topic(broker.cluster_name)

    @property
    def is_shut(self) -> bool:
        """Whether every record is refused, for as long as the process lives."""
        return self._escape.is_shut

    async def put_ck(self, ck: PopCheckPoint, revive_qid: int) -> PutMessageResult:
        """Write a check point; an answer that does not come is UNKNOWN_ERROR."""
        result = await self._escape.put_message_to_specific_queue(self.ck_message(ck, revive_qid))
        outcome = PopOutcome.STORED if is_stored(result) else PopOutcome.REFUSED
        record_pop(self._broker, MessageEvent.CHECK_POINT, ck, ck.start_offset, revive_qid, outcome=outcome)
        return result

    async def put_ck_or_raise(self, ck: PopCheckPoint, revive_qid: int) -> PutMessageResult:
        """Write a check point.

        Raises:
            RemotingError, BrokerError: another broker did not answer, or refused.
        """
        return await self._escape.async_put_message_to_specific_queue(self.ck_message(ck, revive_qid))

    async def put_ack(self, ack: AckMsg, revive_qid: int, deliver_ms: int, key: str = "") -> PutMessageResult:
        """Write an acknowledgement.

        Args:
            key: of the record; empty: that of an acknowledgement of one message.
        """
        return await self._escape.put_message_to_specific_queue(self._ack_message(ack, revive_qid, deliver_ms, key))

    async def put_ack_or_raise(self, ack: AckMsg, revive_qid: int, deliver_ms: int) -> PutMessageResult:
        """Write an acknowledgement.

        Raises:
            RemotingError, BrokerError: another broker did not answer, or refused.
        """
        return await self._escape.async_put_message_to_specific_queue(self._ack_message(ack, revive_qid, deliver_ms))

    def ck_message(self, ck: PopCheckPoint, revive_qid: int) -> Message:
        """The record of a check point."""
        return self._message(CK_TAG, revive_qid, ck.to_json(), ck.unique_id, ck.revive_time_ms - ACK_TIME_INTERVAL_MS)

    def _ack_message(self, ack: AckMsg, revive_qid: int, deliver_ms: int, key: str = "") -> Message:
        tag = BATCH_ACK_TAG if isinstance(ack, BatchAckMsg) else ACK_TAG
        return self._message(tag, revive_qid, ack.to_json(), key or ack.unique_id, deliver_ms)

    def _message(self, tag: str, queue_id: int, body: str, key: str, deliver_ms: int) -> Message:
        host = self._broker.address
        properties = {TAGS: tag, TIMER_DELIVER_MS: str(deliver_ms), UNIQ_KEY: key}
        now_ms = self._broker.host.clock.now_ms()
        return Message(
            self.topic, queue_id, 0, 0, now_ms, 0, body.encode(), properties, born_host=host, store_host=host
        )


def record_pop(
    broker: BrokerContext,
    event: MessageEvent,
    ck: PopCheckPoint,
    offset: int,
    revive_qid: int,
    *,
    client: str = "",
    outcome: PopOutcome | None = None,
) -> None:
    """Record what happened to a message of a pop.

    Args:
        broker: that records.
        event: what happened.
        ck: the pop; its broker name is that of the message's owner.
        offset: of the message.
        revive_qid: queue of the revive topic.
        client: address of the client whose request it was.
        outcome: what became of it.
    """
    owner = ck.broker_name or ""
    times = (ck.start_offset, ck.pop_time_ms, ck.invisible_time_ms)
    handle = build_extra_info(*times, revive_qid, ck.topic, owner, ck.queue_id, offset)
    is_own = owner == broker.broker_name
    stored_ms = broker.store.store_timestamp(ck.topic, ck.queue_id, offset) if is_own else -1
    place = (ck.topic, owner, ck.queue_id, offset)
    reported = "" if outcome is None else outcome.value
    broker.host.record(MessageRecord(event, ck.cid, *place, client, stored_ms, reported, handle))

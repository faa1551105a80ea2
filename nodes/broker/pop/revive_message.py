"""One message that no consumer acknowledged: it is copied to the retry topic, or gets a check point of its own."""

from collections.abc import Callable

from nodes.beliefs import MessageEvent, MessageRecord, queue_key
from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.context import BrokerContext
from nodes.broker.files import persist_topics
from nodes.broker.messages.escape_bridge import EscapeBridge
from nodes.broker.messages.foreign_messages import ForeignMessages
from nodes.broker.pop.records import ReviveLog, is_stored, record_pop
from nodes.broker.tables.pop.check_point import PopCheckPoint, PopOutcome
from nodes.broker.tables.pop.in_flight import PopInflightMessageCounter
from nodes.broker.tables.pop.revive import re_put_ck, revived_message
from nodes.broker.tables.store.message_store import MessageStore
from nodes.broker.tables.store.put_message_result import PutMessageResult
from nodes.protocol.model import Message, TopicConfig
from nodes.protocol.properties import ORIGIN_MESSAGE_ID

_RETRY_QUEUE_NUM = 1


class MessageReviver:
    """Copies messages to retry topics.

    Args:
        escape: puts the copy, on an acting master into another broker.
        put: puts a check point that is rewritten into this broker's own log, whatever its role.
        foreign: fetches messages of other brokers.

    Mirrors:
        `PopReviveService#reviveRetry`, `#rePutCK`, `#addRetryTopicIfNotExist`; `EscapeBridge#getMessageAsync`.

    Emits:
        REVIVED and RETRIED for a copy, LOST for a message that is not there any more, RE_PUT for a check point that is
        rewritten; COMMITTED for the first offset of a retry topic.
    """

    def __init__(
        self,
        broker: BrokerContext,
        in_flight: PopInflightMessageCounter,
        log: ReviveLog,
        offsets: OffsetManage,
        escape: EscapeBridge,
        put: Callable[[Message], PutMessageResult],
        foreign: ForeignMessages,
    ) -> None:
        self._broker = broker
        self._in_flight = in_flight
        self._log = log
        self._offsets = offsets
        self._escape = escape
        self._put = put
        self._foreign = foreign

    async def address(self, ck: PopCheckPoint) -> str | None:
        """The address of the broker that has the messages; None: no one knows it now."""
        return await self._foreign.address(ck.topic, ck.broker_name)

    def store(self, ck: PopCheckPoint) -> MessageStore | None:
        """The store with the messages, if it is in this process."""
        return self._foreign.store_of(ck.broker_name)

    async def revive(self, ck: PopCheckPoint, offset: int, revive_qid: int, store: MessageStore) -> bool:
        """Revive a message of a store in this process; returns whether nothing is left to do, also since it is gone."""
        found = store.get_message(ck.topic, ck.queue_id, offset, 1).messages
        return await self._revive_found(ck, offset, revive_qid, found[0] if found else None)

    async def revive_foreign(self, ck: PopCheckPoint, offset: int, revive_qid: int, address: str) -> bool:
        """Revive a message of another broker; returns whether nothing is left to do."""
        fetched = await self._foreign.pull(address, ck.broker_name or "", ck.topic, ck.queue_id, offset)
        if fetched.need_retry:
            return False
        return await self._revive_found(ck, offset, revive_qid, fetched.message)

    async def _revive_found(self, ck: PopCheckPoint, offset: int, revive_qid: int, found: Message | None) -> bool:
        """Copy a message; only a copy in this broker's log counts, so that a remote one is revived once more."""
        broker = self._broker
        if found is None:
            record_pop(broker, MessageEvent.LOST, ck, offset, revive_qid, outcome=PopOutcome.GONE)
            return True
        revived = revived_message(ck, found, v2=broker.config.enable_retry_topic_v2)
        revived = revived._replace(born_host=broker.address, store_host=broker.address)
        self._add_retry_topic(revived.topic, ck.cid)
        result = await self._escape.put_message_to_specific_queue(revived)
        outcome = PopOutcome.REFUSED
        if is_stored(result):
            outcome = PopOutcome.REMOTE if result.stored is None else PopOutcome.STORED
        record_pop(broker, MessageEvent.REVIVED, ck, offset, revive_qid, outcome=outcome)
        if result.stored is not None and ORIGIN_MESSAGE_ID not in result.stored.properties:
            self._record_copy(ck, offset, result.stored)
        if outcome is not PopOutcome.STORED:
            return False
        self._in_flight.decrement(ck.topic, ck.cid, ck.queue_id, ck.pop_time_ms)
        return True

    def _record_copy(self, ck: PopCheckPoint, offset: int, copy: Message) -> None:
        place = copy.topic, self._broker.broker_name, copy.queue_id, copy.queue_offset
        origin = queue_key(ck.topic, ck.broker_name or "", ck.queue_id, offset)
        record = MessageRecord(MessageEvent.RETRIED, ck.cid, *place, "", copy.store_timestamp, "", origin)
        self._broker.host.record(record)

    def re_put(self, ck: PopCheckPoint, offset: int, revive_qid: int) -> None:
        """Write a check point for one message again; no one looks at the result, which a slave refuses."""
        broker = self._broker
        skip = broker.config.skip_when_ck_re_put_reach_max_times
        again = re_put_ck(ck, offset, broker.host.clock.now_ms(), skip_at_max=skip)
        if again is None:
            record_pop(broker, MessageEvent.LOST, ck, offset, revive_qid, outcome=PopOutcome.REFUSED)
            return
        result = self._put(self._log.ck_message(again, revive_qid))
        outcome = PopOutcome.STORED if is_stored(result) else PopOutcome.REFUSED
        record_pop(broker, MessageEvent.RE_PUT, again, offset, revive_qid, outcome=outcome)

    def _add_retry_topic(self, topic: str, group: str) -> None:
        """Create a retry topic; nameservers learn of it with the next registration."""
        broker = self._broker
        if broker.topics.select_topic_config(topic) is not None:
            return
        made = TopicConfig(topic, _RETRY_QUEUE_NUM, _RETRY_QUEUE_NUM)
        broker.topics.update_topic_config(made, now_ms=broker.host.clock.now_ms())
        persist_topics(broker)
        broker.versions.believe()
        if self._offsets.table.query_offset(group, topic, 0) < 0:
            self._offsets.commit(group, topic, 0, 0, "")

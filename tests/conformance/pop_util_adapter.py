"""Family pop_util: one check point with its acknowledgements, handles, and the keys made of topic and group."""

import re

from conformance.executing import Adapter
from nodes.broker.tables.pop.check_point import AckMsg, BatchAckMsg, PopCheckPoint
from nodes.protocol import names
from nodes.protocol.extra_info import build_extra_info, parse_extra_info

REVIVE_OFFSET = re.compile(r'"ro":\d+')
POLLED_QUEUE = 3


class PopUtil(Adapter):
    def ordered(self, op, out):
        # The cases do not report the revive offset that they were run with.
        return out | {"json": REVIVE_OFFSET.sub('"ro":0', out["json"])} if op == "checkpoint" else out

    def checkpoint(self, topic, group, queue_id, start_offset, pop_time, invisible_time, num, broker_name, diffs):
        diff = tuple(diffs) or None
        self.ck = PopCheckPoint(
            topic, group, queue_id, start_offset, pop_time, invisible_time, num, broker_name, queue_offset_diff=diff
        )
        return {"reviveTime": self.ck.revive_time_ms, "uniqueId": self.ck.unique_id, "json": self.ck.to_json()}

    def index_of_ack(self, ack_offset):
        return {"index": self.ck.index_of_ack(ack_offset)}

    def ack_offset_by_index(self, index):
        return {"offset": self.ck.ack_offset_by_index(index)}

    def ack(self, ack_offset, broker_name):
        made = AckMsg(ack_offset, *self._handle(broker_name))
        return {"uniqueId": made.unique_id, "json": made.to_json()}

    def batch_ack(self, ack_offset_list, broker_name):
        made = BatchAckMsg(0, *self._handle(broker_name), tuple(ack_offset_list))
        return {"uniqueId": made.batch_unique_id, "json": made.to_json()}

    def _handle(self, broker_name):
        ck = self.ck
        return ck.start_offset, ck.cid, ck.topic, ck.queue_id, ck.pop_time_ms, broker_name

    def extra_info(self, **given):
        words = [given[name] for name in ("ck_queue_offset", "pop_time", "invisible_time", "revive_qid", "topic")]
        words += [given["broker_name"], given["queue_id"]]
        text = build_extra_info(*words, given["msg_queue_offset"])
        info = parse_extra_info(text)
        return {
            "text": build_extra_info(*words),
            "textWithOffset": text,
            "ckQueueOffset": info.ck_queue_offset,
            "popTime": info.pop_time_ms,
            "invisibleTime": info.invisible_time_ms,
            "reviveQid": info.revive_qid,
            "brokerName": info.broker_name,
            "queueId": info.queue_id,
            "queueOffset": info.queue_offset,
        }

    def keys(self, topic, group):
        return {
            "retryV1": names.build_pop_retry_topic(topic, group),
            "retryV2": names.build_pop_retry_topic(topic, group, v2=True),
            "retryDefault": names.build_pop_retry_topic(topic, group),
            "pollingKey": names.build_polling_key(topic, group, POLLED_QUEUE),
            "isV2": names.is_pop_retry_topic_v2(topic),
            "parseNormalTopic": self._or_error(names.parse_normal_topic, topic, group),
            "parseNormalTopic1": names.parse_normal_topic(topic),
            "parseGroup": self._or_error(names.parse_group, topic),
        }

    def _or_error(self, parse, *arguments):
        try:
            return parse(*arguments)
        except names.NoRetryTopicError:
            return "error StringIndexOutOfBoundsException"

"""Family offsets: `ConsumerOffsetManager`."""

import json
import re

from conformance.executing import Adapter
from conformance.pretended_time import ORIGIN_MS, shown_version
from nodes.broker.tables.clients.consumer_offsets import ConsumerOffsetManager
from nodes.protocol.model import DataVersion


class Offsets(Adapter):
    begins_empty = False

    def __init__(
        self,
        note=None,
        consumer_offset_update_version_step=500,
        state_machine_version=0,
        use_server_side_reset_offset=True,
        min_offsets=None,
    ):
        self.offsets = ConsumerOffsetManager(
            now_ms=ORIGIN_MS,
            consumer_offset_update_version_step=consumer_offset_update_version_step,
            use_server_side_reset_offset=use_server_side_reset_offset,
        )
        self.state_version = state_machine_version
        self.min_offsets = min_offsets or {}
        self.unlisted = unlisted_commits(note or "")

    @property
    def now_ms(self):
        return ORIGIN_MS + self.at_ms

    def tables(self):
        offsets = self.offsets
        return {
            "offsets": texts(offsets.offsets),
            "pullOffsets": texts(offsets.pull_offsets),
            "resetOffsets": texts(offsets.reset_offsets),
            "version": {"dataVersion": shown_version(offsets.data_version)},
        }

    def commit_offset(self, group, topic, queue_id, offset):
        while self.unlisted and self.unlisted[0] < offset:
            number = self.unlisted.pop(0)
            self._commit(group, topic, number % 4, number, ORIGIN_MS + number)
        self._commit(group, topic, queue_id, offset, self.now_ms)

    def _commit(self, group, topic, queue_id, offset, now_ms):
        self.offsets.commit_offset(group, topic, queue_id, offset, now_ms=now_ms, state_version=self.state_version)

    def commit_pull_offset(self, group, topic, queue_id, offset):
        self.offsets.commit_pull_offset(group, topic, queue_id, offset)

    def clear_pull_offset(self, group, topic):
        self.offsets.clear_pull_offset(group, topic)

    def query_offset(self, group, topic, queue_id):
        return {
            "offset": self.offsets.query_offset(group, topic, queue_id),
            "pullOffset": self.offsets.query_pull_offset(group, topic, queue_id),
            "hasReset": self.offsets.has_offset_reset(group, topic, queue_id),
        }

    def query_offset_table(self, group, topic):
        table = self.offsets.query_offsets(group, topic)
        return {"table": None if table is None else text_keys(table)}

    def assign_reset_offset(self, topic, group, queue_id, offset):
        self.offsets.assign_reset_offset(group, topic, queue_id, offset)

    def query_then_erase_reset_offset(self, topic, group, queue_id):
        return {"offset": self.offsets.query_then_erase_reset_offset(group, topic, queue_id)}

    def remove_offset(self, group):
        self.offsets.remove_offset(group)

    def clean_offset_by_topic(self, topic):
        self.offsets.clean_offset_by_topic(topic)

    def clone_offset(self, src_group, dest_group, topic):
        self.offsets.clone_offset(src_group, dest_group, topic)

    def sync_put_all(self, offsets, dv):
        entries = {key: {int(queue): offset for queue, offset in queues.items()} for key, queues in offsets.items()}
        self.offsets.put_all(entries, DataVersion(*dv))

    def which(self, group, topic):
        return {
            "whichTopicByConsumer": sorted(self.offsets.which_topic_by_consumer(group)),
            "whichGroupByTopic": sorted(self.offsets.which_group_by_topic(topic)),
            "groupTopicMap": {node: list(subject) for node, subject in self.offsets.group_topic_map().items()},
        }

    def query_min_offset_in_all_group(self, topic, filter_groups, min_offsets=None):
        minimum = self._minimum(min_offsets)
        found = self.offsets.query_min_offset_in_all_group(topic, filter_groups or "", minimum)
        return {"table": text_keys(found)}

    def _minimum(self, min_offsets):
        known = self.min_offsets if min_offsets is None else min_offsets
        return lambda topic, queue_id: known.get(f"{topic}@{queue_id}", 0)

    def encode(self):
        content = json.loads(self.offsets.encode())
        content["dataVersion"]["timestamp"] = shown_version(self.offsets.data_version)[1]
        return {"json": content}

    def encode_then_decode(self):
        self.offsets.decode(self.offsets.encode(), now_ms=self.now_ms)

    def decode(self, json):
        self.offsets.decode(json.encode(), now_ms=self.now_ms)


def unlisted_commits(note):
    """The numbers of commits that a case describes instead of listing them."""
    spans = re.findall(r"(\d+)\.\.(\d+)", note)
    return [number for first, last in spans for number in range(int(first), int(last) + 1)]


def text_keys(queues):
    return {str(queue_id): offset for queue_id, offset in queues.items()}


def texts(table):
    return {key: text_keys(queues) for key, queues in table.items()}

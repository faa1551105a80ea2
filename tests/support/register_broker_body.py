"""How a real broker writes the body of a registration, compressed.

Mirrors:
    `org.apache.rocketmq.remoting.protocol.body.RegisterBrokerBody`, `org.apache.rocketmq.common.TopicConfig#encode`.
"""

import json
import struct
import zlib

from nodes.protocol.bodies import RegisterBrokerBody
from nodes.protocol.json_text import to_json
from nodes.protocol.model import TopicConfig

_COMPRESSION_LEVEL = 9
_LENGTH = struct.Struct(">i")


def encode_register_broker_body(body: RegisterBrokerBody) -> bytes:
    """Order and system flag of topics are lost, as in RocketMQ."""
    wrapper = body.topic_config_serialize_wrapper
    topics = wrapper.topic_config_table.values()
    mappings = wrapper.topic_queue_mapping_info_map.values()
    parts = [
        _part(to_json(wrapper.data_version)),
        _LENGTH.pack(len(topics)),
        *(_part(encode_topic_config(topic)) for topic in topics),
        _part(to_json(body.filter_server_list)),
        _LENGTH.pack(len(mappings)),
        *(_part(to_json(mapping)) for mapping in mappings),
    ]
    return zlib.compress(b"".join(parts), _COMPRESSION_LEVEL)


def encode_topic_config(topic: TopicConfig) -> str:
    """A topic as one line of text."""
    attributes = json.dumps(dict(topic.attributes), ensure_ascii=False, separators=(",", ":"))
    numbers = f"{topic.read_queue_nums} {topic.write_queue_nums} {topic.perm}"
    return f"{topic.topic_name} {numbers} {topic.topic_filter_type} {attributes}"


def _part(text: str) -> bytes:
    raw = text.encode()
    return _LENGTH.pack(len(raw)) + raw

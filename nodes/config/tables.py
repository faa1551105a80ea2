"""The limits of a node's tables, which RocketMQ does not have."""

import attrs

from nodes.config.options import TOPIC_QUEUES_MAX, Config, count, name_options

MAX_GROUPS = 100_000
MAX_QUEUES = 1_000_000


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class TableConfig(Config):
    """Most entries of a node's tables; no options of RocketMQ.

    RocketMQ's tables grow until the process has no memory left. An emulated node shares its process with all others, so
    it refuses a request that would fill a table further with SYSTEM_BUSY.
    """

    max_topics: int = count(100_000, minimum=1)
    """Topics."""
    max_queues_per_topic: int = count(TOPIC_QUEUES_MAX, minimum=1)
    """Read queues, and write queues, of one topic. Answers about a topic have an entry for each."""
    max_queues: int = count(MAX_QUEUES, minimum=1)
    """Queues of all topics together; also the most offsets and order locks of one group."""
    max_groups: int = count(MAX_GROUPS, minimum=1)
    """Consumer groups, producer groups, and configurations of groups, of each kind."""

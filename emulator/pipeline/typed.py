"""Typed beliefs: the JSON of a kind of beliefs as a column of Spark's types."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nodes.beliefs import BeliefKind

_ADDRESSES = "map<string, string>"
VALUE_TYPES: Mapping[BeliefKind, str] = {
    BeliefKind.ROUTE: f"map<string, struct<addrs: {_ADDRESSES}, queues: array<bigint>>>",
    BeliefKind.LIVE_BROKERS: _ADDRESSES,
    BeliefKind.NAMESERVER: "string",
    BeliefKind.CONSUMER_IDS: "array<string>",
    BeliefKind.MEMBER_GROUP: _ADDRESSES,
    BeliefKind.MIN_BROKER: "struct<id: bigint, address: string>",
    BeliefKind.SPECIAL_SERVICE: "boolean",
    BeliefKind.ONLINE_STAGE: "string",
    BeliefKind.MASTER_ADDR: "string",
    BeliefKind.DATA_VERSION: "array<bigint>",
    BeliefKind.QUEUE_LOCKS: "map<string, string>",
    BeliefKind.SUBSCRIPTION: "struct<expression: string, type: string, model: string>",
    BeliefKind.VIEW: "struct<cids: array<string>, queues: map<string, bigint>>",
    BeliefKind.ASSIGNER: "string",
    BeliefKind.EPOCH: "struct<assigner: string, epoch: bigint>",
    BeliefKind.ALLOCATION: "struct<epoch: bigint, shares: map<string, array<array<string>>>>",
    BeliefKind.REBALANCE_MODE: "string",
    BeliefKind.ASSIGNMENT: "array<array<string>>",
    BeliefKind.ACTIVE_CONSUMER: "string",
    BeliefKind.LEASE: "struct<holder: string, token: bigint>",
    BeliefKind.FENCING: "struct<token: bigint, refused: bigint>",
    BeliefKind.CONTROLLER_LEADER: "struct<leader: string, term: bigint>",
    BeliefKind.CONTROLLER_ROLE: "struct<role: string, serves: boolean>",
    BeliefKind.BROKER_ROLE: "struct<replica: bigint, serves_as: string, master: bigint, epoch: bigint>",
    BeliefKind.SYNC_STATE: "struct<master: bigint, epoch: bigint, in_sync: array<bigint>, in_sync_epoch: bigint>",
    BeliefKind.REPLICAS: "bigint",
    BeliefKind.TOPIC_TYPE: "string",
    BeliefKind.GROUP_CONFIG: "struct<orderly: boolean, retry_max_times: bigint>",
    BeliefKind.PROXY_MEMBERS: "map<string, string>",
    BeliefKind.PROXY: "string",
    BeliefKind.PROXY_ROUTE: "map<string, struct<endpoints: array<string>, ids: array<bigint>, queues: bigint>>",
    BeliefKind.RECEIPT_HANDLES: "bigint",
    BeliefKind.CLIENT_SETTINGS: "struct<group: string, topics: array<string>>",
    BeliefKind.PODS: "struct<replicas: bigint, pods: map<string, string>>",
}
"""Mapping kind -> type of its values; those of `HA_STATE`, `BUSY` and `DENIED` have several forms: they stay JSON."""


def typed(beliefs: DataFrame, kind: BeliefKind) -> DataFrame:
    """The beliefs of one kind with `value` as Spark's types.

    Args:
        beliefs: the table.
        kind: of `VALUE_TYPES`.

    Returns:
        The columns of the table; value: null where the node holds nothing. A value that is no JSON is an error of the
        query that reads it.
    """
    # A number or a text alone is no document for `from_json`.
    wrapped = F.concat(F.lit('{"value":'), F.col("value"), F.lit("}"))
    parsed = F.from_json(wrapped, f"struct<value: {VALUE_TYPES[kind]}>", {"mode": "FAILFAST"})
    return beliefs.where(F.col("kind") == kind).withColumn("value", parsed["value"])

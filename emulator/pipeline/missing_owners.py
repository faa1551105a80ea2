"""Silver `missing_owners`: when a queue that is owed an owner had none.

Whether a queue is owed one follows from facts about the queue, its broker, its topic and its group. Each fact is a set
of intervals, and comes as edges; edges of one fact become those of its union, which are few. Only these reach the
queues that they concern, and one window over the edges of a queue counts all facts at each instant. So the cost grows
with the edges of the queues, and all that takes one shuffle, by run, group and topic.
"""

from enum import StrEnum

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.inputs.holdings import ViewPart
from emulator.history.processes import BEGINS
from emulator.pipeline.bronze import QUEUE, Bronze
from emulator.pipeline.intervals import edges, edges_awake, in_order, lasting, united, until_the_end
from emulator.pipeline.processes import of_living
from emulator.pipeline.queue_holds import taken_queues
from emulator.spec.model.scenario import BROKER, CONSUMER, NAMESERVER
from emulator.trace.schema import BELIEFS, LIFECYCLE, OWNERSHIP
from nodes.allocation.for_pop import ALL_QUEUES
from nodes.beliefs import BeliefKind, Delivery
from nodes.protocol.model import MessageModel, PermName

_SCOPE = ("run", "group", "topic")
_WHERE = ("broker_name", "queue_id", "queues")
_EDGE = (*_SCOPE, *_WHERE, "fact", "t_ns", "step")
_ROUTE = "map<string, struct<queues: array<bigint>>>"


class _Fact(StrEnum):
    """What is true of a queue for some time, or from an instant on."""

    OWNED = "owned"
    """A process owns the queue."""
    WAS_OWNED = "was_owned"
    """A process has owned it before."""
    POPPED = "popped"
    """A member pops it."""
    LISTED = "listed"
    """A member sees queues of the topic, or a nameserver has a route of it."""
    EXISTS = "exists"
    """A member sees the queue, or a nameserver lists it."""
    ROUTED = "routed"
    """A nameserver lists the broker group for the topic."""
    READABLE = "readable"
    """One lists it with a queue that may be read."""
    BEGUN = "begun"
    """A broker of the group has begun."""
    AWAKE = "awake"
    """One that has begun lives and is not suspended."""
    KNOWN = "known"
    """The group has recorded a subscription to the topic, or a view of it."""
    VIEWED = "viewed"
    """A live member sees queues of the topic."""
    VIEWS = "views"
    """The group has recorded views."""
    SUBSCRIBED = "subscribed"
    """A live member subscribes to the topic."""
    SUBSCRIBES = "subscribes"
    """The group has recorded subscriptions."""
    MEMBER = "member"
    """A live process has named the group when it started."""
    SHARED = "shared"
    """Proxies hand out the messages of the group."""
    BROADCASTS = "broadcasts"
    """Each member of the group consumes all messages."""


_SINCE = (_Fact.KNOWN, _Fact.VIEWS, _Fact.SUBSCRIBES, _Fact.SHARED, _Fact.BROADCASTS)
"""Facts that stay, from an instant on."""


def missing_owners(bronze: Bronze, held: DataFrame, lives: DataFrame) -> DataFrame:
    """When a queue was owed an owner and had none.

    It is owed one while it is readable, it exists or had an owner before, and a live member has made a rebalance round;
    groups that broadcast, groups of proxies, and queues that are popped are owed none.

    Args:
        bronze: the landed tables.
        held: as `holdings` returns them.
        lives: as `processes` returns them.

    Returns:
        run, group, topic, broker_name, queue_id, start_ns, end_ns, censored (it had not ended with the run).
    """
    scopes = _scopes(bronze, lives)
    facts = (
        _of_scopes(scopes)
        .unionByName(_of_queues(bronze.table(OWNERSHIP), lives))
        .unionByName(_of_values(held, scopes))
        .unionByName(_of_members(bronze.table(LIFECYCLE), lives, scopes))
        .unionByName(_of_brokers(lives, bronze.runs, scopes))
    )
    few = united(facts.repartition(*_SCOPE), (*_SCOPE, *_WHERE, "fact"))
    missing = lasting(_counted(_of_each_queue(few)), QUEUE, _is_missing())
    return until_the_end(missing, bronze.runs).select(*QUEUE, "start_ns", "end_ns", "censored")


def _is_missing() -> Column:
    is_so = {fact: F.col(fact) > 0 for fact in _Fact}
    can_own = (
        F.when(is_so[_Fact.VIEWS], is_so[_Fact.VIEWED])
        .when(is_so[_Fact.SUBSCRIBES], is_so[_Fact.SUBSCRIBED])
        .otherwise(is_so[_Fact.MEMBER])
    )
    is_there = F.when(is_so[_Fact.KNOWN] & is_so[_Fact.LISTED], is_so[_Fact.EXISTS]).otherwise(is_so[_Fact.WAS_OWNED])
    runs = is_so[_Fact.AWAKE] | ~is_so[_Fact.BEGUN]
    is_readable = is_so[_Fact.READABLE] | ~is_so[_Fact.ROUTED]
    has_none = ~(is_so[_Fact.OWNED] | is_so[_Fact.POPPED])
    divides = ~(is_so[_Fact.SHARED] | is_so[_Fact.BROADCASTS])
    return has_none & divides & can_own & is_there & runs & is_readable


# --- facts as edges -----------------------------------------------------------------------------


def _group_and_topic() -> tuple[Column, Column]:
    """The group and the topic of a subject group/topic."""
    parts = F.split("subject", "/", 2)
    return parts[0].alias("group"), F.coalesce(F.get(parts, F.lit(1)), F.lit("")).alias("topic")


def _scopes(bronze: Bronze, lives: DataFrame) -> DataFrame:
    """The groups and topics of whose queues one may be owed an owner, and since when the facts are true that stay.

    Returns:
        run, group, topic, and per fact of `_SINCE` a column with an instant (null: never).
    """
    kind, model = F.col("kind"), F.get_json_object("value", "$.model")
    recorded = bronze.table(BELIEFS).where(kind.isin(BeliefKind.VIEW.value, BeliefKind.SUBSCRIPTION.value))
    rows = of_living(recorded.select("run", "node", "incarnation", "seq", "t_ns", "kind", "subject", "value"), lives)
    is_subscription = kind == BeliefKind.SUBSCRIPTION
    since = {
        _Fact.KNOWN: F.lit(True),
        _Fact.VIEWS: (kind == BeliefKind.VIEW) & F.get_json_object("value", f"$.{ViewPart.QUEUES}").isNotNull(),
        _Fact.SUBSCRIBES: is_subscription,
        _Fact.SHARED: is_subscription & (F.get_json_object("value", "$.delivery") == Delivery.PROXY),
        _Fact.BROADCASTS: is_subscription & (model == MessageModel.BROADCASTING),
    }
    instants = [F.when(is_so, F.col("t_ns")).alias(fact) for fact, is_so in since.items()]
    owned = bronze.table(OWNERSHIP).select(*_SCOPE, *(F.lit(None).cast("bigint").alias(fact) for fact in since))
    every = rows.select("run", *_group_and_topic(), *instants).unionByName(owned)
    # No key is null. Spark derives that of the keys of each join, and would compute all this for each of them again.
    for name in _SCOPE:
        every = every.where(F.col(name).isNotNull())
    found = every.groupBy(*_SCOPE).agg(*(F.min(fact).alias(fact) for fact in since))
    of_group = Window.partitionBy("run", "group")
    return found.select(*_SCOPE, _Fact.KNOWN, *(F.min(fact).over(of_group).alias(fact) for fact in _SINCE[1:]))


def _of_scopes(scopes: DataFrame) -> DataFrame:
    facts = F.array(*(F.struct(F.lit(fact.value).alias("fact"), F.col(fact).alias("t_ns")) for fact in _SINCE))
    rows = scopes.select(*_SCOPE, F.inline(facts))
    return _rows(rows.where(F.col("t_ns").isNotNull()).withColumn("step", F.lit(1)))


def _of_queues(ownership: DataFrame, lives: DataFrame) -> DataFrame:
    """Who owns and pops queues."""
    start, pops = F.col("start_ns"), F.col("pops")
    fact = F.when(pops, _Fact.POPPED.value).otherwise(_Fact.OWNED.value)
    taken = F.transform(edges(start, F.col("end_ns")), lambda edge: _edge(fact, edge["t_ns"], edge["step"]))
    was_owned = F.when(pops, F.array()).otherwise(F.array(_edge(F.lit(_Fact.WAS_OWNED.value), start, F.lit(1))))
    queue_id = F.when(F.col("queue_id") != ALL_QUEUES, F.col("queue_id")).alias("queue_id")
    rows = taken_queues(ownership, lives)
    return _rows(rows.select(*_SCOPE, "broker_name", queue_id, F.inline(F.concat(taken, was_owned))))


def _edge(fact: Column, t_ns: Column, step: Column) -> Column:
    return F.struct(fact.alias("fact"), t_ns.alias("t_ns"), step.alias("step"))


def _of_values(held: DataFrame, scopes: DataFrame) -> DataFrame:
    """What members see and subscribe to, and what nameservers list."""
    kind = F.col("kind")
    is_route = (kind == BeliefKind.ROUTE) & (F.col("role") == NAMESERVER)
    is_view = (kind == ViewPart.QUEUES.kind) & (F.col("value") != "null")
    rows = held.where(is_route | is_view | (kind == BeliefKind.SUBSCRIPTION))
    group, topic = _group_and_topic()
    rows = rows.select(
        "run",
        F.when(kind != BeliefKind.ROUTE, group).alias("group"),
        F.when(kind != BeliefKind.ROUTE, topic).otherwise(F.col("subject")).alias("topic"),
        F.when(is_view, _seen()).when(is_route, _routed()).otherwise(F.array(_place(_Fact.SUBSCRIBED))).alias("facts"),
        edges(F.col("start_ns"), F.col("end_ns")).alias("edges"),
    )
    groups = scopes.groupBy("run", "topic").agg(F.collect_list("group").alias("groups"))
    rows = rows.join(F.broadcast(groups), ["run", "topic"])
    concerned = F.when(F.col("group").isNull(), F.col("groups")).otherwise(F.array("group"))
    rows = rows.select("run", F.explode(concerned).alias("group"), "topic", "facts", "edges")
    rows = rows.select(*_SCOPE, F.inline("facts"), "edges")
    return _rows(rows.select(*_SCOPE, "broker_name", "queues", "fact", F.inline("edges")))


def _place(fact: _Fact, broker_name: Column | None = None, queues: Column | None = None) -> Column:
    nothing = F.lit(None)
    names = (nothing if broker_name is None else broker_name).cast("string").alias("broker_name")
    return F.struct(
        F.lit(fact.value).alias("fact"), names, (nothing if queues is None else queues).cast("bigint").alias("queues")
    )


def _seen() -> Column:
    """What a view lists of the queues of its topic."""
    counts = F.map_entries(F.from_json("value", "map<string, bigint>"))
    some = F.filter(counts, lambda entry: entry["value"] > 0)
    places = F.transform(some, lambda entry: _place(_Fact.EXISTS, entry["key"], entry["value"]))
    return F.concat(F.array(_place(_Fact.VIEWED), _place(_Fact.LISTED)), places)


def _routed() -> Column:
    """What a route lists of the queues of its topic."""
    entries = F.map_entries(F.from_json("value", _ROUTE))
    routed = F.transform(entries, lambda entry: _place(_Fact.ROUTED, entry["key"]))
    some = F.filter(entries, lambda entry: _read_queues(entry) > 0)
    exist = F.transform(some, lambda entry: _place(_Fact.EXISTS, entry["key"], _read_queues(entry)))
    readable = F.filter(some, lambda entry: entry["value"]["queues"][2].bitwiseAND(F.lit(int(PermName.READ))) != 0)
    read = F.transform(readable, lambda entry: _place(_Fact.READABLE, entry["key"]))
    return F.concat(F.array(_place(_Fact.LISTED)), routed, exist, read)


def _read_queues(entry: Column) -> Column:
    return entry["value"]["queues"][0]


def _of_members(lifecycle: DataFrame, lives: DataFrame, scopes: DataFrame) -> DataFrame:
    """Processes that have named their groups, and live."""
    begun = lifecycle.where(F.col("event").isin(*BEGINS) & (F.col("role") == CONSUMER))
    rows = of_living(begun.select("run", "node", "incarnation", "seq", "t_ns", "detail"), lives)
    rows = rows.select("run", F.explode(F.split("detail", ",")).alias("group"), "t_ns", "dead_ns")
    rows = rows.select("run", F.trim("group").alias("group"), edges(F.col("t_ns"), F.col("dead_ns")).alias("edges"))
    rows = rows.join(F.broadcast(scopes.select(*_SCOPE)), ["run", "group"])
    return _rows(rows.select(*_SCOPE, F.lit(_Fact.MEMBER.value).alias("fact"), F.inline("edges")))


def _of_brokers(lives: DataFrame, runs: DataFrame, scopes: DataFrame) -> DataFrame:
    """Brokers that have begun, and those that are awake."""
    names = F.broadcast(runs.select("run", "broker_names"))
    brokers = lives.where((F.col("role") == BROKER) & F.col("begin_ns").isNotNull()).join(names, "run")
    name = F.coalesce(F.col("broker_names")[F.col("node")], F.col("node")).alias("broker_name")
    of_life = edges_awake(F.col("begin_ns"), F.col("dead_ns"), F.col("asleep"))
    awake = F.transform(of_life, lambda edge: _edge(F.lit(_Fact.AWAKE.value), edge["t_ns"], edge["awake"]))
    begun = _edge(F.lit(_Fact.BEGUN.value), F.col("begin_ns"), F.lit(1))
    rows = brokers.select("run", name, F.inline(F.array_append(awake, begun)))
    return _rows(rows.join(F.broadcast(scopes.select(*_SCOPE)), "run"))


def _rows(facts: DataFrame) -> DataFrame:
    """The columns of edges; what is not about a queue or a broker has null there."""
    types = {"broker_name": "string", "queue_id": "bigint", "queues": "bigint"}
    columns = [F.col(name) if name in facts.columns else F.lit(None).cast(types[name]).alias(name) for name in _EDGE]
    return facts.select(*columns)


# --- facts of each queue ------------------------------------------------------------------------


def _of_each_queue(facts: DataFrame) -> DataFrame:
    """The edges of facts about brokers, topics and groups for each queue that they concern.

    Queues of a broker have the ids up to the greatest that anyone has seen, listed, owned or popped.
    """
    greatest = F.max(F.coalesce("queues", F.col("queue_id") + 1)).over(Window.partitionBy(*_SCOPE, "broker_name"))
    rows = facts.withColumn("size", greatest)
    broker = F.struct("broker_name", "size")
    sizes = F.collect_set(F.when(F.col("broker_name").isNotNull() & F.col("size").isNotNull(), broker))
    rows = rows.withColumn("brokers", sizes.over(Window.partitionBy(*_SCOPE)))
    concerned = F.when(F.col("broker_name").isNull(), F.col("brokers")).otherwise(F.array(broker))
    rows = rows.select(*_SCOPE, "queue_id", "queues", "fact", "t_ns", "step", F.inline(concerned))
    ids = F.sequence(F.lit(0), F.coalesce("queues", "size") - 1)
    queue_ids = F.when(F.col("queue_id").isNotNull(), F.array("queue_id")).when(F.col("size") > 0, ids)
    return rows.select(*_SCOPE, "broker_name", F.explode(queue_ids).alias("queue_id"), "fact", "t_ns", "step")


def _counted(facts: DataFrame) -> DataFrame:
    """How often each fact is true of a queue, at each instant at which that changes."""
    steps = {fact: F.sum(F.when(F.col("fact") == fact.value, F.col("step")).otherwise(0)) for fact in _Fact}
    at_instants = facts.groupBy(*QUEUE, "t_ns").agg(*(step.alias(fact) for fact, step in steps.items()))
    levels = [F.sum(fact).over(in_order(*QUEUE)).alias(fact) for fact in _Fact]
    return at_instants.select(*QUEUE, "t_ns", *levels)

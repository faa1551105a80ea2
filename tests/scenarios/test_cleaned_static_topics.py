"""Static topics whose mappings brokers clean: old parts without messages, and queues that they led long ago."""

from emulator.spec import loads
from emulator.testing import Stage, Trace, execute
from nodes.broker.tables.metadata.static_topics import forgotten_queues
from nodes.protocol.static_topics import LogicQueueMappingItem, TopicQueueMappingDetail
from support.every_case import each_case

BROKERS = ("broker-a", "broker-b", "broker-c")
CLUSTER = """
[scenario]
name = "cleaned"
run_for_s = 1000
[[nameserver]]
name = "ns"
"""
OPTIONS = {"now": 'options = { deleteWhen = "0" }', "at four": ""}
ACTS = """
[[admin]]
at_s = 10
do = "update-static-topic orders queues 4 brokers broker-a"
[[admin]]
at_s = 60
do = "remapping-static-topic orders brokers broker-b"
[[admin]]
at_s = 120
do = "remapping-static-topic orders brokers broker-c"
"""
PRODUCER = """
[[topic]]
name = "orders"
created_later = true
[[producer]]
name = "p1"
topic = "orders"
group = "shop"
rate_per_s = 10
start_after_s = 20
messages = 100
"""


def hosted(stage: Stage, node: str) -> dict[int, list[str]]:
    """Logical queue -> the brokers of its parts, as a broker has it."""
    detail = stage.node(node).parts.static_topics.mappings["orders"]
    return {queue: [item.bname for item in items] for queue, items in detail.hosted_queues.items()}


def run(when: str, more: str = "") -> tuple[dict[float, dict[str, dict[int, list[str]]]], Trace]:
    """What each broker has just after each look of the cleaning service, and at the end the rows."""
    seen: dict[float, dict[str, dict[int, list[str]]]] = {}

    async def script(stage: Stage) -> None:
        for at_s in (200, 310, 610, 950):
            await stage.at_ms(at_s * 1_000)
            seen[at_s] = {node: hosted(stage, node) for node in BROKERS}

    brokers = "".join(f'[[broker]]\nname = "{name}"\n{OPTIONS[when]}\n' for name in BROKERS)
    trace = execute(loads(CLUSTER + brokers + more + ACTS, "cleaned.toml"), script)
    return seen, trace


def of_all(*brokers: str) -> dict[int, list[str]]:
    return {queue: list(brokers) for queue in range(4)}


def test_parts_without_messages_go_one_each_five_minutes_and_so_do_queues_led_long_ago() -> None:
    seen, _ = run("now", '[[topic]]\nname = "orders"\ncreated_later = true\n')

    assert seen[200] == {
        "broker-a": of_all("broker-a", "broker-b"),
        "broker-b": of_all(*BROKERS),
        "broker-c": of_all(*BROKERS),
    }
    assert seen[310]["broker-a"] == {}
    assert seen[310]["broker-b"] == of_all(*BROKERS)
    assert seen[310]["broker-c"] == of_all("broker-b", "broker-c")
    assert seen[610]["broker-c"] == seen[950]["broker-c"] == of_all("broker-c")


def test_a_part_with_messages_stays() -> None:
    seen, trace = run("now", PRODUCER)

    assert {row.node for row in trace.select("messages", event="stored", topic="orders")} == {"broker-a"}
    assert seen[950]["broker-c"] == of_all(*BROKERS)
    assert seen[950]["broker-a"] == {}


def test_outside_of_its_hours_nothing_is_cleaned() -> None:
    seen, _ = run("at four", '[[topic]]\nname = "orders"\ncreated_later = true\n')

    assert seen[950] == seen[200]


def item(gen: int, broker_name: str) -> LogicQueueMappingItem:
    return LogicQueueMappingItem(gen, 0, broker_name, gen * 10_000)


def detail(broker_name: str, *brokers: str, epoch: int = 3) -> TopicQueueMappingDetail:
    items = tuple(item(gen, name) for gen, name in enumerate(brokers))
    return TopicQueueMappingDetail("orders", 1, broker_name, epoch, hosted_queues={0: items})


@each_case(
    ("leader", "other", "forgotten"),
    [
        ("c", detail("c", "a", "b", "c"), True),
        ("b", detail("b", "a", "b"), False),
        ("c", detail("c", "a", "b", "c", epoch=4), False),
        ("c", detail("c", "a", "b", "d"), False),
        ("c", None, False),
    ],
)
def test_a_queue_is_forgotten_only_when_its_leader_confirms_that_it_went_on(
    leader: str, other: TopicQueueMappingDetail | None, forgotten: bool
) -> None:
    remote = {} if other is None else {leader: other}

    found = forgotten_queues(detail("a", "a", "b"), {0: leader}, remote)

    assert list(found) == ([0] if forgotten else [])

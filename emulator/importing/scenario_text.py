"""The text of a scenario file for imported nodes: what was taken, and comments about all the rest."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tomli_w

from emulator.importing.cluster import ImportedCluster, ImportedNode
from emulator.importing.verdicts import Fate, Verdict
from emulator.spec.rocketmq.file_kinds import FileKind
from nodes.fields import shown
from nodes.visible import visible

_TOPIC = "TopicTest"
_EXAMPLE = """
# Topics and load are no part of configuration files. For example:
#
# [[topic]]
# name = "orders"
#
# [[consumer]]
# group = "order-processors"
# topics = ["orders"]
# count = 2
#
# [[producer]]
# group = "order-takers"
# topic = "orders"
"""
_SHOWN_MAX = 60


def scenario_text(cluster: ImportedCluster, name: str, sources: Sequence[str]) -> str:
    """The text of a scenario file, which `emulator.spec.loads` reads.

    Args:
        cluster: the nodes.
        name: of the scenario.
        sources: the files, for the first line.
    """
    lines = [
        *_comment(f"Imported from {', '.join(sources)}."),
        "#",
        *_comment("The place that sets an option stands behind it. Comments name all other options of the files."),
        "",
        "[scenario]",
        f"name = {_value(name)}",
        "run_for_s = 60",
        *_white_addresses(cluster),
        *_private_networks(cluster),
        *_nameservers(cluster),
        *_controllers(cluster),
        *_brokers(cluster),
        *_clients(cluster),
        *_accounts(cluster),
        *_proxies(cluster),
        *_statefulsets(cluster),
    ]
    example = "" if cluster.of(FileKind.CLIENT) or cluster.statefulsets else _EXAMPLE
    return "\n".join(lines) + "\n" + example


def _white_addresses(cluster: ImportedCluster) -> Iterator[str]:
    if cluster.white_addresses:
        yield from _comment("These need no account by ACL 1.0; 5.3.3 does not migrate them.")
        yield _pair("global_white_remote_addresses", list(cluster.white_addresses))


def _private_networks(cluster: ImportedCluster) -> Iterator[str]:
    for table in cluster.private_networks:
        yield ""
        yield from _comment("Published ports. Clients of this file live outside, unless they are among the nodes.")
        yield "[[private_network]]"
        yield from (_pair(key, value) for key, value in table.items() if key != "publish")
        yield "[private_network.publish]"
        yield from (_pair(outside, inside) for outside, inside in table["publish"].items())


def _accounts(cluster: ImportedCluster) -> Iterator[str]:
    for account in cluster.accounts:
        yield from ("", "[[account]]")
        yield from (line for note in account.notes for line in _comment(note))
        for key, value in account.table.items():
            yield '{} = {{ env = "{}" }}'.format(key, value["env"]) if isinstance(value, Mapping) else _pair(key, value)


def _nameservers(cluster: ImportedCluster) -> Iterator[str]:
    nodes = cluster.of(FileKind.NAMESRV)
    if not nodes:
        yield from ("", "[nameserver]", f"count = {cluster.nameservers}")
    yield from _tables("nameserver", _filled_up(nodes, cluster.nameservers, "ns"))


def _controllers(cluster: ImportedCluster) -> Iterator[str]:
    nodes = cluster.of(FileKind.CONTROLLER)
    if not nodes and cluster.controllers:
        yield from ("", "[controller]", f"count = {cluster.controllers}")
    yield from _tables("controller", _filled_up(nodes, cluster.controllers, "controller"))


_Rows = Iterable[tuple[Mapping[str, Any], ImportedNode]]


def _filled_up(nodes: Sequence[ImportedNode], number: int, stem: str) -> _Rows:
    """(table, node): the nodes, and copies of the last one for peers without a file."""
    for node in nodes:
        yield node.table, node
    for missing in range(len(nodes) + 1, number + 1) if nodes else ():
        yield {"name": f"{stem}-{missing}"}, nodes[-1]


def _brokers(cluster: ImportedCluster) -> Iterator[str]:
    for container in cluster.of(FileKind.CONTAINER):
        yield ""
        yield from _comment(f"Container {container.table['name']}, {_place(container)}:")
        yield from _comments(container.verdicts)
    brokers = cluster.of(FileKind.BROKER)
    yield from _tables("broker", ((broker.table, broker) for broker in brokers))
    if not brokers:
        yield from ("", "# No file has a broker; a scenario needs one.", "[[broker]]", 'name = "broker-a"')


def _clients(cluster: ImportedCluster) -> Iterator[str]:
    clients = cluster.of(FileKind.CLIENT)
    if clients:
        yield from ("", "# Files of clients name no topics.", "[[topic]]", f"name = {_value(_TOPIC)}")
    for number, client in enumerate(clients, 1):
        group = _text_of(client, "producerGroup")
        if group is not None:
            table = {"name": f"producer-{number}", "group": group, "topic": _TOPIC}
            yield from _tables("producer", ((table, client),))
        else:
            group = _text_of(client, "consumerGroup") or f"consumers-{number}"
            yield from _tables("consumer", (({"group": group, "topics": [_TOPIC]}, client),))


def _text_of(node: ImportedNode, option: str) -> str | None:
    found = [verdict.setting.value.strip() for verdict in node.verdicts if verdict.setting.name == option]
    return found[-1] if found else None


def _proxies(cluster: ImportedCluster) -> Iterator[str]:
    yield from _tables("proxy", ((proxy.table, proxy) for proxy in cluster.of(FileKind.PROXY)))


def _statefulsets(cluster: ImportedCluster) -> Iterator[str]:
    """Topics, consumers, pods and a load for each StatefulSet."""
    topics = {topic["name"]: topic for item in cluster.statefulsets for topic in item.design.topics}
    for topic in topics.values():
        yield from ("", "[[topic]]", *(_pair(key, value) for key, value in topic.items()))
    for item in cluster.statefulsets:
        yield ""
        yield from _comment(f"StatefulSet {item.table['name']}, {item.source}:{item.line}: its pods are consumers.")
        yield from _comment(item.design.consumer_note)
        yield from ("[[consumer]]", _pair("group", item.table["group"]))
        yield _pair("topics", [topic["name"] for topic in item.design.topics])
        yield "[consumer.options]"
        yield from (_pair(name, value) for name, value in item.design.consumer_options.items())
        yield from ("", "[[statefulset]]", *(_pair(key, value) for key, value in item.table.items()))
        yield "[statefulset.options]"
        yield from (f"{_pair(name, value)}  # {visible(item.places[name])}" for name, value in item.options.items())
    producers = [(item.design.producer, item.design.producer_notes) for item in cluster.statefulsets]
    for place, (producer, notes) in enumerate(producers):
        if (producer, notes) not in producers[:place]:
            yield ""
            yield from (line for note in notes for line in _comment(note))
            yield from ("[[producer]]", *(_inline(key, value) for key, value in producer.items()))


def _tables(section: str, rows: _Rows) -> Iterator[str]:
    """The tables of an array, each with its options; comments about options that several share stand once."""
    before: Sequence[Verdict] | None = None
    for table, node in rows:
        yield ""
        yield f"[[{section}]]"
        yield from (f"{key} = {_value(value)}" for key, value in table.items())
        yield from (line for note in node.notes for line in _comment(note))
        yield from _options(section, node)
        yield from _not_emulated(node)
        if node.verdicts is not before:
            yield from _comments(node.verdicts)
        before = node.verdicts


def _not_emulated(node: ImportedNode) -> Iterator[str]:
    """What `getBrokerConfig` prints although it is not emulated, each with the reason."""
    printed = [verdict for verdict in node.verdicts if verdict.printed is not None]
    if printed:
        yield "[broker.not_emulated]"
    for verdict in printed:
        pair = _pair(verdict.setting.name, verdict.printed)
        yield f"{pair}  # {visible(verdict.setting.place)}: {visible(verdict.note)}"


def _options(section: str, node: ImportedNode) -> Iterator[str]:
    places = {item.setting.name: item.setting.place for item in node.verdicts if item.fate is Fate.TAKEN}
    if node.options:
        yield f"[{section}.options]"
    for name, value in node.options.items():
        place = places.get(name, "RocketMQ's default, and not ours")
        yield f"{name} = {_value(value)}  # {visible(place)}"


def _comments(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """What became of options that were not taken as they are."""
    for verdict in verdicts:
        setting = verdict.setting
        name = shown(setting.name, _SHOWN_MAX)
        if verdict.printed is not None:
            continue
        if verdict.fate is not Fate.TAKEN:
            is_shown = verdict.fate in (Fate.ELSEWHERE, Fate.NOT_EMULATED, Fate.NO_EFFECT)
            value = f" = {setting.shown_value}" if is_shown else ""
            yield from _comment(f"{name}{value} ({setting.place}): {verdict.note}")
        elif verdict.is_warning:
            yield from _comment(f"{name} ({setting.place}): {verdict.note}")


def _comment(text: str) -> Iterator[str]:
    yield f"# {visible(text)}"


def _place(node: ImportedNode) -> str:
    return f"{node.source}:{node.line}" if node.line else node.source


def _value(value: Any) -> str:
    """A value as TOML writes it."""
    return _pair("v", value).removeprefix("v = ")


def _inline(name: str, value: Any) -> str:
    """As `_pair`; a table is written in braces."""
    if not isinstance(value, Mapping):
        return _pair(name, value)
    pairs = ", ".join(_pair(key, item) for key, item in value.items())
    return f"{name} = {{ {pairs} }}"


def _pair(name: str, value: Any) -> str:
    """A key and its value as TOML writes them, in one line."""
    if isinstance(value, list):
        return f"{_pair(name, 0).removesuffix('0')}[{', '.join(map(_value, value))}]"
    return tomli_w.dumps({name: value}).rstrip("\n").replace("\n", " ")

"""Configuration files of any form: what each of them is, and the cluster that they describe together."""

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from emulator.importing.accounts import USER_OPTIONS, accounts_of, is_plain_acl, white_addresses_of, with_users
from emulator.importing.cluster import ImportedCluster, cluster_of
from emulator.importing.compose import is_compose, nodes_of_compose
from emulator.importing.manifests import Manifests, resources_of
from emulator.importing.property_files import read_json_file, read_properties_file
from emulator.importing.settings import ConfigurationError, ConfiguredNode
from emulator.importing.statefulsets import statefulsets_of
from emulator.importing.verdicts import Fate, Verdict
from emulator.importing.yaml_files import YamlValue, read_yaml
from emulator.spec.rocketmq.file_kinds import JSON_SUFFIXES, YAML_SUFFIXES, FileKind

ReadNext = Callable[[str, str], bytes | None]
"""From a file and a path next to it to the content there; None: there is none that may be read."""


@attrs.frozen
class ConfigurationFile:
    """A file as it was read."""

    source: str
    """Its path, for messages."""
    content: bytes = attrs.field(repr=False)


def read_configuration(
    files: Sequence[ConfigurationFile], kind: FileKind | None, read_next: ReadNext
) -> ImportedCluster:
    """The cluster that files describe; if they have no node of RocketMQ, StatefulSets are taken for consumers.

    Args:
        files: all of them.
        kind: of the node that each properties file is for; None: its options show it.
        read_next: reads what a compose file mounts.

    Raises:
        ConfigurationError: one of them is not what it should be, or has nothing of RocketMQ.
    """
    configured: list[ConfiguredNode] = []
    resources: list[YamlValue] = []
    accounts: list[YamlValue] = []
    for file in files:
        if file.source.lower().endswith(YAML_SUFFIXES):
            documents = read_yaml(file.content, file.source)
            if documents and all(map(is_plain_acl, documents)):
                accounts += documents
                continue
            found = list(_of_compose(documents, file.source, read_next))
            known = resources_of(documents)
            if not found and not known:
                problem = "expected services of docker-compose with RocketMQ, or resources of Kubernetes"
                raise ConfigurationError(file.source, 0, problem)
            configured += found
            resources += known
        elif file.source.lower().endswith(JSON_SUFFIXES) or kind is FileKind.PROXY:
            configured.append(read_json_file(file.content, file.source))
        else:
            configured.append(read_properties_file(file.content, file.source, kind))
    configured += Manifests(tuple(resources)).nodes()
    if not configured:
        # Of a chart with brokers the other StatefulSets are databases and exporters.
        statefulsets = tuple(statefulsets_of(resources))
        if statefulsets:
            return ImportedCluster((), nameservers=1, controllers=0, statefulsets=statefulsets)
        raise ConfigurationError(files[0].source, 0, "expected a node of RocketMQ, and no resource starts one")
    cluster = cluster_of(configured)
    brokers = cluster.of(FileKind.BROKER)
    named = (str(node.options[name]) for node in brokers for name in USER_OPTIONS if name in node.options)
    return attrs.evolve(
        cluster,
        accounts=with_users(accounts_of(accounts), named),
        white_addresses=white_addresses_of(accounts),
    )


def _of_compose(documents: Sequence[YamlValue], source: str, read_next: ReadNext) -> Iterator[ConfiguredNode]:
    for document in documents:
        if is_compose(document):
            yield from nodes_of_compose(document, lambda path: read_next(source, path))


def verdicts_of_cluster(cluster: ImportedCluster) -> tuple[Verdict, ...]:
    """All verdicts, each once, in the order of the nodes."""
    seen: dict[int, tuple[Verdict, ...]] = {}
    for node in cluster.nodes:
        seen.setdefault(id(node.verdicts), node.verdicts)
    return tuple(verdict for verdicts in seen.values() for verdict in verdicts)


def counts_of(verdicts: Sequence[Verdict]) -> Mapping[str, Mapping[Fate, int]]:
    """Mapping file -> how many of its options have each fate."""
    counted: dict[str, dict[Fate, int]] = {}
    for verdict in verdicts:
        of_file = counted.setdefault(verdict.setting.source, dict.fromkeys(Fate, 0))
        of_file[verdict.fate] += 1
    return counted


def scenario_name(files: Sequence[ConfigurationFile]) -> str:
    """A name for the scenario: that of the file, if there is one."""
    stem = posixpath.basename(files[0].source).partition(".")[0]
    kept = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_-") else "-" for letter in stem)
    return f"imported-{kept[:60]}" if len(files) == 1 and kept else "imported"

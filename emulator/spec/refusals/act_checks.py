"""Whether the acts of a scenario can be carried out: instants, places, and names that exist."""

from collections.abc import Iterator, Sequence

from emulator.acts.act import Act, Concerned, PlaceKind
from emulator.spec.model.scenario import Scenario
from emulator.spec.refusals.nameserver_lists import KnownServers, check_item, check_list
from emulator.spec.refusals.start_checks import earliest_starts_ms
from emulator.spec.tables.bounds import GROUP_NAME, TOPIC_NAME
from emulator.spec.tables.mistakes import SpecError, require_known
from nodes.fields import Rule

_WORDS = {
    PlaceKind.BROKER: "broker",
    PlaceKind.CLUSTER: "cluster",
    PlaceKind.NAMESERVER: "nameserver",
    PlaceKind.CONTROLLER: "controller",
}


def violations_of_acts(scenario: Scenario) -> Iterator[SpecError]:
    """All mistakes about acts of administrators."""
    starts_ms = earliest_starts_ms(scenario) if scenario.acts else {}
    topics, groups = known_topics(scenario), known_groups(scenario)
    for i, timed in enumerate(scenario.acts):
        key = f"admin[{i}]"
        try:
            check_act(scenario, key, timed.act, topics, groups)
        except SpecError as error:
            yield error
        if timed.at_ms >= scenario.run_for_ms:
            yield SpecError(f"{key}.at_ms", f"expected an instant before the end at {scenario.run_for_ms} ms")
        yield from _before_the_start(scenario, f"{key}.at_ms", timed.act, timed.at_ms, starts_ms)


def known_topics(scenario: Scenario) -> list[str]:
    """The topics of a scenario: those that it declares, and those that an act may create."""
    made = (timed.act.concerns().new_topic for timed in scenario.acts)
    return list(dict.fromkeys([*(topic.name for topic in scenario.topics), *filter(None, made)]))


def known_groups(scenario: Scenario) -> list[str]:
    """The consumer groups of a scenario: those with consumers, and those that an act may create."""
    made = (timed.act.concerns().new_group for timed in scenario.acts)
    return list(dict.fromkeys([*(group.group for group in scenario.consumers), *filter(None, made)]))


def check_act(scenario: Scenario, key: str, act: Act, topics: Sequence[str], groups: Sequence[str]) -> None:
    """Refuse an act that names what does not exist.

    Args:
        scenario: of the cluster.
        key: path of the act's table, for messages.
        act: to check.
        topics: that are known.
        groups: that are known.

    Raises:
        SpecError: the first name that is unknown or impossible.
    """
    concerns = act.concerns()
    _require_name(f"{key}.topic", TOPIC_NAME, concerns.new_topic)
    _require_name(f"{key}.group", GROUP_NAME, concerns.new_group)
    if concerns.topic and concerns.topic not in topics:
        require_known(f"{key}.topic", "topic", concerns.topic, topics)
    if concerns.group and concerns.group not in groups:
        require_known(f"{key}.group", "group", concerns.group, groups)
    broker_names = list(dict.fromkeys(spec.broker_name for spec in scenario.brokers))
    if concerns.broker:
        require_known(f"{key}.broker", "broker", concerns.broker, broker_names)
    for name in concerns.broker_names:
        require_known(f"{key}.brokers", "broker", name, broker_names)
    if concerns.statefulset:
        names = [spec.name for spec in scenario.statefulsets]
        require_known(f"{key}.statefulset", "StatefulSet", concerns.statefulset, names, "statefulset")
    _check_nameservers(scenario, key, act)
    _check_node(scenario, key, concerns)
    if concerns.source:
        require_known(f"{key}.from", "broker", concerns.source, [spec.name for spec in scenario.brokers])
    if concerns.account:
        known = [account.access_key for account in scenario.accounts]
        require_known(f"{key}.account", "account", concerns.account, known)
    _check_place(scenario, f"{key}.on", act)


def _check_nameservers(scenario: Scenario, key: str, act: Act) -> None:
    """Refuse lists with nameservers that do not exist, and changes of lists that nothing has."""
    from emulator.acts.options import NAMESRV_ADDR, UpdateBrokerConfig  # noqa: PLC0415 - few scenarios have acts

    concerns, known = act.concerns(), KnownServers.of(scenario)
    if isinstance(act, UpdateBrokerConfig):
        check_list(f"{key}.options", act.options.get(NAMESRV_ADDR, ""), known)
    if concerns.address_server and not known.has_address_server:
        raise SpecError(f"{key}.kind", "expected an [address_server] in the scenario: there is none")
    if concerns.domain:
        require_known(f"{key}.domain", "domain name", concerns.domain, known.domains)
    for node in concerns.nodes:
        require_known(f"{key}.nodes", "nameserver", node, known.nameservers, "node")
    for item in concerns.nameservers:
        check_item(f"{key}.nameservers", item, known)


def _check_node(scenario: Scenario, key: str, concerns: Concerned) -> None:
    """Refuse to start, to shut down, to add or to remove what cannot be."""
    contained = [spec.name for spec in scenario.brokers if spec.container is not None]
    brokers = [spec.name for spec in scenario.brokers if spec.container is None]
    if concerns.contained:
        if concerns.contained in brokers:
            raise SpecError(f"{key}.node", "expected a broker of a container: start-node and shutdown-node do this one")
        require_known(f"{key}.node", "broker of a container", concerns.contained, contained)
    if concerns.process:
        if concerns.process in contained:
            problem = "expected a process, not a part of one: add-broker and remove-broker do brokers of containers"
            raise SpecError(f"{key}.node", problem)
        known = [*(spec.name for spec in scenario.nameservers), *brokers, *scenario.containers()]
        require_known(f"{key}.node", "nameserver, broker or container", concerns.process, known)


def _require_name(key: str, rule: Rule, name: str) -> None:
    if name and not rule.holds(name):
        raise SpecError(key, rule.problem(name))


def _check_place(scenario: Scenario, key: str, act: Act) -> None:
    places = _places(scenario, act.place_kind)
    if act.place is not None:
        subject = " or ".join(_WORDS[kind] for kind in act.place_kind)
        require_known(key, subject, act.place, places)
    elif PlaceKind.CLUSTER in act.place_kind and len(_places(scenario, PlaceKind.CLUSTER)) > 1:
        raise SpecError(key, "expected the name of a cluster or a broker: there is more than one cluster")
    elif act.place_kind is PlaceKind.CONTROLLER and not places:
        raise SpecError(key, "expected a scenario with controllers: there are none")


def _places(scenario: Scenario, kind: PlaceKind) -> list[str]:
    named = {
        PlaceKind.BROKER: [spec.name for spec in scenario.brokers],
        PlaceKind.CLUSTER: [spec.cluster for spec in scenario.brokers],
        PlaceKind.NAMESERVER: [spec.name for spec in scenario.nameservers],
        PlaceKind.CONTROLLER: list(scenario.controller_names()),
    }
    return list(dict.fromkeys(name for part in kind for name in named[part]))


def _before_the_start(
    scenario: Scenario, key: str, act: Act, at_ms: int, starts_ms: dict[str, int]
) -> Iterator[SpecError]:
    """An act that can reach no node, since none of those that it may ask can have started."""
    nodes = _places(scenario, PlaceKind.BROKER if PlaceKind.BROKER in act.place_kind else act.place_kind)
    nodes = [act.place] if act.place in nodes else nodes
    first = min(nodes, key=lambda name: starts_ms.get(name, 0), default=None)
    if first is not None and at_ms < starts_ms.get(first, 0):
        yield SpecError(key, f"expected an instant not before {starts_ms[first]} ms, the earliest start of {first}")

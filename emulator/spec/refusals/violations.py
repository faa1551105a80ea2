"""Whether the parts of a scenario fit together: names that exist, names taken once, ports, sizes, targets of faults."""

from collections.abc import Callable, Iterator
from typing import Any

from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.scenario import ADMINISTRATOR, GUEST, Scenario
from emulator.spec.refusals.access_checks import violations_of_accounts, violations_of_auth
from emulator.spec.refusals.act_checks import violations_of_acts
from emulator.spec.refusals.groups import violations_of_groups
from emulator.spec.refusals.nameserver_lists import violations_of_nameserver_lists
from emulator.spec.refusals.private_networks import violations_of_private_networks
from emulator.spec.refusals.proxy_checks import violations_of_proxies
from emulator.spec.refusals.start_checks import faults_before_the_start
from emulator.spec.refusals.statefulsets import violations_of_statefulsets
from emulator.spec.refusals.targets import check_fault
from emulator.spec.tables.bounds import (
    ACTS_MAX,
    BROKERS_MAX,
    CONSUMERS_MAX,
    CONTROLLERS_MAX,
    FAULTS_MAX,
    GUESTS_MAX,
    NAMESERVERS_MAX,
    PRODUCERS_MAX,
    PROXIES_MAX,
    QUEUES_IN_ALL_MAX,
    TOPICS_MAX,
)
from emulator.spec.tables.mistakes import NameMistakeError, SpecError, require_known
from emulator.spec.tables.options import require_supported
from faults.target import ANY
from nodes.client.tables.queue_selectors import BY_KEY
from nodes.config import BrokerRole
from nodes.config.container import CONTAINER_PORT
from nodes.fields import quoted
from nodes.filter.filter_api import SubscriptionError, build_subscription_data
from nodes.protocol.model import MASTER_ID

Place = Callable[[str], str]
"""From the path of a part in the scenario to that of its table in the file."""
PORT = "port"
"""Of mistakes about the ports of brokers that share an address."""
_PORTS_OF_CONTAINER = dict.fromkeys((CONTAINER_PORT, CONTAINER_PORT - 2), "the container")


def fitting(scenario: Scenario) -> Scenario:
    """The scenario, if its parts fit together.

    Raises:
        SpecError: the first mistake.
    """
    for mistake in violations(scenario):
        raise mistake
    return scenario


def violations(scenario: Scenario, place: Place = str) -> Iterator[SpecError]:
    """All mistakes of a scenario whose parts are fine alone; who takes the first pays for no others.

    Args:
        scenario: to look at.
        place: what mistakes call the path of a part, which is its position in the scenario.
    """
    for mistake in _all(scenario, place):
        key = place(mistake.key)
        if isinstance(mistake, NameMistakeError):
            yield NameMistakeError(key, mistake.problem, mistake.named)
        else:
            yield SpecError(key, mistake.problem)


def _all(scenario: Scenario, place: Place) -> Iterator[SpecError]:
    yield from _violations_of_sizes(scenario)
    yield from _violations_of_names(scenario, place)
    yield from _violations_of_roles(scenario)
    yield from _violations_of_dledger(scenario)
    yield from _violations_of_addresses(scenario)
    yield from violations_of_private_networks(scenario)
    yield from _violations_of_topics(scenario)
    yield from violations_of_groups(scenario.consumers)
    yield from _violations_of_subscriptions(scenario)
    yield from _violations_of_producers(scenario)
    yield from violations_of_accounts(scenario)
    yield from violations_of_auth(scenario)
    for i, consumers in enumerate(scenario.consumers):
        yield from refusals(require_supported, f"consumer[{i}].options", consumers.config)
    yield from violations_of_statefulsets(scenario)
    yield from violations_of_proxies(scenario)
    yield from _violations_of_faults(scenario, place)
    yield from violations_of_acts(scenario)
    yield from _violations_of_late_clients(scenario)
    yield from violations_of_nameserver_lists(scenario)


def refusals(check: Callable[..., object], *arguments: Any) -> Iterator[SpecError]:
    """The mistakes with which a check refuses its arguments; none if it accepts them."""
    try:
        check(*arguments)
    except SpecError as error:
        yield error


def _violations_of_sizes(scenario: Scenario) -> Iterator[SpecError]:
    sizes = {
        "nameserver": (len(scenario.nameservers), NAMESERVERS_MAX),
        "controller": (len(scenario.controller_names()), CONTROLLERS_MAX),
        "proxy": (len(scenario.proxies), PROXIES_MAX),
        "broker": (len(scenario.brokers), BROKERS_MAX),
        "topic": (len(scenario.topics), TOPICS_MAX),
        "consumer": (sum(len(group.names) or 1 for group in scenario.consumers), CONSUMERS_MAX),
        "producer": (len(scenario.producers), PRODUCERS_MAX),
        "scenario.guests": (len(scenario.guests), GUESTS_MAX),
        "fault": (len(scenario.faults.faults), FAULTS_MAX),
        "admin": (len(scenario.acts), ACTS_MAX),
    }
    for key, (size, maximum) in sizes.items():
        if size > maximum:
            yield SpecError(key, f"expected {maximum} at most in all, not {size}")
    queues = sum(topic.queues * len(topic.brokers) for topic in scenario.topics if not topic.created_later)
    if queues > QUEUES_IN_ALL_MAX:
        yield SpecError("topic", f"expected {QUEUES_IN_ALL_MAX} queues at most in all topics, not {queues}")
    begins = sum(scenario.run_for_ms // nemesis.every_ms for nemesis in scenario.nemeses)
    if begins > FAULTS_MAX:
        yield SpecError("nemesis", f"expected {FAULTS_MAX} faults at most, not {begins}")


def _violations_of_names(scenario: Scenario, place: Place) -> Iterator[SpecError]:
    for key, specs in (("nameserver", scenario.nameservers), ("broker", scenario.brokers)):
        if not specs:
            yield SpecError(key, "expected at least one")
        elif all(spec.added_later for spec in specs):
            yield SpecError(f"{key}[0].added_later", f"expected a {key} that runs at the start: all are added later")
    for i, broker in enumerate(scenario.brokers):
        if broker.added_later and broker.start_after_ms:
            yield SpecError(f"broker[{i}].start_after_ms", "expected only one of added_later and start_after_ms")
    topics = ((f"topic[{i}].name", topic.name) for i, topic in enumerate(scenario.topics))
    yield from _taken_twice(scenario.named_nodes(), "node", place)
    for key, name in scenario.named_nodes():
        if name == GUEST:
            yield SpecError(key, f'expected another name than "{GUEST}", by which guests without a name are known')
        if name == ADMINISTRATOR:
            yield SpecError(key, f'expected another name than "{ADMINISTRATOR}", that of the machine of administrators')
    yield from _taken_twice(topics, "topic", place)


def _taken_twice(keyed_names: Iterator[tuple[str, str]], subject: str, place: Place) -> Iterator[SpecError]:
    taken: dict[str, str] = {}
    for key, name in keyed_names:
        if name == ANY or not name:
            yield SpecError(key, f'expected the name of one {subject}, not "{name}"')
        elif name in taken:
            problem = f'expected a name of its own, "{name}" is already at {place(taken[name])}'
            yield NameMistakeError(key, problem, subject)
        else:
            taken[name] = key


def _violations_of_roles(scenario: Scenario) -> Iterator[SpecError]:
    """A master that calls itself a slave; controllers decide for themselves what a broker is."""
    for i, broker in enumerate(scenario.brokers):
        is_slave = broker.config.broker_role is BrokerRole.SLAVE and not broker.config.is_elected
        if is_slave and broker.broker_id == MASTER_ID:
            yield SpecError(f"broker[{i}].options.brokerRole", "expected an id greater than 0 of a SLAVE")


def _violations_of_addresses(scenario: Scenario) -> Iterator[SpecError]:
    ports: dict[tuple[bool, str], dict[int, str]] = {}
    for i, broker in enumerate(scenario.brokers):
        if broker.address_of is not None:
            key = f"broker[{i}].address_of"
            owners = [earlier.name for earlier in scenario.brokers[:i] if earlier.address_of is None]
            yield from refusals(require_known, key, "earlier broker", broker.address_of, owners, "broker")
            if broker.container is not None:
                yield SpecError(key, "expected none: it has the address of its container")
        machine = (broker.container is not None, broker.container or broker.address_of or broker.name)
        if machine in ports and broker.container is None and broker.address_of is None:
            continue  # it only has the name of another node
        taken = ports.setdefault(machine, {} if broker.container is None else dict(_PORTS_OF_CONTAINER))
        listen_port = broker.config.listen_port
        # The second one is that of replication, the third one is for what is urgent.
        for port in (listen_port, listen_port + 1, *([listen_port - 2] if broker.container is not None else [])):
            if port in taken:
                problem = f"expected ports of its own on a shared address, {port} belongs to {taken[port]}"
                yield NameMistakeError(f"broker[{i}].options.listenPort", problem, PORT)
                break
            taken[port] = broker.name


def _violations_of_topics(scenario: Scenario) -> Iterator[SpecError]:
    broker_names = list(dict.fromkeys(broker.broker_name for broker in scenario.brokers))
    known = dict.fromkeys(broker_names)
    for i, topic in enumerate(scenario.topics):
        for j, broker_name in enumerate(topic.brokers):
            if broker_name not in known:
                yield from refusals(require_known, f"topic[{i}].brokers[{j}]", "broker", broker_name, broker_names)


def _violations_of_subscriptions(scenario: Scenario) -> Iterator[SpecError]:
    topic_names = [topic.name for topic in scenario.topics]
    for i, consumers in enumerate(scenario.consumers):
        for j, topic_name in enumerate(consumers.topics):
            yield from refusals(require_known, f"consumer[{i}].topics[{j}]", "topic", topic_name, topic_names)
        for topic_name, expression in consumers.expressions.items():
            key = f"consumer[{i}].expressions.{topic_name}"
            if topic_name in consumers.topics:
                yield from refusals(_require_expression, key, topic_name, expression)
            else:
                yield from refusals(require_known, key, "topic of the group", topic_name, list(consumers.topics))


def _require_expression(key: str, topic: str, expression: str) -> None:
    try:
        build_subscription_data(topic, expression)
    except SubscriptionError:
        raise SpecError(key, f'expected tags such as "a || b", or "*", not {quoted(expression)}') from None


def _violations_of_producers(scenario: Scenario) -> Iterator[SpecError]:
    topic_names = [topic.name for topic in scenario.topics]
    for i, producer in enumerate(scenario.producers):
        yield from _violations_of_sending(f"producer[{i}]", producer, topic_names)
        if producer.select in BY_KEY and producer.keys is None:
            yield SpecError(f"producer[{i}].select", f"expected keys with it: {producer.select} chooses by the key")
        if producer.select is not None and producer.transactions is not None:
            yield SpecError(f"producer[{i}].select", "expected none: RocketMQ selects no queue for a transaction")


def _violations_of_sending(key: str, producer: ProducerSpec, topic_names: list[str]) -> Iterator[SpecError]:
    """What is wrong with the topics of a producer; of partitions that are unknown the first is named."""
    if producer.partitions is None:
        for topic in producer.topics:
            yield from refusals(require_known, f"{key}.topic", "topic", topic, topic_names)
        if not producer.topics:
            yield SpecError(f"{key}.topic", "missing; expected a text, or partitions in its place")
        return
    if producer.topic is not None:
        yield SpecError(f"{key}.topic", "expected none with partitions, which name the topics")
    if producer.keys is None:
        yield SpecError(f"{key}.partitions", "expected keys with them: the key of a message decides its topic")
    unknown = [topic for topic in producer.topics if topic not in topic_names]
    for topic in unknown[:1]:
        yield from refusals(require_known, f"{key}.partitions", "topic", topic, topic_names)


def _violations_of_late_clients(scenario: Scenario) -> Iterator[SpecError]:
    after_ms = {f"consumer[{i}]": group.start_after_ms for i, group in enumerate(scenario.consumers)}
    after_ms |= {f"producer[{i}]": producer.start_after_ms for i, producer in enumerate(scenario.producers)}
    for key, late_ms in after_ms.items():
        if late_ms >= scenario.run_for_ms:
            problem = f"expected an instant before the end at {scenario.run_for_ms} ms: it would never start"
            yield SpecError(f"{key}.start_after_ms", problem)


def _violations_of_faults(scenario: Scenario, place: Place) -> Iterator[SpecError]:
    for i, timed in enumerate(scenario.faults.faults):
        yield from refusals(check_fault, scenario, f"fault[{i}]", timed.fault)
        if timed.at_ms >= scenario.run_for_ms:
            yield SpecError(f"fault[{i}].at_ms", f"expected an instant before the end at {scenario.run_for_ms} ms")
    yield from faults_before_the_start(scenario)
    taken = {timed.id: f"fault[{i}].id" for i, timed in enumerate(scenario.faults.faults)}
    for i, nemesis in enumerate(scenario.nemeses):
        yield from refusals(check_fault, scenario, f"nemesis[{i}]", nemesis.fault)
        for known, at in taken.items():
            if known == nemesis.id or known.startswith(f"{nemesis.id}-"):
                problem = f"expected an id of its own, {nemesis.id} is taken by {place(at)}"
                yield SpecError(f"nemesis[{i}].id", problem)
                break
        taken[nemesis.id] = f"nemesis[{i}].id"


def _violations_of_dledger(scenario: Scenario) -> Iterator[SpecError]:
    """A group of which only some brokers have such a log, and what RocketMQ or the emulator does not have with it."""
    for i, broker in enumerate(scenario.brokers):
        key = f"broker[{i}].options.enableDLegerCommitLog"
        group = [other.config for other in scenario.brokers if other.broker_name == broker.broker_name]
        if not broker.config.enable_d_leger_commit_log:
            if any(config.enable_d_leger_commit_log for config in group):
                yield SpecError(key, f"expected true, as at another broker of {broker.broker_name}")
        elif broker.config.enable_controller_mode:
            yield SpecError(key, "expected false with enableControllerMode: RocketMQ does not start with both")
        elif broker.container is not None:
            yield SpecError(key, "expected false in a container: DLedger is emulated outside of containers")

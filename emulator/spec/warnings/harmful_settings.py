"""Warnings about harmful settings that RocketMQ accepts silently.

A scenario with such settings runs, and does what the real system would do.
"""

from collections.abc import Callable, Iterator

from emulator.spec.code.permission_of_code import ALLOW_CODE
from emulator.spec.model.addresses import addresses
from emulator.spec.model.scenario import BrokerSpec, Scenario
from emulator.spec.reading.user_functions import named_code
from emulator.spec.warnings.address_checks import unreachable_addresses
from emulator.spec.warnings.controller_checks import harmful_controllers
from emulator.spec.warnings.fault_checks import faults_that_end_before_the_start
from emulator.spec.warnings.group_checks import late_groups, unsuited_groups
from emulator.spec.warnings.harmful_setting import HarmfulSetting, merged
from emulator.spec.warnings.nameserver_list_checks import harmful_nameserver_lists
from emulator.spec.warnings.order_checks import harmful_orders
from emulator.spec.warnings.refused_calls import refused_calls
from emulator.spec.warnings.strategy_checks import harmful_strategies
from emulator.spec.warnings.unusual_values import unusual_values
from nodes.broker.tables.timer.delay_levels import parse_delay_level
from nodes.config import AllocateStrategy, BrokerConfig, BrokerRole, Exclusivity
from nodes.config.proxy import ProxyConfig
from nodes.container.tables.broker_file import RefusedBrokerError, read_broker_file, write_broker_file
from nodes.container.tables.brokers import BrokerOfContainer
from nodes.protocol.headers_statefulset import ProbePath
from nodes.protocol.model import MASTER_ID
from nodes.statefulset.tables.pod import ProbeKind

_MEMBERS_FOR_A_TIE = 3
"""A master and two slaves: with one slave there is no second one whose older data could win."""


_Group = tuple[BrokerSpec, ...]


def check(scenario: Scenario) -> tuple[HarmfulSetting, ...]:
    """All harmful settings of a scenario, broker group by broker group, then those of consumers and of restarts."""
    groups: dict[str, list[BrokerSpec]] = {}
    for broker in scenario.brokers:
        groups.setdefault(broker.broker_name, []).append(broker)
    found = [setting for members in groups.values() for look in _OF_A_GROUP for setting in look(tuple(members))]
    found += [
        *_nameservers_without_acting_master(scenario),
        *unreachable_addresses(scenario),
        *harmful_nameserver_lists(scenario),
        *harmful_controllers(scenario),
        *harmful_strategies(scenario),
        *_statefulsets(scenario),
        *_leases(scenario),
        *late_groups(scenario),
        *unsuited_groups(scenario),
        *harmful_orders(scenario),
        *faults_that_end_before_the_start(scenario),
        *_refused_by_containers(scenario),
        *_delays(scenario),
        *_refused_by_acl(scenario),
        *refused_calls(scenario),
        *unusual_values(scenario),
        *_of_acts(scenario),
        *_code_not_run(scenario),
    ]
    return merged(found)


def _of_acts(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """What acts of administrators do that nobody reads or obeys."""
    if scenario.acts:
        # All kinds of acts take long to import, and few scenarios have any.
        from emulator.spec.warnings.changed_options import changed_options  # noqa: PLC0415
        from emulator.spec.warnings.queue_checks import unread_queues  # noqa: PLC0415

        yield from unread_queues(scenario)
        yield from changed_options(scenario)


def _refused_by_acl(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """What brokers and proxies with ACL refuse, and options of ACL without effect."""
    configs: list[BrokerConfig | ProxyConfig] = [
        *(broker.config for broker in scenario.brokers),
        *(proxy.config for proxy in scenario.proxies),
    ]
    if not any(map(_mentions_acl, configs)):
        return
    # These need the codec of every request, which takes as long to load as the rest of a scenario.
    from emulator.spec.warnings.refused_by_accounts import refused_by_accounts  # noqa: PLC0415
    from emulator.spec.warnings.refused_by_auth import refused_by_auth  # noqa: PLC0415
    from emulator.spec.warnings.refused_by_proxies import refused_by_proxies  # noqa: PLC0415

    ips = addresses(scenario)
    yield from refused_by_accounts(scenario, ips)
    yield from refused_by_auth(scenario, ips)
    yield from refused_by_proxies(scenario, ips)


def _mentions_acl(config: BrokerConfig | ProxyConfig) -> bool:
    is_named = config.acl_enable if isinstance(config, BrokerConfig) else config.inner_client_authentication_credentials
    return config.has_auth or bool(is_named)


def _code_not_run(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """Code of the user's own that these checks did not call."""
    for code in () if scenario.code.is_allowed else named_code(scenario):
        yield HarmfulSetting(
            "names-code",
            code.key,
            f"{code.name} is code, which nothing has run yet; a run calls it, and only with {ALLOW_CODE}, with which "
            "check tries it",
        )


def _two_brokers_of_one_id(members: _Group) -> Iterator[HarmfulSetting]:
    for broker_id in dict.fromkeys(broker.broker_id for broker in members):
        twins = tuple(broker for broker in members if broker.broker_id == broker_id)
        if len(twins) > 1:
            yield HarmfulSetting(
                "two-brokers-of-one-id",
                _names(twins),
                f"all are broker {broker_id} of {twins[0].broker_name}: each registration puts its own address in the "
                "place of the other's, so clients and slaves switch between them, and messages end up in several logs",
            )


def _one_name_in_two_clusters(members: _Group) -> Iterator[HarmfulSetting]:
    clusters = tuple(dict.fromkeys(broker.cluster for broker in members))
    if len(clusters) > 1:
        yield HarmfulSetting(
            "one-name-in-two-clusters",
            members[0].broker_name,
            f"the clusters {' and '.join(clusters)} share one group: the nameserver knows it under the cluster that "
            "registered first, and never removes the members of the other when they fall silent",
        )


def _acting_flag_on_some_members(members: _Group) -> Iterator[HarmfulSetting]:
    with_flag = _acting(members)
    if with_flag and len(with_flag) < len(members):
        without = tuple(broker for broker in members if broker not in with_flag)
        yield HarmfulSetting(
            "acting-flag-on-some-members",
            members[0].broker_name,
            f"{_names(with_flag)} set enableSlaveActingMaster, {_names(without)} not: the nameserver keeps one "
            "flag for the group and the last registration decides it, so whether a slave is shown as master depends "
            "on who registered last",
        )


def _total_replicas_of_one(members: _Group) -> Iterator[HarmfulSetting]:
    alone = tuple(broker for broker in _acting(members) if broker.config.total_replicas == 1)
    if alone and len(members) > 1:
        yield HarmfulSetting(
            "total-replicas-1-with-acting-master",
            _names(alone),
            "a broker that believes itself alone never starts isolated: a returning master registers at once, without "
            "taking back what the acting slave was notified meanwhile, and consumer offsets roll back",
        )


def _skip_pre_online(members: _Group) -> Iterator[HarmfulSetting]:
    skipping = tuple(broker for broker in _acting(members) if broker.config.skip_pre_online)
    if skipping and len(members) > 1:
        yield HarmfulSetting(
            "skip-pre-online-with-acting-master",
            _names(skipping),
            "a returning master goes online without the newer consumer offsets of its slaves, and the slaves then copy "
            "its older ones over their own without comparing versions",
        )


def _pulls_beyond_an_acting_slave(members: _Group) -> Iterator[HarmfulSetting]:
    lenient = tuple(
        broker
        for broker in _acting(members)
        if broker.broker_id != MASTER_ID and broker.config.slave_read_enable and not broker.config.offset_check_in_slave
    )
    if lenient:
        yield HarmfulSetting(
            "pulls-beyond-an-acting-slave",
            _names(lenient),
            "consumers that were ahead of the slave when its master died pull from it without a pause, a thousand "
            "times a second and more, until the master is back: it answers PULL_RETRY_IMMEDIATELY to an offset beyond "
            "its end; offsetCheckInSlave = true ends that, and lets some messages be consumed twice",
        )


def _pop_records_without_database(members: _Group) -> Iterator[HarmfulSetting]:
    found = tuple(
        broker
        for broker in members
        if broker.config.pop_consumer_kv_service_enable and not broker.config.pop_consumer_kv_service_init
    )
    if found:
        yield HarmfulSetting(
            "pop-records-without-database",
            _names(found),
            "popConsumerKVServiceEnable without popConsumerKVServiceInit: the records of pops have no database, so "
            "every pop fails",
        )


def _brokers_on_one_address(members: _Group) -> Iterator[HarmfulSetting]:
    by_address: dict[str, list[BrokerSpec]] = {}
    for broker in members:
        by_address.setdefault(broker.address_of or broker.name, []).append(broker)
    for together in by_address.values():
        if len(together) > 1 and _acting(members):
            yield HarmfulSetting(
                "brokers-of-a-group-on-one-address",
                _names(tuple(together)),
                "a returning master reports replication links apart by IP address alone: the link of the first slave "
                "passes for that of every other, so it goes online before all slaves are connected",
            )


def _quorum_of_two(members: _Group) -> Iterator[HarmfulSetting]:
    strict = tuple(b for b in members if b.config.lock_in_strict_mode and b.config.total_replicas == 2)
    if strict:
        yield HarmfulSetting(
            "strict-lock-with-2-replicas",
            _names(strict),
            "more than half of 2 is both: while either broker is away no queue can be locked, and orderly consumption "
            "of the group stops",
        )


def _versions_that_tie(members: _Group) -> Iterator[HarmfulSetting]:
    acting = _acting(members)
    stepping = tuple(
        broker
        for broker in acting
        if max(broker.config.consumer_offset_update_version_step, broker.config.delay_offset_update_version_step) > 1
    )
    if stepping and len(members) >= _MEMBERS_FOR_A_TIE:
        yield HarmfulSetting(
            "version-step-with-several-slaves",
            _names(stepping),
            "after fewer commits than consumerOffsetUpdateVersionStep (or delayOffsetUpdateVersionStep) all versions "
            "are still equal, and a returning master takes over the data of its last slave, however old: consumer "
            "offsets roll back; preset rip32 sets both steps to 1",
        )


def _nameservers_without_acting_master(scenario: Scenario) -> Iterator[HarmfulSetting]:
    acting = _acting(scenario.brokers)
    without = tuple(spec.name for spec in scenario.nameservers if not spec.config.support_acting_master)
    if acting and without:
        groups = ", ".join(dict.fromkeys(broker.broker_name for broker in acting))
        yield HarmfulSetting(
            "nameserver-without-acting-master",
            ", ".join(without),
            f"supportActingMaster is off, but the brokers of {groups} act: when a master is away the nameserver takes "
            "the write permission from the group all the same and shows no one as its master",
        )


def _statefulsets(scenario: Scenario) -> Iterator[HarmfulSetting]:
    for spec in scenario.statefulsets:
        group = next(consumer for consumer in scenario.consumers if consumer.group == spec.group)
        options = spec.config
        topics = [topic for topic in scenario.topics if topic.name in group.topics]
        shared, noun = max((topic.queues * len(topic.brokers) for topic in topics), default=0), "queues"
        by_ordinal = group.config.allocate_message_queue_strategy is AllocateStrategy.ORDINAL
        if group.config.partition_prefix is not None:
            shared, noun = group.config.partition_count, "partitions"
        if by_ordinal and spec.replicas > shared:
            yield HarmfulSetting(
                "more-pods-than-queues",
                spec.name,
                f"{spec.replicas} replicas share {shared} {noun}: the last {spec.replicas - shared} pods get none",
            )
        if by_ordinal and group.config.exclusivity is Exclusivity.NONE:
            yield HarmfulSetting(
                "ordinals-without-exclusivity",
                spec.group,
                "a pod takes its queues before the one that had them knows of the new replicas: each scale has "
                "both process the same messages at once; exclusivity single_active or lease prevents that",
            )
        asks_ready = options.liveness_probe_path is ProbePath.READINESS
        at_once = options.liveness_probe_initial_delay_seconds == 0
        if asks_ready and at_once and options.liveness_probe_failure_threshold == 1:
            yield HarmfulSetting(
                "liveness-probe-asks-a-starting-pod-whether-it-is-ready",
                spec.name,
                "livenessProbePath is the endpoint of readiness, and one failure restarts the pod: the first probe is "
                "before the consumer has started, so it is restarted again and again",
            )
        for kind in ProbeKind:
            period, timeout = (getattr(options, f"{kind}_probe_{subject}_seconds") for subject in ("period", "timeout"))
            if timeout > period:
                yield HarmfulSetting(
                    f"{kind}-probe-longer-than-its-period",
                    spec.name,
                    f"a probe waits up to {timeout} s for an answer and the next one is due after {period} s: a silent "
                    "pod is noticed later than periods and threshold say",
                )


def _leases(scenario: Scenario) -> Iterator[HarmfulSetting]:
    for group in scenario.consumers:
        config = group.config
        takes = config.exclusivity is Exclusivity.LEASE
        if takes and config.lease_duration_ms < 2 * config.lease_renew_interval_ms:
            yield HarmfulSetting(
                "lease-with-one-renewal",
                group.group,
                f"leases of {config.lease_duration_ms} ms are renewed every {config.lease_renew_interval_ms} ms: one "
                "renewal that is late or lost ends them, and another consumer may take the queue",
            )
        if takes and config.lease_duration_ms <= group.consume_ms:
            yield HarmfulSetting(
                "lease-shorter-than-a-message",
                group.group,
                f"a listener takes {group.consume_ms} ms, a lease ends after {config.lease_duration_ms} ms: a consumer "
                "that is suspended or cut off has its message next to the next holder",
            )


def _delays(scenario: Scenario) -> Iterator[HarmfulSetting]:
    served = {topic.name: topic.brokers for topic in scenario.topics}
    for producer in scenario.producers:
        names = {name for topic in producer.topics for name in served.get(topic, ())}
        for broker in (item for item in scenario.brokers if item.broker_name in names and item.broker_id == MASTER_ID):
            config, wants = broker.config, f"{producer.name} sends to {broker.name}"
            levels = parse_delay_level(config.message_delay_level).max_level
            if producer.delay_level > levels:
                yield HarmfulSetting(
                    "delay-level-beyond-the-last",
                    producer.name,
                    f"{wants}, which has {levels} delay levels (messageDelayLevel): level {producer.delay_level} "
                    "counts as the last one",
                )
            if producer.timer_ms and not config.timer_wheel_enable:
                yield HarmfulSetting(
                    "timer-of-a-broker-without-timer",
                    producer.name,
                    f"{wants}, which has no timer (timerWheelEnable): every message is refused",
                )
            elif producer.timer_ms > config.timer_max_delay_sec * 1_000:
                yield HarmfulSetting(
                    "timer-beyond-the-longest-delay",
                    producer.name,
                    f"{wants}, which delays messages for {config.timer_max_delay_sec} s at most (timerMaxDelaySec): "
                    "every message is refused",
                )


def _refused_by_containers(scenario: Scenario) -> Iterator[HarmfulSetting]:
    for name, brokers in scenario.containers().items():
        for broker in brokers:
            identity = BrokerOfContainer(broker.cluster, broker.broker_name, broker.broker_id)
            try:
                read_broker_file(write_broker_file(identity, broker.config), name)
            except RefusedBrokerError as refusal:
                yield HarmfulSetting(
                    "broker-refused-by-its-container",
                    broker.name,
                    f"{refusal}: {name} ends as soon as it reads the options of this broker, and so do all of its "
                    "brokers, of which earlier ones were registered for a moment",
                )


def _too_few_replicas(members: _Group) -> Iterator[HarmfulSetting]:
    for broker in members:
        config = broker.config
        is_sync_master = broker.broker_id == MASTER_ID and config.broker_role is BrokerRole.SYNC_MASTER
        if not is_sync_master or config.is_elected or config.in_sync_replicas <= len(members):
            continue
        if config.enable_slave_acting_master and config.enable_auto_in_sync_replicas:
            continue
        effect = (
            "it refuses every message, since in-sync replicas are not enough"
            if config.enable_slave_acting_master
            else f"it stores every message, and answers FLUSH_SLAVE_TIMEOUT after {config.slave_timeout} ms "
            "(slaveTimeout), when a producer may have given up"
        )
        yield HarmfulSetting(
            "more-in-sync-replicas-than-brokers",
            broker.name,
            f"a SYNC_MASTER with inSyncReplicas = {config.in_sync_replicas} in a group of {len(members)}: {effect}",
        )


def _acting(brokers: _Group) -> _Group:
    return tuple(broker for broker in brokers if broker.config.enable_slave_acting_master)


def _names(brokers: _Group) -> str:
    return ", ".join(broker.name for broker in brokers)


_OF_A_GROUP: tuple[Callable[[_Group], Iterator[HarmfulSetting]], ...] = (
    _two_brokers_of_one_id,
    _one_name_in_two_clusters,
    _acting_flag_on_some_members,
    _total_replicas_of_one,
    _skip_pre_online,
    _pulls_beyond_an_acting_slave,
    _pop_records_without_database,
    _brokers_on_one_address,
    _quorum_of_two,
    _versions_that_tie,
    _too_few_replicas,
)

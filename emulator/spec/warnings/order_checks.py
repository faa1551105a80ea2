"""Warnings about the order of planned restarts: an upgrade that starts at the wrong end, and strategies that mix."""

from collections.abc import Iterator, Mapping

from emulator.spec.model.scenario import BrokerSpec, Scenario
from emulator.spec.refusals.changes import RestartChange, changes
from emulator.spec.warnings.harmful_setting import HarmfulSetting
from nodes.allocation.strategies import strategy_name
from nodes.config import BrokerConfig, Config, ConsumerConfig, NameserverConfig
from nodes.protocol.model import MASTER_ID

_OLD = "of an older release cannot answer: the group has no master until the slave is upgraded"
_IDLE = "does not act yet: the nameserver keeps one flag for the group, and the last registration decides it"


def harmful_orders(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """All warnings about the planned restarts of a scenario."""
    in_turn = changes(scenario)
    if in_turn:
        yield from _brokers_before_nameservers(scenario, in_turn)
        yield from _masters_before_slaves(scenario, in_turn)
        yield from _mixed_strategies(scenario, in_turn)


def _brokers_before_nameservers(scenario: Scenario, in_turn: tuple[RestartChange, ...]) -> Iterator[HarmfulSetting]:
    nameservers: dict[str, Config] = {spec.name: spec.config for spec in scenario.nameservers}
    early: dict[str, BrokerConfig] = {}
    for change in in_turn:
        if isinstance(change.after, NameserverConfig):
            nameservers[change.node] = change.after
        after = change.after
        if (
            isinstance(after, BrokerConfig)
            and _begins_to_act(change)
            and not all(map(_knows_groups, nameservers.values()))
        ):
            early[change.node] = after
    waiting = [node for node, config in early.items() if _needs_answers(config)]
    asking = [node for node in early if node not in waiting]
    if waiting:
        yield HarmfulSetting(
            "brokers-upgraded-before-nameservers",
            ", ".join(waiting),
            "with compatibleWithOldNameSrv = false a broker asks a nameserver for the members of its group before it "
            "registers, and an older one never answers: no one finds its queues until the nameserver is upgraded",
        )
    if asking:
        yield HarmfulSetting(
            "brokers-upgraded-before-nameservers",
            ", ".join(asking),
            "an older nameserver presents no acting master, misses a silent broker after 120 s only, and notifies "
            "no one when the lowest id of a group changes, so until it is upgraded a slave that acts is of little use",
        )


def _begins_to_act(change: RestartChange) -> bool:
    before, after = change.before, change.after
    if not (isinstance(before, BrokerConfig) and isinstance(after, BrokerConfig)):
        return False
    return after.enable_slave_acting_master and not before.enable_slave_acting_master


def _knows_groups(config: Config) -> bool:
    return isinstance(config, NameserverConfig) and config.knows_member_groups and config.support_acting_master


def _needs_answers(config: BrokerConfig) -> bool:
    return config.total_replicas > 1 and not (config.compatible_with_old_name_srv or config.skip_pre_online)


def _masters_before_slaves(scenario: Scenario, in_turn: tuple[RestartChange, ...]) -> Iterator[HarmfulSetting]:
    brokers = {spec.name: spec for spec in scenario.brokers}
    configs = {spec.name: spec.config for spec in scenario.brokers}
    for change in in_turn:
        if not isinstance(change.after, BrokerConfig):
            continue
        configs[change.node] = change.after
        behind = _slaves_behind(brokers[change.node], brokers, configs) if _begins_to_act(change) else []
        if behind and change.after.total_replicas > 1 and not change.after.skip_pre_online:
            old = [name for name in behind if not configs[name].timer_wheel_enable]
            yield HarmfulSetting(
                "master-upgraded-before-its-slaves",
                change.node,
                f"it takes metadata back from its slaves before it registers, and {', '.join(behind)} "
                + (_OLD if old else _IDLE),
            )


def _slaves_behind(
    master: BrokerSpec, brokers: Mapping[str, BrokerSpec], configs: Mapping[str, BrokerConfig]
) -> list[str]:
    """The slaves of a master that do not act; none for a slave."""
    if master.broker_id != MASTER_ID:
        return []
    group = (
        broker
        for broker in brokers.values()
        if broker.broker_name == master.broker_name and broker.broker_id != MASTER_ID
    )
    return [item.name for item in group if not configs[item.name].enable_slave_acting_master]


def _mixed_strategies(scenario: Scenario, in_turn: tuple[RestartChange, ...]) -> Iterator[HarmfulSetting]:
    for group in scenario.consumers:
        members = group.names or scenario.members_of(group.share_process_with or "")
        strategies = dict.fromkeys(members, strategy_name(group.config))
        mixed_ms, since_ms = 0, None
        names: dict[str, None] = {}
        for change in (item for item in in_turn if item.group == group.group and item.node in strategies):
            assert isinstance(change.after, ConsumerConfig)
            strategies[change.node] = strategy_name(change.after)
            differ = len(dict.fromkeys(strategies.values())) > 1
            if differ:
                names |= dict.fromkeys(strategies.values())
                since_ms = change.at_ms if since_ms is None else since_ms
            elif since_ms is not None:
                mixed_ms, since_ms = max(mixed_ms, change.at_ms - since_ms), None
        if since_ms is not None:
            mixed_ms = max(mixed_ms, scenario.run_for_ms - since_ms)
        if mixed_ms > group.config.rebalance_wait_interval_ms:
            yield HarmfulSetting(
                "strategies-mixed-for-long",
                group.group,
                f"for {mixed_ms / 1_000:g} s its members allocate by {' and by '.join(names)}, longer than any "
                "rebalance takes: all that time some queues have two owners and others none; restart the members at "
                "once, or give the new strategy a new group",
            )

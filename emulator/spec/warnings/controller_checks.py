"""Warnings about controller mode: options with which messages are lost, or a group stays without a master."""

from collections.abc import Iterator

from emulator.spec.model.scenario import BrokerSpec, ControllerSpec, Scenario
from emulator.spec.warnings.harmful_setting import HarmfulSetting

_Controllers = tuple[ControllerSpec, ...]

_RARE_MS = 60_000
"""A death that no leader heard of is looked for after this time at the latest, or users notice it first."""
_HEARTBEATS_MIN = 2
"""A single heartbeat that is late must not cost a master."""


def harmful_controllers(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """All warnings about controllers, and then about each broker group whose master they elect."""
    controllers = scenario.all_controllers()
    if not controllers:
        return
    yield from _even_number(controllers)
    yield from _unclean_elections(controllers)
    yield from _rare_scans(controllers)
    groups: dict[str, list[BrokerSpec]] = {}
    for broker in scenario.brokers:
        if broker.config.enable_controller_mode:
            groups.setdefault(broker.broker_name, []).append(broker)
    for members in groups.values():
        yield from _expiring_heartbeats(members)
        yield from _acknowledged_alone(members)


def _even_number(controllers: _Controllers) -> Iterator[HarmfulSetting]:
    count = len(controllers)
    if count % 2 == 0:
        yield HarmfulSetting(
            "even-number-of-controllers",
            ", ".join(spec.name for spec in controllers),
            f"{count} controllers go on without {(count - 1) // 2} of them, as {count - 1} do: the last one only adds "
            "a machine whose death may cost the majority",
        )


def _unclean_elections(controllers: _Controllers) -> Iterator[HarmfulSetting]:
    unclean = [spec.name for spec in controllers if spec.config.enable_elect_unclean_master]
    if unclean:
        yield HarmfulSetting(
            "unclean-election",
            ", ".join(unclean),
            "enableElectUncleanMaster lets a replica that was behind become master: what it lacks is lost, consumers "
            "have offsets beyond the end of its log, and new messages below them are never consumed",
        )


def _rare_scans(controllers: _Controllers) -> Iterator[HarmfulSetting]:
    rare = [spec for spec in controllers if spec.config.scan_inactive_master_interval > _RARE_MS]
    if rare:
        longest_s = max(spec.config.scan_inactive_master_interval for spec in rare) // 1_000
        yield HarmfulSetting(
            "dead-masters-are-rarely-looked-for",
            ", ".join(spec.name for spec in rare),
            f"scanInactiveMasterInterval is {longest_s} s: when a master dies while no controller leads, its group has "
            "no master for that long, or until the old one returns",
        )


def _expiring_heartbeats(members: list[BrokerSpec]) -> Iterator[HarmfulSetting]:
    hasty = [
        broker
        for broker in members
        if broker.config.controller_heart_beat_timeout_mills < _HEARTBEATS_MIN * broker.config.broker_heartbeat_interval
    ]
    if hasty:
        yield HarmfulSetting(
            "heartbeats-to-controllers-expire",
            _names(hasty),
            "controllerHeartBeatTimeoutMills is shorter than two brokerHeartbeatInterval: one late heartbeat makes "
            "controllers replace a master that serves, or refuse a slave (BROKER_NOT_ALIVE)",
        )


def _acknowledged_alone(members: list[BrokerSpec]) -> Iterator[HarmfulSetting]:
    alone = [
        broker
        for broker in members
        if not broker.config.all_ack_in_sync_state_set and broker.config.in_sync_replicas == 1
    ]
    if alone and len(members) > 1:
        counted = any(broker.config.min_in_sync_replicas > 1 for broker in alone)
        advice = "; minInSyncReplicas does not prevent it, as such a master counts the members that it had" * counted
        yield HarmfulSetting(
            "acknowledged-by-the-master-alone",
            _names(alone),
            "a message needs no slave before its sender is answered SEND_OK: a master that is replaced while it is "
            f"cut off takes messages for as long, and they are lost when it returns{advice}; "
            "allAckInSyncStateSet = true (preset controller_strict) or inSyncReplicas = 2 prevents it",
        )


def _names(brokers: list[BrokerSpec]) -> str:
    return ", ".join(broker.name for broker in brokers)

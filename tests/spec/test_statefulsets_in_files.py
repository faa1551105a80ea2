"""`[[statefulset]]` in scenario files."""

import pytest

from emulator.spec import SpecError, from_dict, to_dict
from emulator.spec.warnings.harmful_settings import check
from support.every_case import each_case
from support.mistakes import only_mistake

WHOLE = {
    "scenario": {"name": "sts", "run_for_s": 10},
    "broker": [{"name": "broker-a"}],
    "topic": [{"name": "orders", "queues": 10}],
    "consumer": [
        {"group": "billing", "topics": ["orders"], "options": {"allocateMessageQueueStrategy": "ORDINAL"}},
    ],
    "statefulset": [{"group": "billing", "replicas": 4, "options": {"terminationGracePeriodSeconds": 5}}],
}


def changed(**tables):
    return {**WHOLE, **tables}


def consumers(**keys):
    return changed(consumer=[{**WHOLE["consumer"][0], **keys}])


def statefulsets(*several, **keys):
    return changed(statefulset=[{**WHOLE["statefulset"][0], **keys}, *several])


def leasing(**options):
    ordinal = {"allocateMessageQueueStrategy": "ORDINAL", "exclusivity": "lease"}
    return consumers(options={**ordinal, **options})


def of_partitions(replicas):
    names = [f"orders-P{number}" for number in range(4)]
    group = leasing(partitionPrefix="orders-P", partitionCount=4)["consumer"][0]
    statefulset = [{"group": "billing", "replicas": replicas}]
    topics = [{"name": name, "queues": 1} for name in names]
    return changed(topic=topics, consumer=[{**group, "topics": names}], statefulset=statefulset)


def test_the_consumers_of_a_statefulset_are_its_pods_and_the_api_server_is_a_node():
    scenario = from_dict(WHOLE)

    assert scenario.consumers[0].names == ("consumer-0", "consumer-1", "consumer-2", "consumer-3")
    assert scenario.node_names()[-1] == "kubernetes"
    assert from_dict(to_dict(scenario)) == scenario


def test_a_statefulset_may_begin_without_pods():
    assert from_dict(statefulsets(replicas=0)).consumers[0].names == ()


def test_a_fault_may_hit_the_api_server_and_a_pod_that_scaling_adds():
    faults = [{"do": "cut kubernetes consumer-17", "at_s": 1}, {"do": "scale billing 20", "at_s": 2}]

    assert len(from_dict(changed(fault=faults)).faults.faults) == 2


@each_case(
    ("tables", "reported"),
    [
        (statefulsets(replicas=-1), "statefulset[0].replicas: expected a whole number >= 0, not -1"),
        (statefulsets(replicas=2_000), "statefulset[0].replicas: expected a whole number >= 0 and at most 1000"),
        (statefulsets(group="absent"), 'statefulset[0].group: unknown group "absent"'),
        (
            statefulsets({"group": "billing", "name": "other"}),
            "statefulset[1].group: expected a group of its own, billing has one already",
        ),
        (
            statefulsets(options={"livenessProbePeriodSeconds": 0}),
            "statefulset[0].options.livenessProbePeriodSeconds: expected a whole number of seconds >= 1, not 0",
        ),
        (
            statefulsets(options={"livenessProbePath": "/healthz"}),
            "statefulset[0].options.livenessProbePath: expected one of /health/liveness, /health/readiness",
        ),
        (statefulsets(api="broker-a"), 'statefulset[0].api: expected a name of its own, "broker-a" is already'),
        (
            consumers(options={"exclusivity": "zookeeper"}),
            "consumer[0].options.exclusivity: expected one of none, single_active, lease",
        ),
        (
            consumers(options={"exclusivity": "lease", "leaseDurationMs": 500, "leaseRenewIntervalMs": 500}),
            "consumer[0].options.leaseDurationMs: expected more than leaseRenewIntervalMs, 500 ms",
        ),
        (
            leasing(lockService="redlock", fencing=True),
            "consumer[0].options.fencing: expected false with redlock: its nodes have no number that grows",
        ),
        (
            leasing(lockService="blob", leaseDurationMs=10_000),
            "consumer[0].options.leaseDurationMs: expected 15000 to 60000 ms with blob",
        ),
        (
            leasing(exclusivity="none", fencing=True),
            'consumer[0].options.fencing: expected false without exclusivity = "lease"',
        ),
        (
            leasing(lockService="etcd"),
            "consumer[0].options.lockService: expected one of lease, dynamodb, blob, zookeeper, redlock, postgresql",
        ),
        (
            leasing(partitionPrefix="orders-P", partitionCount=3),
            "consumer[0].topics: expected each partition, orders-P0 is missing",
        ),
        (
            leasing(clientRebalance=False),
            "consumer[0].options.clientRebalance: expected true with ORDINAL",
        ),
        (
            leasing(messageModel="BROADCASTING", exclusivity="none"),
            "consumer[0].options.messageModel: expected CLUSTERING with ORDINAL",
        ),
        (
            consumers(options={"exclusivity": "lease", "consumeOrderly": True}),
            "exclusivity: expected none with consumeOrderly",
        ),
        (
            changed(
                statefulset=[],
                consumer=[
                    {"group": "g", "topics": ["orders"], "options": {"exclusivity": "lease"}},
                    {"group": "h", "topics": ["orders"], "share_process_with": "g"},
                ],
            ),
            "consumer[0].options.exclusivity: expected none in a process that consumes for several groups",
        ),
        (
            {
                **consumers(),
                "consumer": [*WHOLE["consumer"], {"group": "x", "topics": ["orders"]}],
                "statefulset": [
                    {"group": "billing", "scaler": "s"},
                    {"group": "x", "name": "x", "api": "other", "scaler": "s"},
                ],
            },
            "statefulset[1].scaler: expected a scaler of its own: s asks kubernetes",
        ),
        (consumers(count=3), "consumer[0].count: expected none: the StatefulSet of billing has replicas"),
        (consumers(names=["a"]), "consumer[0].names: expected the names of the pods of consumer, which begin with"),
        (consumers(lite_pull=True), "consumer[0].lite_pull: expected false in a StatefulSet"),
        (consumers(one_address=True), "consumer[0].one_address: expected false in a StatefulSet"),
        (
            changed(
                consumer=[*WHOLE["consumer"], {"group": "x", "topics": ["orders"], "share_process_with": "billing"}]
            ),
            "consumer[0].share_process_with: expected none in a StatefulSet",
        ),
        (
            changed(consumer=[*WHOLE["consumer"], {"group": "x", "topics": ["orders"], "names": ["consumer-7"]}]),
            "statefulset[0].name: expected a name whose pods are no other nodes: consumer-7 is one",
        ),
        (
            changed(statefulset=[]),
            "consumer[0].options.allocateMessageQueueStrategy: expected a [[statefulset]] of billing with ORDINAL",
        ),
    ],
)
def test_a_statefulset_that_does_not_fit_is_refused_in_one_line(tables, reported):
    with pytest.raises(SpecError) as caught:
        from_dict(tables)

    assert reported in only_mistake(caught.value)
    assert "\n" not in only_mistake(caught.value)


def test_a_group_that_takes_leases_brings_the_node_of_the_lock_service():
    assert from_dict(leasing()).node_names()[-2:] == ("kubernetes", "leases")


@each_case(
    ("tables", "names"),
    [
        (WHOLE, ["ordinals-without-exclusivity"]),
        (leasing(), []),
        (leasing(leaseDurationMs=9_999), ["lease-with-one-renewal"]),
        ({**leasing(), "statefulset": [{"group": "billing", "replicas": 11}]}, ["more-pods-than-queues"]),
        (of_partitions(4), []),
        (of_partitions(5), ["more-pods-than-queues"]),
        (
            {**leasing(), "statefulset": [{"group": "billing", "options": {"livenessProbeFailureThreshold": 1}}]},
            ["liveness-probe-asks-a-starting-pod-whether-it-is-ready"],
        ),
        (
            {**leasing(), "statefulset": [{"group": "billing", "options": {"readinessProbeTimeoutSeconds": 11}}]},
            ["readiness-probe-longer-than-its-period"],
        ),
        (
            changed(consumer=[{**leasing()["consumer"][0], "consume_ms": 15_000}]),
            ["lease-shorter-than-a-message"],
        ),
    ],
)
def test_settings_that_do_harm_are_warned_of(tables, names):
    assert [setting.name for setting in check(from_dict(tables))] == names

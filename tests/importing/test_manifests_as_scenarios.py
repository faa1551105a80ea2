"""Manifests of Kubernetes, of RocketMQ's operator and of docker-compose become scenarios."""

import pytest

from emulator.importing.files import ConfigurationFile, read_configuration, verdicts_of_cluster
from emulator.importing.scenario_text import scenario_text
from emulator.importing.settings import ConfigurationError
from emulator.importing.verdicts import Fate
from emulator.spec import loads
from emulator.spec.rocketmq.file_kinds import FileKind
from nodes.client.producer.keys import MessageKeys
from nodes.client.tables.queue_selectors import KeyHash
from nodes.config import Exclusivity

CHART = """
# Source: rocketmq/templates/broker/configmap.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: broker-config
data:
  my-broker-0: |
    brokerName=my-broker-0
    fileReservedTime=24
    enableIncrementalTopicCreation=true
  my-broker-1: |
    brokerName=my-broker-1
    fileReservedTime=36
---
apiVersion: v1
kind: Service
metadata:
  name: my-broker
spec:
  ports: [{ port: 10911 }]
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: my-broker
spec:
  replicas: 2
  template:
    spec:
      volumes:
        - name: conf
          configMap:
            name: broker-config
      containers:
        - name: broker
          image: apache/rocketmq:5.3.3
          command: ["/bin/sh"]
          args: ["-c", "./mqbroker -c /home/rocketmq/conf/$(POD_NAME)"]
          env:
            - name: POD_NAME
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            - name: NAMESRV_ADDR
              value: ns-0.ns:9876;ns-1.ns:9876
            - name: ROCKETMQ_SECRET_KEY
              value: canary
          volumeMounts:
            - name: conf
              mountPath: /home/rocketmq/conf
        - name: exporter
          image: apache/rocketmq-exporter
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: my-nameserver
spec:
  replicas: 2
  template:
    spec:
      containers:
        - name: nameserver
          image: apache/rocketmq:5.3.3
          command: ["sh", "mqnamesrv"]
"""
"""In the shape of a chart with a file for each pod, as `helm template` prints it."""
CHART_WITH_VARIABLES = """
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: ConfigMap
    metadata: { name: broker-config }
    data:
      broker-common.conf: |

        brokerRole=ASYNC_MASTER
        deleteWhen=04
  - apiVersion: apps/v1
    kind: StatefulSet
    metadata: { name: rocketmq-broker-0-master }
    spec: &set
      replicas: 1
      template: &template
        spec: &pod
          containers:
            - &container
              name: broker
              image: "apacherocketmq/rocketmq-broker:4.5.0-alpine-operator-0.3.0"
              env:
                - { name: BROKER_ID, value: "0" }
                - { name: BROKER_NAME, value: broker-0 }
                - { name: BROKER_CLUSTER_NAME, value: production }
              volumeMounts:
                - { name: config, mountPath: /root/conf/broker-common.conf, subPath: broker-common.conf }
          volumes:
            - name: config
              configMap: { name: broker-config }
  - apiVersion: apps/v1
    kind: StatefulSet
    metadata: { name: rocketmq-broker-0-replica-1 }
    spec:
      <<: *set
      template:
        spec:
          <<: *pod
          containers:
            - <<: *container
              env:
                - { name: BROKER_ID, value: "1" }
                - { name: BROKER_NAME, value: broker-0 }
                - { name: BROKER_CLUSTER_NAME, value: production }
"""
"""In the shape of a chart that names brokers by environment variables, with anchors and merges."""
OPERATOR = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: broker-config
data:
  BROKER_MEM: " -Xms2g "
  broker-common.conf: |
    brokerName=left-out
    deleteWhen=04
    flushDiskType=SYNC_FLUSH
---
apiVersion: rocketmq.apache.org/v1alpha1
kind: NameService
metadata:
  name: name-service
spec:
  size: 2
---
apiVersion: rocketmq.apache.org/v1alpha1
kind: Broker
metadata:
  name: broker
spec:
  size: 2
  replicaPerGroup: 1
  nameServers: ""
  replicationMode: SYNC
  volumes:
    - name: broker-config
      configMap:
        name: broker-config
        items: [{ key: broker-common.conf, path: broker-common.conf }]
---
apiVersion: rocketmq.apache.org/v1alpha1
kind: Console
metadata:
  name: console
"""
COMPOSE = """
services:
  namesrv:
    image: apache/rocketmq:5.3.3
    command: sh mqnamesrv
  broker:
    image: apache/rocketmq:5.3.3
    container_name: rmqbroker
    environment:
      - NAMESRV_ADDR=${ADDRESS:-namesrv:9876}
    volumes:
      - ./conf/broker.conf:/home/rocketmq/conf/broker.conf:ro
    command: sh mqbroker -c /home/rocketmq/conf/broker.conf
  other:
    image: apache/rocketmq:5.3.3
    environment:
      NAMESRV_ADDR: namesrv:9876
    volumes:
      - type: bind
        source: ./other
        target: /conf
    command: ["sh", "mqbroker", "-n", "namesrv:9876", "-c", "/conf/b.conf"]
  dashboard:
    image: apacherocketmq/rocketmq-dashboard
"""


def imported(text, files=None):
    read = [ConfigurationFile("cluster.yaml", text.encode())]
    return read_configuration(read, None, lambda _source, path: (files or {}).get(path))


def scenario(text, files=None):
    return loads(scenario_text(imported(text, files), "imported", ["cluster.yaml"]), "imported.toml")


def places(text, files=None):
    """Mapping option -> where it was found."""
    return {item.setting.name: item.setting.place for item in verdicts_of_cluster(imported(text, files))}


def test_each_pod_has_the_file_that_is_named_after_it():
    made = scenario(CHART)

    assert [(broker.broker_name, broker.config.file_reserved_time) for broker in made.brokers] == [
        ("my-broker-0", 24),
        ("my-broker-1", 36),
    ]
    assert [nameserver.name for nameserver in made.nameservers] == ["ns-1", "ns-2"]


def test_a_place_in_a_config_map_is_a_line_of_the_manifest():
    cluster = imported(CHART)
    verdicts = {item.setting.name: item for item in cluster.of(FileKind.BROKER)[0].verdicts}

    assert CHART.splitlines()[9] == "    fileReservedTime=24"
    assert verdicts["fileReservedTime"].setting.place == "cluster.yaml:10"
    assert verdicts["enableIncrementalTopicCreation"].fate is Fate.UNKNOWN


def test_variables_of_the_image_name_brokers_and_make_slaves():
    made = scenario(CHART_WITH_VARIABLES)

    assert [(broker.name, broker.cluster) for broker in made.brokers] == [
        ("broker-0", "production"),
        ("broker-0-s1", "production"),
    ]


def test_an_operators_resources_become_groups_with_slaves():
    made = scenario(OPERATOR)

    assert [broker.name for broker in made.brokers] == ["broker-0", "broker-0-s1", "broker-1", "broker-1-s1"]
    assert [broker.config.broker_role for broker in made.brokers] == ["SYNC_MASTER", "ASYNC_MASTER"] * 2
    assert len(made.nameservers) == 2


def test_services_of_compose_have_the_files_that_they_mount():
    files = {"conf/broker.conf": b"brokerName=a\n", "other/b.conf": b"brokerName=b\nfileReservedTime=1\n"}
    made = scenario(COMPOSE, files)

    assert [(broker.broker_name, broker.config.file_reserved_time) for broker in made.brokers] == [("a", 72), ("b", 1)]
    assert places(COMPOSE, files)["fileReservedTime"] == "other/b.conf:2"


def test_a_broker_without_a_name_has_that_of_its_host():
    made = scenario(COMPOSE)

    assert [broker.broker_name for broker in made.brokers] == ["rmqbroker", "other"]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("sh mqbroker -n namesrv:9876 --enable-proxy -pc /conf/p.json -c /conf/b.conf", "b"),
        ("['bash', '-c', 'cd bin && ./mqbroker -c /conf/b.conf']", "b"),
        ("sh -c 'exec ./mqbroker -c /conf/b.conf;'", "b"),
        ("sh mqbroker", "other"),
        ("sh mqbroker -c", "other"),
        ("sh 'mqbroker -c", "other"),
    ],
)
def test_the_file_behind_the_option_of_the_command_is_read(command, name):
    text = COMPOSE.replace('["sh", "mqbroker", "-n", "namesrv:9876", "-c", "/conf/b.conf"]', command)
    made = scenario(text, {"other/b.conf": b"brokerName=b\n", "other/p.json": b"{}"})

    assert made.brokers[1].broker_name == name


def test_a_proxy_of_a_compose_file_has_its_json_file():
    proxy = """
services:
  broker: { image: apache/rocketmq, command: sh mqbroker }
  proxy:
    image: apache/rocketmq
    command: sh mqproxy -pc /conf/rmq-proxy.json
    volumes: ["./conf:/conf"]
"""
    assert places(proxy, {"conf/rmq-proxy.json": b'{\n"proxyMode": "cluster"\n}'}) == {
        "proxyMode": "conf/rmq-proxy.json:2"
    }


def test_two_pods_that_would_register_as_one_broker_are_one_line():
    text = CHART.replace("$(POD_NAME)", "my-broker-0")

    with pytest.raises(ConfigurationError, match=r"broker my-broker-0 with id 0 is there twice"):
        imported(text)


def test_a_size_that_is_no_number_is_one_line():
    with pytest.raises(ConfigurationError) as caught:
        imported(OPERATOR.replace("size: 2", "size: two"))

    assert str(caught.value) == "cluster.yaml:18: expected a whole number, not 'two'"


@pytest.mark.parametrize("replicas", ["2001", "999999999"])
def test_more_pods_than_a_scenario_may_have_are_one_line(replicas):
    with pytest.raises(ConfigurationError) as caught:
        imported(CHART.replace("replicas: 2", f"replicas: {replicas}"))

    line = CHART.splitlines().index("  replicas: 2") + 1
    assert str(caught.value) == f"cluster.yaml:{line}: expected at most 2000 pods"


def test_a_resource_without_pods_is_no_node():
    assert imported(CHART.replace("replicas: 2", "replicas: 0", 1)).of(FileKind.BROKER) == ()


def test_nothing_of_an_unknown_variable_is_copied():
    cluster = imported(CHART)

    assert "canary" not in repr(cluster) + scenario_text(cluster, "imported", ["cluster.yaml"])


CONSUMERS = """
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: consumer
spec:
  replicas: 3
  podManagementPolicy: {policy}
  updateStrategy:
    type: RollingUpdate
    rollingUpdate: {{ partition: 2 }}
  template:
    spec:
      terminationGracePeriodSeconds: 10
      containers:
        - name: consumer
          image: consumer:latest
          livenessProbe: {{ httpGet: {{ path: /health/readiness, port: http }}, periodSeconds: 5 }}
          readinessProbe: {{ httpGet: {{ path: /ready, port: http }} }}
          env:
            - {{ name: PartitionCount, value: "{count}" }}
            - {{ name: PartitionQueuePrefix, value: OrderEvents }}
"""


def text_of_pods(policy="Parallel", count="3"):
    file = ConfigurationFile("statefulset.yaml", CONSUMERS.format(policy=policy, count=count).encode())
    return scenario_text(read_configuration([file], None, lambda *_: None), "imported", ["statefulset.yaml"])


def test_a_statefulset_that_starts_no_node_of_rocketmq_has_consumers():
    text = text_of_pods()
    scenario = loads(text, "imported.toml")

    (spec,) = scenario.statefulsets
    assert (spec.name, spec.replicas, spec.config.partition, str(spec.config.pod_management_policy)) == (
        *("consumer", 3, 2),
        "Parallel",
    )
    assert (spec.config.liveness_probe_period_seconds, spec.config.termination_grace_period_seconds) == (5, 10)
    (group,) = scenario.consumers
    assert group.group == "consumer"
    assert "partition = 2  # statefulset.yaml:11" in text


def test_partitions_are_topics_of_one_queue_with_a_producer_by_key_and_one_consumer_at_a_time():
    scenario = loads(text_of_pods(), "imported.toml")

    names = ("OrderEvents0", "OrderEvents1", "OrderEvents2")
    assert [(topic.name, topic.queues) for topic in scenario.topics] == [(name, 1) for name in names]
    (group,) = scenario.consumers
    assert (group.topics, group.config.partition_count) == (names, 3)
    assert group.config.exclusivity is Exclusivity.SINGLE_ACTIVE
    (producer,) = scenario.producers
    assert (producer.name, producer.topics) == ("producer-1", names)
    assert (producer.partitions.by, producer.keys) == (KeyHash.MD5, MessageKeys(1_000))


SENDERS = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: shop }}
spec:
  replicas: 2
  template:
    spec:
      containers:
        - name: producer
          image: producer:latest
          env:
            - {{ name: PartitionCount, value: "{count}" }}
            - {{ name: PartitionQueuePrefix, value: OrderEvents }}
"""


@pytest.mark.parametrize(("count", "name"), [("3", "shop"), ("4", "producer-1")])
def test_a_deployment_with_the_same_partitions_names_the_producer(count, name):
    first = CONSUMERS.format(policy="Parallel", count="3")
    second = first.replace("name: consumer\nspec", "name: billing\nspec")
    file = ConfigurationFile("chart.yaml", f"{first}---{second}{SENDERS.format(count=count)}".encode())
    text = scenario_text(read_configuration([file], None, lambda *_: None), "imported", ["chart.yaml"])

    scenario = loads(text, "imported.toml")
    assert [group.group for group in scenario.consumers] == ["consumer", "billing"]
    assert [producer.name for producer in scenario.producers] == [name]  # once for both groups
    assert ("# Deployment shop, chart.yaml:" in text) is (name == "shop")


def test_a_statefulset_without_partitions_has_the_queues_of_one_topic():
    content = CONSUMERS.format(policy="Parallel", count="3").partition("          env:")[0]
    file = ConfigurationFile("statefulset.yaml", content.encode())
    scenario = loads(scenario_text(read_configuration([file], None, lambda *_: None), "imported", ["x"]), "x")

    assert [topic.name for topic in scenario.topics] == ["orders"]
    assert (scenario.producers[0].topics, scenario.producers[0].keys) == (("orders",), None)
    assert scenario.consumers[0].config.exclusivity is Exclusivity.NONE


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"policy": "Sorted"}, "spec.podManagementPolicy: expected one of OrderedReady, Parallel, not Sorted"),
        ({"count": "0"}, "PartitionCount: expected 1 to 1000, not 0"),
    ],
)
def test_a_value_that_kubernetes_or_the_design_does_not_know_is_one_line(given, problem):
    with pytest.raises(ConfigurationError, match=problem):
        text_of_pods(**given)


def test_in_a_chart_with_brokers_other_statefulsets_are_no_consumers():
    files = [
        ConfigurationFile("chart.yaml", CHART.encode()),
        ConfigurationFile("statefulset.yaml", CONSUMERS.format(policy="Parallel", count="3").encode()),
    ]

    assert read_configuration(files, None, lambda *_: None).statefulsets == ()

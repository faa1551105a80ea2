"""Nothing that a file says is dropped silently: it is taken, or a line says that it is not, and what that changes."""

import pytest

from emulator.importing.files import ConfigurationFile, read_configuration
from emulator.importing.not_taken import KEYS_OF_CONTAINERS, KEYS_OF_PODS, KEYS_OF_SERVICES
from emulator.importing.scenario_text import scenario_text
from emulator.importing.settings import ConfigurationError
from emulator.spec import loads
from emulator.spec.rocketmq.file_kinds import FileKind
from support.every_case import each_case

BROKER, NAMESRV, PROXY, CONTROLLER = FileKind.BROKER, FileKind.NAMESRV, FileKind.PROXY, FileKind.CONTROLLER
FILES = {
    "conf/broker.conf": b"brokerName = of-file\n",
    "conf/rmq-proxy.json": b'{"rocketMQClusterName": "shop"}\n',
}


def of_service(text, files=FILES):
    service = f"services:\n  node:\n    image: apache/rocketmq:5.3.3\n{text}"
    return read_configuration(
        [ConfigurationFile("compose.yaml", service.encode())], None, lambda _, path: files.get(path)
    )


def started(command, volumes="./conf:/opt/conf"):
    return of_service(f"    command: {command}\n    volumes: ['{volumes}']\n")


def notes(cluster):
    return [note for node in cluster.nodes for note in node.notes if not note.startswith("brokerName ")]


@pytest.mark.parametrize(
    ("command", "kinds", "name"),
    [
        ("sh mqbroker --enable-proxy -c /opt/conf/broker.conf", (BROKER, PROXY), "of-file"),
        ("sh mqbroker -c /opt/conf/broker.conf --enable-proxy &", (BROKER, PROXY), "of-file"),
        ("sh mqproxy -pm local -bc /opt/conf/broker.conf", (BROKER, PROXY), "of-file"),
        ("sh mqproxy --proxyMode LOCAL", (BROKER, PROXY), "node"),
        ("sh mqproxy -pm cluster -n ns:9876", (PROXY,), None),
        ("sh mqbroker -c /opt/conf/broker.conf", (BROKER,), "of-file"),
        ("sh mqbroker -c conf/broker.conf", (BROKER,), "of-file"),
    ],
)
def test_a_broker_with_a_proxy_in_its_process_is_both(command, kinds, name):
    cluster = started(command)

    assert tuple(node.kind for node in cluster.nodes) == kinds
    assert [node.table["name"] for node in cluster.of(BROKER)] == ([name] if name else [])
    in_process = [note for note in notes(cluster) if note.startswith("it runs in the process of the ")]
    assert len(in_process) == len(kinds) - 1
    loads(scenario_text(cluster, "imported", ["compose.yaml"]), "imported.toml")


@pytest.mark.parametrize("target", ["/home/rocketmq/rocketmq-5.3.3/conf", "/conf"])
@pytest.mark.parametrize("command", ["sh mqproxy", "sh mqbroker --enable-proxy"])
def test_a_proxy_reads_the_file_at_its_usual_place(command, target):
    cluster = started(command, f"./conf:{target}")
    one_file = started(command, f"./conf/rmq-proxy.json:{target}/rmq-proxy.json")

    for made in (cluster, one_file):
        (proxy,) = made.of(PROXY)
        assert proxy.options["rocketMQClusterName"] == "shop"


@pytest.mark.parametrize(
    ("command", "unread"),
    [
        ("sh mqnamesrv -c /a -n b:9876 -x", ["-x"]),
        ("sh mqnamesrv -p", ["-p"]),
        ("sh mqbroker -c /a autoCreateTopicEnable=true &", ["autoCreateTopicEnable=true"]),
        ("sh mqbroker -pc /a", ["-pc", "/a"]),
        ("sh mqbroker -m > log 2>&1", ["-m"]),
        ("sh mqcontroller -c /a -h", ["-h"]),
        ("sh mqproxy -pc /a -bc /b -pm local -c /c", ["-c", "/c"]),
        ("sh mqproxy -n a:9876;b:9876 -pm cluster", []),
    ],
)
def test_arguments_that_no_script_reads_are_noted(command, unread):
    noted = [note for note in notes(started(command)) if note.startswith("argument ")]

    assert [note.split()[1] for note in noted] == unread


@pytest.mark.parametrize("image", ["apache/rocketmq:4.9.3", "rocketmqinc/rocketmq:4.4.0", "apache/rocketmq:5.3.1-arm"])
def test_an_image_of_another_release_is_noted(image):
    cluster = read_configuration(
        [ConfigurationFile("compose.yaml", f"services: {{n: {{image: '{image}', command: mqbroker}}}}".encode())],
        None,
        lambda *_: None,
    )
    assert notes(cluster)[0] == f"image {image} is not taken: what is emulated is release 5.3.3"
    assert not any("image" in note for note in notes(started("sh mqbroker")))


@pytest.mark.parametrize(
    ("ports", "noted"),
    [
        ("['10911:10911', '10909:10909/tcp', 10912]", []),
        ("['10921:10911']", ["ports: 10921:10911: clients outside dial 10921"]),
        ("['127.0.0.1:10921:10911']", ["ports: 10921:10911: clients outside dial 10921"]),
        ("[{published: '10921', target: 10911}]", ["ports: 10921:10911: clients outside dial 10921"]),
        ("['10931:10931']", []),
    ],
)
def test_ports_that_have_another_number_outside_are_noted(ports, noted):
    found = [note.partition(",")[0] for note in notes(of_service(f"    command: mqbroker\n    ports: {ports}\n"))]

    assert found == noted


def test_a_published_port_at_which_nothing_listens_is_noted():
    moved = {"conf/broker.conf": b"listenPort = 10931\n"}
    text = "    command: mqbroker -c /c/broker.conf\n    volumes: ['./conf:/c']\n    ports: ['10921:10911']\n"

    (noted,) = notes(of_service(text, moved))[:1]
    assert noted.startswith("ports: 10921:10911 leads nowhere: nothing listens at 10911, for listenPort is 10931")


@each_case("key", KEYS_OF_SERVICES)
def test_each_key_of_a_service_that_means_something_is_noted(key):
    found = notes(of_service(f"    command: mqbroker\n    {key}: x\n"))

    assert [note.split()[0] for note in found] == [key]


def test_variables_that_set_nothing_are_noted_by_name_alone():
    text = "    command: mqbroker\n    environment: {BROKER_NAME: a, JAVA_OPT_EXT: canary, TZ: UTC}\n"

    assert notes(of_service(text)) == ["environment JAVA_OPT_EXT, TZ: not taken: RocketMQ reads no option from them"]


def test_replicas_of_a_service_are_as_many_nodes():
    assert len(of_service("    command: mqproxy\n    deploy: {replicas: 2}\n").of(PROXY)) == 2
    assert len(of_service("    command: mqnamesrv\n    scale: 3\n").of(NAMESRV)) == 3
    with pytest.raises(ConfigurationError, match="expected at most 2000 replicas"):
        of_service("    command: mqproxy\n    scale: 3000\n")


PODS = """
apiVersion: v1
kind: Service
metadata: {{ name: outside }}
spec:
  type: {type}
  selector: {{ app: {app} }}
  ports: [{{ port: 9000, targetPort: grpc, nodePort: 30081 }}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: proxy }}
spec:
  template:
    metadata: {{ labels: {{ app: mq, tier: proxy }} }}
    spec:
      {of_pod}
      containers:
        - image: apache/rocketmq:5.3.3
          command: [sh, mqproxy]
          ports: [{{ name: grpc, containerPort: 8081 }}]
          {of_container}
"""


def of_pods(type="ClusterIP", app="mq", of_pod="", of_container=""):  # noqa: A002 - as Kubernetes calls it
    text = PODS.format(type=type, app=app, of_pod=of_pod, of_container=of_container)
    return notes(read_configuration([ConfigurationFile("a.yaml", text.encode())], None, lambda *_: None))


@pytest.mark.parametrize(("kind", "number"), [("NodePort", 30081), ("LoadBalancer", 9000)])
def test_ports_of_services_that_are_open_outside_are_noted(kind, number):
    (noted,) = of_pods(kind)

    assert noted.startswith(f"Service outside: {number}:8081: clients outside dial {number}, and routes have")


@pytest.mark.parametrize(("kind", "app"), [("ClusterIP", "mq"), ("NodePort", "other")])
def test_services_inside_or_of_other_pods_are_nothing(kind, app):
    assert of_pods(kind, app) == []


@pytest.mark.parametrize("key", KEYS_OF_PODS)
def test_each_key_of_a_pod_that_means_something_is_noted(key):
    assert [note.split()[0] for note in of_pods(of_pod=f"{key}: x")] == [key]


@pytest.mark.parametrize("key", KEYS_OF_CONTAINERS)
def test_each_key_of_a_container_that_means_something_is_noted(key):
    assert [note.split()[0] for note in of_pods(of_container=f"{key}: x")] == [key]

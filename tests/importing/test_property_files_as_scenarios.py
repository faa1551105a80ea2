"""Properties files of brokers, nameservers, controllers, containers and clients become scenarios that can be run."""

import pytest

from emulator.importing.files import (
    ConfigurationFile,
    counts_of,
    read_configuration,
    scenario_name,
    verdicts_of_cluster,
)
from emulator.importing.scenario_text import scenario_text
from emulator.importing.settings import ConfigurationError
from emulator.importing.verdicts import Fate
from emulator.spec import loads
from emulator.spec.rocketmq.file_kinds import FileKind
from support.every_case import each_case

MASTER = """# a comment
brokerClusterName=DefaultCluster
brokerName=broker-a
brokerId=0
deleteWhen=04
fileReservedTime=48
brokerRole=SYNC_MASTER
storeType=default
namesrvAddr=10.0.0.1\\:9876;\\
    10.0.0.2:9876
"""
SLAVE = MASTER.replace("brokerId=0", "brokerId=1").replace("SYNC_MASTER", "SLAVE")
CONTROLLED = (
    "brokerName=broker-a\nbrokerId=-1\nbrokerRole=SLAVE\nenableControllerMode=true\ncontrollerAddr=c1:1;c2:1;c3:1\n"
)
DEFAULT = "; RocketMQ uses its default, "


def no_file(_source, _path):
    return None


def imported(kind=None, **files):
    """The cluster of files: name, with `_` for the dot, -> text."""
    read = [ConfigurationFile(name.replace("_", "."), text.encode("utf-8")) for name, text in files.items()]
    return read_configuration(read, kind, no_file)


def text_of(cluster):
    return scenario_text(cluster, "imported", ["files"])


def scenario(kind=None, **files):
    return loads(text_of(imported(kind, **files)), "imported.toml")


def fates(kind=None, **files):
    """Mapping option -> what becomes of it."""
    return {item.setting.name: item.fate for item in verdicts_of_cluster(imported(kind, **files))}


def notes(**files):
    """Mapping option -> the note on it."""
    return {item.setting.name: item.note for item in verdicts_of_cluster(imported(**files))}


def test_a_broker_conf_becomes_a_broker_with_its_options():
    broker = scenario(a_conf=MASTER).brokers[0]

    assert (broker.broker_name, broker.broker_id, broker.cluster) == ("broker-a", 0, "DefaultCluster")
    assert (broker.config.broker_role, broker.config.file_reserved_time) == ("SYNC_MASTER", 48)


def test_each_option_of_the_file_is_accounted_for():
    assert fates(a_conf=MASTER) == {
        "brokerClusterName": Fate.ELSEWHERE,
        "brokerName": Fate.ELSEWHERE,
        "brokerId": Fate.ELSEWHERE,
        "deleteWhen": Fate.TAKEN,
        "fileReservedTime": Fate.TAKEN,
        "brokerRole": Fate.TAKEN,
        "storeType": Fate.NOT_EMULATED,
        "namesrvAddr": Fate.ELSEWHERE,
    }


def test_the_account_counts_the_options_of_each_file():
    counted = counts_of(verdicts_of_cluster(imported(a_conf=MASTER, b_conf=SLAVE)))

    assert {file: {fate: number for fate, number in of.items() if number} for file, of in counted.items()} == {
        "a.conf": {Fate.TAKEN: 3, Fate.ELSEWHERE: 4, Fate.NOT_EMULATED: 1},
        "b.conf": {Fate.TAKEN: 2, Fate.ELSEWHERE: 5, Fate.NOT_EMULATED: 1},
    }


def test_the_place_of_an_option_stands_behind_it_and_comments_name_the_others():
    lines = text_of(imported(a_conf=MASTER)).splitlines()

    assert "fileReservedTime = 48  # a.conf:6" in lines
    assert "# brokerName = broker-a (a.conf:3): set elsewhere: name of the broker group: name of [[broker]]" in lines
    (flush,) = [line for line in lines if "storeType" in line]
    assert flush.startswith('storeType = "default"  # a.conf:8: known, not emulated: ')


def test_there_are_as_many_nameservers_as_addresses():
    assert len(scenario(a_conf=MASTER).nameservers) == 2
    assert len(scenario(a_conf="brokerName=a\n").nameservers) == 1


def test_a_master_and_its_slave_are_one_group():
    made = scenario(a_conf=MASTER, b_conf=SLAVE)

    assert [broker.name for broker in made.brokers] == ["broker-a", "broker-a-s1"]


def test_a_master_has_id_0_whatever_its_file_has():
    cluster = imported(a_conf="brokerName=a\nbrokerId=7\n")

    assert loads(text_of(cluster), "x").brokers[0].broker_id == 0
    assert cluster.nodes[0].notes == ("a master has id 0: RocketMQ ignores brokerId = 7",)


@each_case(
    ("line", "fate", "note"),
    [
        (
            "flushConsumerOffsetInterval=29*1000",
            Fate.NOT_READ,
            "'29*1000' is not read: expected an int: digits only, without spaces; RocketMQ uses its default, 5000",
        ),
        (
            "flushConsumerOffsetInterval=8000 ",
            Fate.NOT_READ,
            "'8000 ' is not read: expected an int: digits only, without spaces; RocketMQ uses its default, 5000",
        ),
        (
            "brokerRole=MASTER",
            Fate.NOT_READ,
            f"'MASTER' is not read: expected one of ASYNC_MASTER, SYNC_MASTER, SLAVE{DEFAULT}ASYNC_MASTER",
        ),
        (
            "sendMessageThreadPoolNums=x",
            Fate.NOT_READ,
            f"'x' is not read: expected an int: digits only, without spaces{DEFAULT}which depends on the processors",
        ),
        ("longPollingEnable=no", Fate.TAKEN, "'no' is false in RocketMQ, as everything but true"),
        ("longPollingEnable=False", Fate.TAKEN, "taken"),
        (
            "brokerPermission=9",
            Fate.NOT_EMULATED,
            "'9' cannot be emulated: expected a whole number from 0 to 7, not 9; the default is used",
        ),
        (
            "autoCreateTopicEnabled=false",
            Fate.UNKNOWN,
            'unknown to RocketMQ 5.3.3, which ignores it; did you mean "autoCreateTopicEnable"?',
        ),
        ("enableSplitMetadata=true", Fate.UNKNOWN, "unknown to RocketMQ 5.3.3, which ignores it; 5.4.0 has it"),
        (
            "timerStopDequeue=true",
            Fate.UNKNOWN,
            'unknown to RocketMQ 5.3.3, which ignores it; did you mean "timerStopEnqueue"?',
        ),
        ("commercialBaseCount=5", Fate.NO_EFFECT, "known, no effect: statistics, metrics and logs"),
        (
            "commercialBaseCount=1",
            Fate.NO_EFFECT,
            "known, no effect: statistics, metrics and logs; its value is the default",
        ),
        ("aclEnable=true", Fate.NO_EFFECT, None),
        (
            "innerClientAuthenticationCredentials={}",
            Fate.SECRET,
            "a secret, which is not copied; name an [[account]] that has it",
        ),
        ("accessKey=x", Fate.SECRET, "RocketMQ 5.3.3 does not read it; a secret, which is not copied"),
    ],
)
def test_an_option_is_read_as_rocketmq_reads_it(line, fate, note):
    (verdict,) = verdicts_of_cluster(imported(FileKind.BROKER, a_conf=line))

    assert verdict.fate is fate
    assert note in (verdict.note, None)


def test_what_rocketmq_does_otherwise_than_the_file_asks_for_is_a_warning():
    text = "brokerName=a\nregionId=x\nfileReservedTime=4x\nlongPollingEnable=no\nzzz=1\nstoreType=defaultRocksDB\n"
    warned = [item.setting.name for item in verdicts_of_cluster(imported(a_conf=text)) if item.is_warning]

    assert warned == ["fileReservedTime", "longPollingEnable", "zzz", "storeType"]


def test_an_option_with_its_default_that_is_not_emulated_is_no_warning():
    warned = [item for item in verdicts_of_cluster(imported(a_conf=MASTER)) if item.is_warning]

    assert warned == []


def test_of_equal_names_the_last_line_counts():
    text = "brokerName=a\nfileReservedTime=1\nfileReservedTime=2\n"

    assert scenario(a_conf=text).brokers[0].config.file_reserved_time == 2
    assert "set again below: the last line counts" in text_of(imported(a_conf=text))


def test_no_secret_is_copied():
    text = "brokerName=a\naccessKey=AAAAcanary\nsecretKey=canary\nmetricsGrpcExporterHeader=token:canary\n"
    text += 'initAuthenticationUser={"password":"canary"}\nmyPassword=canary\n'
    cluster = imported(a_conf=text)
    lines = [verdict.line() for verdict in verdicts_of_cluster(cluster)]

    assert "canary" not in text_of(cluster)
    assert "canary" not in "\n".join(lines)
    assert "canary" not in repr(cluster)
    assert "# secretKey (a.conf:3): RocketMQ 5.3.3 does not read it; a secret, which is not copied" in text_of(cluster)


def test_brokers_in_controller_mode_have_ids_in_the_order_of_files_and_controllers():
    made = scenario(a_conf=CONTROLLED, b_conf=CONTROLLED)

    assert [broker.broker_id for broker in made.brokers] == [0, 1]
    assert [controller.name for controller in made.controllers] == ["controller-1", "controller-2", "controller-3"]


def test_members_of_a_group_with_a_dledger_log_have_their_numbers_for_ids():
    peers = "n0-127.0.0.1:40911;n1-127.0.0.1:40912;n2-127.0.0.1:40913"
    member = f"brokerName=RaftNode00\nenableDLegerCommitLog=true\ndLegerGroup=RaftNode00\ndLegerPeers={peers}\n"
    files = {f"{name}_conf": f"{member}dLegerSelfId=n{number}\n" for name, number in (("a", 2), ("b", 0), ("c", 1))}
    made = scenario(**files)

    assert sorted((broker.broker_id, broker.name) for broker in made.brokers) == [
        (0, "RaftNode00"),
        (1, "RaftNode00-s1"),
        (2, "RaftNode00-s2"),
    ]
    assert all(broker.config.enable_d_leger_commit_log for broker in made.brokers)
    with pytest.raises(ConfigurationError, match="expected a letter and a number, such as n0, not 'x'"):
        scenario(a_conf=member + "dLegerSelfId=x\n")


def test_controllers_have_as_many_peers_as_their_files_name():
    peers = "controllerDLegerGroup=g\ncontrollerDLegerPeers=n0-a:1;n1-b:1;n2-c:1\ncontrollerDLegerSelfId=n0\n"
    made = scenario(c_conf=peers + "electMasterMaxRetryCount=5\n", a_conf=CONTROLLED)

    assert [controller.config.elect_master_max_retry_count for controller in made.controllers] == [5, 5, 5]


def test_nameservers_with_a_controller_have_the_options_of_both():
    text = "enableControllerInNamesrv=true\nlistenPort=9878\ncontrollerDLegerPeers=n0-a:1;n1-b:1\n"
    text += "electMasterMaxRetryCount=5\n"
    made = scenario(n_conf=text, a_conf=CONTROLLED)

    assert made.controllers == ()
    assert [nameserver.name for nameserver in made.nameservers] == ["ns-1", "ns-2"]
    assert made.nameservers[0].config.elect_master_max_retry_count == 5
    assert made.nameservers[0].config.listen_port == 9876


def test_brokers_stand_in_the_container_that_names_their_files():
    container = "listenPort=10811\nbrokerConfigPaths=/root/conf/a.conf:/root/conf/b.conf\n"
    made = scenario(
        box_conf=container,
        a_conf="brokerName=a\nlistenPort=10911\n",
        b_conf="brokerName=b\nlistenPort=20911\n",
        c_conf="brokerName=c\n",
    )

    assert [broker.container for broker in made.brokers] == ["container-1", "container-1", None]


def test_the_file_of_a_broker_in_a_container_sets_no_options_of_connections():
    alone = "brokerName=a\nserverChannelMaxIdleTimeSeconds=60\n"

    assert fates(a_conf=alone)["serverChannelMaxIdleTimeSeconds"] is Fate.TAKEN
    found = fates(box_conf="brokerConfigPaths=/root/a.conf\n", a_conf=alone)
    assert found["serverChannelMaxIdleTimeSeconds"] is Fate.UNKNOWN


def test_clients_become_consumers_and_producers():
    consumer = "consumerGroup=readers\nconsumeThreadMin=5\npullBatchSize=16\ncompressLevel=1\n"
    producer = "producerGroup=writers\nsendMsgTimeout=1000\nretryAnotherBrokerWhenNotStoreOK=true\n"
    made = scenario(a_properties=consumer, b_properties=producer, broker_conf="brokerName=a\n")

    assert [(group.group, group.config.pull_batch_size) for group in made.consumers] == [("readers", 16)]
    assert [(item.group, item.config.send_msg_timeout) for item in made.producers] == [("writers", 1000)]
    assert made.producers[0].config.retry_another_broker_when_not_store_ok
    assert fates(a_properties=consumer)["compressLevel"] is Fate.UNKNOWN


def test_a_proxy_has_its_options_and_what_it_has_not_is_named():
    options = ('"rocketMQClusterName": "c"', '"grpcServerPort": 8082', '"channelExpiredTimeout": 60000')
    proxy = "{\n  " + ",\n  ".join((*options, '"flowControl": true', '"namesrvAddr": "ns:9876"')) + "\n}"
    found = fates(p_json=proxy)

    assert found == {
        "rocketMQClusterName": Fate.TAKEN,
        "grpcServerPort": Fate.TAKEN,
        "channelExpiredTimeout": Fate.TAKEN,
        "flowControl": Fate.UNKNOWN,
        "namesrvAddr": Fate.ELSEWHERE,
    }
    (made,) = scenario(p_json=proxy).proxies
    assert (made.name, made.config.rocket_m_q_cluster_name, made.config.grpc_server_port) == ("proxy-1", "c", 8082)
    assert not made.config.use_endpoint_port_from_request
    assert "# flowControl (p.json:5): unknown to RocketMQ 5.3.3" in text_of(imported(p_json=proxy))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (MASTER, FileKind.BROKER),
        ("supportActingMaster=true\n", FileKind.NAMESRV),
        ("enableControllerInNamesrv=true\ncontrollerDLegerGroup=g\ncontrollerDLegerPeers=p\n", FileKind.NAMESRV),
        ("controllerDLegerGroup=g\n", FileKind.CONTROLLER),
        ("brokerConfigPaths=a\nnamesrvAddr=b:1\n", FileKind.CONTAINER),
        ("producerGroup=g\n", FileKind.CLIENT),
    ],
)
def test_options_show_what_a_file_is_for(text, kind):
    assert [node.kind for node in imported(a_conf=text).nodes] == [kind]


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (
            {"a_conf": "listenPort=1\n"},
            "a.conf: may be for a broker or a namesrv or a controller or a container: --kind says which",
        ),
        (
            {"a_conf": "noSuch=1\n"},
            "a.conf: expected options of RocketMQ, and none of the 1 such as noSuch is; --kind says what it is for",
        ),
        ({"a_conf": "brokerRole=SLAVE\n"}, "a.conf: brokerRole = SLAVE needs brokerId > 0, or RocketMQ ends"),
        (
            {"a_conf": "brokerRole=SLAVE\nbrokerId=x\n"},
            "a.conf:2: brokerRole = SLAVE needs brokerId > 0, or RocketMQ ends",
        ),
        (
            {"a_conf": MASTER, "b_conf": MASTER},
            "b.conf: broker broker-a with id 0 is there twice, first in a.conf: one would replace the other",
        ),
        (
            {"a_conf": "brokerName=a b\n"},
            "a.conf:1: expected a name of up to 127 characters without spaces, commas and slashes, not 'a b'",
        ),
    ],
)
def test_what_cannot_be_imported_is_one_line(files, problem):
    with pytest.raises(ConfigurationError) as caught:
        imported(**files)

    assert str(caught.value) == problem


def test_a_scenario_is_named_after_its_only_file():
    assert scenario_name([ConfigurationFile("conf/broker a.conf", b"")]) == "imported-broker-a"
    assert scenario_name([ConfigurationFile("a.conf", b""), ConfigurationFile("b.conf", b"")]) == "imported"


def test_where_a_broker_learns_of_nameservers_is_set_elsewhere_and_how_often_is_taken():
    lists = (
        "brokerName=broker-a\nfetchNamesrvAddrByAddressServer=true\nrmqAddressServerDomain=config.example:8080\n"
        "fetchNameSrvAddrByDnsLookup=true\nfetchNamesrvAddrInterval=5000\nupdateNameServerAddrPeriod=60000\n"
    )
    assert fates(a_conf=lists) == {
        "brokerName": Fate.ELSEWHERE,
        "fetchNamesrvAddrByAddressServer": Fate.ELSEWHERE,
        "rmqAddressServerDomain": Fate.ELSEWHERE,
        "fetchNameSrvAddrByDnsLookup": Fate.ELSEWHERE,
        "fetchNamesrvAddrInterval": Fate.TAKEN,
        "updateNameServerAddrPeriod": Fate.TAKEN,
    }
    assert scenario(a_conf=lists).brokers[0].config.fetch_namesrv_addr_interval == 5_000

"""The table of all options of RocketMQ agrees with the options that are emulated, and hints come from it."""

import pytest

from emulator.spec import SpecError, loads
from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.rocketmq.known_options import OptionStatus, known_options, options_by_name, other_release_of
from nodes.config import (
    BrokerConfig,
    ConsumerConfig,
    ControllerConfig,
    LitePullConsumerConfig,
    NameserverConfig,
    ProducerConfig,
    PullConsumerConfig,
    options,
)
from support.every_case import each_case

OURS = {
    BrokerConfig: (FileKind.BROKER, ()),
    NameserverConfig: (FileKind.NAMESRV, ()),
    ControllerConfig: (FileKind.CONTROLLER, ()),
    ConsumerConfig: (FileKind.CLIENT, ("ClientConfig", "DefaultMQPushConsumer")),
    LitePullConsumerConfig: (FileKind.CLIENT, ("ClientConfig", "DefaultMQPushConsumer", "DefaultLitePullConsumer")),
    PullConsumerConfig: (FileKind.CLIENT, ("ClientConfig", "DefaultMQPushConsumer", "DefaultMQPullConsumer")),
    ProducerConfig: (FileKind.CLIENT, ("ClientConfig", "DefaultMQProducer")),
}
LIMITS_OF_OURS = ("maxTopics", "maxQueuesPerTopic", "maxQueues", "maxGroups", "storeMaxBytes")
OF_STRATEGIES = (
    *("messageQueueList", "consumeridcs", "innerAllocateStrategy", "machineRooms", "virtualNodeCnt", "hashFunction"),
    *("partitionPrefix", "partitionCount", "exclusivity", "leaseDurationMs", "leaseRenewIntervalMs"),
    *("lockService", "fencing", "tcpKeepalivesIdle"),
    "replicasPollIntervalMs",
)
OF_APPLICATIONS = ("pullApplication", "pullBlockIfNotFound", "pullNextDelayTimeMillis", "pullThreadNums")
NO_FIELDS = {
    **dict.fromkeys(LIMITS_OF_OURS, "a limit of the emulator"),
    **dict.fromkeys(OF_STRATEGIES, "an argument of the constructor of a strategy, or of a strategy of ours"),
    **dict.fromkeys(OF_APPLICATIONS, "of the application of a classic pull consumer, or of a class that is one"),
    "allocationTime": "of measurements of ours",
    "assignerGracePeriodMs": "a rule of ours",
    "assignerRebalanceIntervalMs": "a rule of ours",
    "pinnedAssigner": "a rule of ours",
    "processingTimes": "a rule of ours",
    "revokeBeforeAssign": "a rule of ours",
    "heartbeatToAssigner": "a rule of ours",
    "totalPhysicalMemorySize": "RocketMQ asks the machine",
    "firstScanDelayMs": "a constant of RocketMQ",
    "knowsMemberGroups": "stands for a release",
    "fetchNamesrvAddrByAddressServer": "a client of RocketMQ fetches whenever it has no namesrvAddr",
    "leavesRemovedNameserver": "stands for a release",
    "knowsPlainAcl": "stands for a release",
    "rebalanceWaitIntervalMs": "a system property",
    "rebalanceMinIntervalMs": "a system property",
    "maxTimeConsumeContinuouslyMs": "a system property",
    "rebalanceLockIntervalMs": "a system property",
    "pullMaxIdleTimeMs": "a system property",
    "consumeOrderly": "the class of the listener",
    "accessKey": "of the client's hook",
    "secretKey": "of the client's hook",
    "brokerSuspendMaxTimeMillis": "a constant of the push consumer",
    "consumerTimeoutMillisWhenSuspend": "a constant of the push consumer",
    "connectTimeoutMillis": "a client of RocketMQ makes its NettyClientConfig itself",
    "clientCloseSocketIfTimeout": "a client of RocketMQ makes its NettyClientConfig itself",
    "clientChannelMaxIdleTimeSeconds": "a client of RocketMQ makes its NettyClientConfig itself",
}
"""Options of ours that no class has as a field -> why."""
AUTH_TEXTS = (
    *("authenticationProvider", "authenticationMetadataProvider", "authenticationStrategy", "authenticationWhitelist"),
    *("authorizationProvider", "authorizationMetadataProvider", "authorizationStrategy", "authorizationWhitelist"),
    *("initAuthenticationUser", "innerClientAuthenticationCredentials"),
)
OTHER_DEFAULTS = {
    ("BrokerConfig", "listenPort"): "BrokerStartup sets 10911",
    ("NettyServerConfig", "listenPort"): "the startup class of each node sets its port",
    ("DefaultMQPushConsumer", "allocateMessageQueueStrategy"): "an object",
    ("DefaultLitePullConsumer", "allocateMessageQueueStrategy"): "an object",
    ("DefaultMQPullConsumer", "allocateMessageQueueStrategy"): "an object",
    ("DefaultMQPullConsumer", "maxReconsumeTimes"): "it sends nothing back here",
    ("DefaultMQPushConsumer", "consumeTimestamp"): "half an hour before the start of the process",
    ("DefaultLitePullConsumer", "consumeTimestamp"): "half an hour before the start of the process",
    ("BrokerConfig", "namesrvAddr"): "empty in place of null",
    ("ClientConfig", "namesrvAddr"): "empty in place of null",
    ("MessageStoreConfig", "flushDiskType"): "ours is the strict one, which loses no message with the power",
    ("MessageStoreConfig", "haMasterAddress"): "empty in place of null",
    **dict.fromkeys([("AuthConfig", name) for name in AUTH_TEXTS], "empty in place of null"),
}
OF_LITE_PULL = ("brokerSuspendMaxTimeMillis", "pullBatchSize", "pullMaxIdleTimeMs")


def emulated(ours):
    """(option of ours, options of RocketMQ with its name) for each option of a class."""
    kind, classes = OURS[ours]
    for name, field in options(ours).items():
        yield (
            field,
            [known for known in known_options(kind) if known.name == name and (not classes or known.of in classes)],
        )


@each_case("ours", OURS, ids=lambda ours: ours.__name__)
def test_each_emulated_option_is_a_field_of_rocketmq_or_is_explained(ours):
    missing = [field.metadata["key"] for field, known in emulated(ours) if not known]

    assert [name for name in missing if name not in NO_FIELDS] == [], "RocketMQ has none: say why in NO_FIELDS"


@each_case("ours", OURS, ids=lambda ours: ours.__name__)
def test_each_emulated_option_has_the_default_of_rocketmq_or_is_explained(ours):
    different = [
        (known.of, known.name, str(field.default), known.default)
        for field, same in emulated(ours)
        for known in same
        if not known.depends_on
        if as_java(field.default) != known.default and (known.of, known.name) not in OTHER_DEFAULTS
        if not (ours in (LitePullConsumerConfig, PullConsumerConfig) and known.of == "DefaultMQPushConsumer")
    ]

    assert different == []


@each_case("ours", OURS, ids=lambda ours: ours.__name__)
def test_each_emulated_option_has_the_type_of_rocketmq(ours):
    types = {bool: ("boolean",), int: ("int", "long")}
    different = [
        (known.of, known.name, known.type)
        for field, same in emulated(ours)
        for known in same
        if known.type not in types.get(type(field.default), (known.type,))
    ]

    assert different == []


def as_java(value):
    return str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)


def test_the_table_has_every_field_of_the_classes():
    counted = {of: len([1 for option in known_options(kind) if option.of == of]) for kind, of in COUNTED}

    assert counted == {of: number for (_, of), number in COUNTED.items()}


COUNTED = {
    (FileKind.BROKER, "BrokerConfig"): 207,
    (FileKind.BROKER, "MessageStoreConfig"): 182,
    (FileKind.BROKER, "NettyServerConfig"): 18,
    (FileKind.BROKER, "NettyClientConfig"): 21,
    (FileKind.BROKER, "AuthConfig"): 26,
    (FileKind.NAMESRV, "NamesrvConfig"): 22,
    (FileKind.CONTROLLER, "ControllerConfig"): 29,
    (FileKind.CONTROLLER, "JraftConfig"): 7,
    (FileKind.CONTAINER, "BrokerContainerConfig"): 9,
    (FileKind.PROXY, "ProxyConfig"): 149,
    (FileKind.CLIENT, "ClientConfig"): 31,
    (FileKind.CLIENT, "DefaultMQPullConsumer"): 14,
}
"""As the classes of the jars have, and two keys that a broker reads without a field."""


def test_no_default_of_the_table_names_the_machine_on_which_it_was_made():
    dependent = {
        option.name: option.default for kind in FileKind for option in known_options(kind) if option.depends_on
    }

    assert {"storePathRootDir", "brokerIP1", "brokerName", "sendMessageThreadPoolNums"} <= dependent.keys()
    assert set(dependent.values()) == {""}


def test_every_option_has_a_status_and_a_meaning():
    assert [option for kind in FileKind for option in known_options(kind) if not option.meaning] == []


@each_case(
    ("name", "status"),
    [
        ("brokerHeartbeatInterval", OptionStatus.EMULATED),
        ("brokerName", OptionStatus.ELSEWHERE),
        ("sendThreadPoolQueueCapacity", OptionStatus.EMULATED),
        ("putThreadPoolQueueCapacity", OptionStatus.NOT_EMULATED),
        ("metricsPromExporterPort", OptionStatus.NO_EFFECT),
        ("aclEnable", OptionStatus.NO_EFFECT),
        ("enableDLegerCommitLog", OptionStatus.EMULATED),
        ("dLegerPeers", OptionStatus.ELSEWHERE),
        ("preferredLeaderId", OptionStatus.NOT_EMULATED),
    ],
)
def test_an_option_has_the_status_of_its_family(name, status):
    assert [option.status for option in options_by_name(FileKind.BROKER)[name]] == [status]


@pytest.mark.parametrize("name", ["timerStopDequeue", "timerWarmEnable", "noSuchOption"])
def test_a_field_without_a_setter_is_read_from_no_file(name):
    assert name not in options_by_name(FileKind.BROKER)


def test_options_of_other_releases_are_known_by_their_release():
    assert other_release_of("enableSplitMetadata") == "5.4.0"
    assert other_release_of("haSlaveFallbehindMax") == "4.9.7"
    assert other_release_of("brokerName") == ""


@each_case(
    ("options", "problem"),
    [
        ('brokerName = "a"', "unknown option; set elsewhere: name of the broker group: name of [[broker]]"),
        (
            'storeType = "defaultRocksDB"',
            "unknown option; RocketMQ has it, and it is not emulated: a detail of the store that clients may see",
        ),
        ("metricsPromExporterPort = 1", "unknown option; RocketMQ has it, and it has no effect here: "),
        (
            'storeTyp = "x"',
            'unknown option; did you mean "storeType" of RocketMQ? RocketMQ has it, and it is not emulated: ',
        ),
        ("enableSplitMetadata = true", "unknown option; RocketMQ 5.3.3 does not have it, 5.4.0 does"),
        ("brokerHeartbeetInterval = 1", 'unknown option; did you mean "brokerHeartbeatInterval"?'),
        ("zzz = 1", "unknown option; known are "),
    ],
)
def test_the_hint_of_an_unknown_option_comes_from_the_table(options, problem):
    text = f'[scenario]\nname = "wrong"\nrun_for_s = 1\n[[broker]]\nname = "a"\noptions = {{ {options} }}\n'

    with pytest.raises(SpecError) as caught:
        loads(text, "wrong.toml")

    assert caught.value.problem.startswith(problem)

"""Family broker_config: what a broker prints as its configuration when it was started with a file."""

from emulator.importing.files import ConfigurationFile, read_configuration
from emulator.importing.scenario_text import scenario_text
from emulator.spec import loads
from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.rocketmq.known_options import known_options
from emulator.testing import execute
from nodes.protocol.codes import RequestCode
from support.asking_guest import a_guest

ADDRESSES = ("bindAddress", "brokerIP1", "brokerIP2", "haListenPort", "haMasterAddress", "listenPort", "namesrvAddr")
OF_THE_FILE = ("mappedFileSizeCommitLog",)
"""Set to save space when the real broker was asked."""
OF_OURS = (
    *(
        "allocationTime",
        "assignerGracePeriodMs",
        "maxGroups",
        "maxQueues",
        "maxQueuesPerTopic",
        "maxTopics",
        "storeMaxBytes",
    ),
    *("assignerRebalanceIntervalMs", "knowsPlainAcl", "processingTimes", "totalPhysicalMemorySize"),
)


def broker_config(requested):
    file = ConfigurationFile("broker.conf", requested["file"].encode())
    cluster = read_configuration([file], FileKind.BROKER, lambda _source, _path: None)
    scenario = loads(scenario_text(cluster, "imported", ["broker.conf"]), "imported.toml")
    return {"lines": [line for line in _printed(scenario) if _is_compared(line.partition("=")[0])]}


def _printed(scenario):
    answers = []

    async def script(stage):
        guest = await a_guest(stage)
        await stage.at_ms(5_000)
        answer = await guest.ask(scenario.brokers[0].name, RequestCode.GET_BROKER_CONFIG)
        answers.append(answer.body.decode())

    execute(scenario, script)
    return answers[0].splitlines()


def _is_compared(name):
    depends = any(option.name == name and option.depends_on for option in known_options(FileKind.BROKER))
    # A name may depend on the host, and yet the file sets it.
    left_out = "Path" in name or name in (*ADDRESSES, *OF_THE_FILE, *OF_OURS) or (depends and name != "brokerName")
    return not left_out

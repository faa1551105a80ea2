"""What users report of busy brokers happens here, and `rmqemu analyze` names the cause on the line below.

The page `examples/BUSY_BROKERS.md` has a row for each.
"""

from pathlib import Path

import attrs
import pytest

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.judge import judge_run
from emulator.analysis.report import most_severe
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run
from emulator.why.worst import causes_of_symptoms

PAGE = Path(__file__).parents[2] / "examples" / "BUSY_BROKERS.md"
_SCENARIO = """
[scenario]
name = "busy"
run_for_s = {run_for_s}
[network]
delay_ms = 1
[nameserver]
count = 2
[[broker]]
name = "broker-a"
options = {{ {options} }}
[[topic]]
name = "orders"
queues = 4
[[topic]]
name = "logs"
queues = 4
{producers}
[[consumer]]
group = "billing"
topics = ["orders"]
count = {consumers}
start_after_s = {consumers_after_s}
{fault}
"""
_PRODUCER = '[[producer]]\nname = "p-{number}"\ngroup = "till"\ntopic = "{topic}"\nrate_per_s = {rate}\n'


@attrs.frozen
class Thread:
    """A public thread, and a scenario with what it reports."""

    number: int
    """Of the issue in apache/rocketmq."""
    options: str
    fault: str = ""
    """For some time in the middle of the run."""
    orders: int = 8
    """Producers of orders."""
    logs: int = 0
    """Producers of another topic."""
    rate_per_s: int = 10
    consumers: int = 2
    consumers_after_s: int = 0
    run_for_s: int = 30
    """Heartbeats come each half minute, so what happens to them needs more than sends do."""

    @property
    def text(self) -> str:
        """The scenario."""
        topics = ["orders"] * self.orders + ["logs"] * self.logs
        producers = [
            _PRODUCER.format(number=number, topic=topic, rate=self.rate_per_s) for number, topic in enumerate(topics)
        ]
        times = f"at_s = {self.run_for_s // 3}\nfor_s = {self.run_for_s // 2}"
        fault = f'[[fault]]\ndo = "{self.fault}"\n{times}\n' if self.fault else ""
        named = {name: getattr(self, name) for name in ("options", "consumers", "consumers_after_s", "run_for_s")}
        return _SCENARIO.format(producers="".join(producers), fault=fault, **named)


_FAST = 'processingTimes = "others 1ms"'
THREADS = (
    Thread(2471, 'processingTimes = "sendMessage 50ms", sendMessageThreadPoolNums = 1'),
    Thread(4425, f"{_FAST}, sendMessageThreadPoolNums = 1", "slow-disk broker-a 300"),
    Thread(
        3169,
        f"{_FAST}, waitTimeMillsInSendQueue = 1000, osPageCacheBusyTimeOutMills = 5000",
        "slow-disk broker-a 2000",
    ),
    Thread(2945, f"{_FAST}, sendMessageThreadPoolNums = 8", "slow-disk broker-a 1500", orders=16),
    Thread(2709, _FAST, "slow-disk broker-a 3000"),
    Thread(593, f"{_FAST}, transientStorePoolEnable = true, transientStorePoolSize = 2"),
    Thread(
        1285,
        'processingTimes = "sendMessage 50ms", sendMessageThreadPoolNums = 32, osPageCacheBusyTimeOutMills = 300',
        "slow-disk broker-a 2000",
        orders=30,
        rate_per_s=3,
    ),
    Thread(5088, 'processingTimes = "sendMessage 5ms, others 1ms"', "slow-cpu broker-a 500", orders=16),
    Thread(1494, 'processingTimes = "sendMessage 50ms", sendMessageThreadPoolNums = 1', orders=1, logs=10),
    Thread(
        314,
        'processingTimes = "heartbeat 40s", heartbeatThreadPoolNums = 1, channelExpiredTimeout = 60000',
        orders=0,
        consumers=8,
        run_for_s=90,
    ),
    Thread(
        7870,
        f"{_FAST}, heartbeatThreadPoolNums = 1",
        "cut broker-a ns-2",
        orders=1,
        consumers=4,
        consumers_after_s=40,
        run_for_s=90,
    ),
)


def printed(thread: Thread, folder: Path) -> tuple[str, str]:
    """What `rmqemu analyze` prints of the busy broker, and of the cause."""
    run = open_run(run_scenario(loads(thread.text, "busy"), runs=folder).path)
    report = judge_run(run)
    symptom = next(item for item in most_severe(report) if item.kind is SymptomKind.BUSY)
    return symptom.text, causes_of_symptoms(report, run)[SymptomKind.BUSY]


def row(thread: Thread) -> list[str]:
    """The cells of the row of the page about a thread."""
    (found,) = (line for line in PAGE.read_text(encoding="utf-8").splitlines() if f"issues/{thread.number})" in line)
    return [cell.strip() for cell in found.strip("|").split("|")]


ALWAYS = (2471, 593, 1285, 314, 7870)
"""Every word of a refusal, both kinds of causes, sends and heartbeats; `make proofs` executes the others."""


@pytest.mark.parametrize(
    "thread",
    [
        pytest.param(thread, id=str(thread.number), marks=() if thread.number in ALWAYS else pytest.mark.slow)
        for thread in THREADS
    ],
)
def test_the_situation_of_a_thread_is_printed_with_its_cause(thread, tmp_path):
    *_, scenario, line, cause = row(thread)
    assert (line, cause) == printed(thread, tmp_path)
    assert scenario.startswith(f"`{thread.options}`")
    assert f"`{thread.fault}`" in scenario or not thread.fault


def test_every_word_of_a_refusal_and_both_kinds_of_causes_are_among_them():
    lines = [row(thread)[-2] for thread in THREADS if thread.number in ALWAYS]
    words = ("TIMEOUT_CLEAN_QUEUE", "PCBUSY_CLEAN_QUEUE", "REJECTREQUEST", "PC_SYNCHRONIZED")
    assert all(any(word in line for line in lines) for word in words)

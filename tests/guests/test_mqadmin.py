"""RocketMQ's own mqadmin against a live cluster: every subcommand of the table, and what it prints."""

import re
import subprocess
from pathlib import Path

import attrs
import pytest

import emulator
from guests.mqadmin_answers import normalised, recorded
from guests.mqadmin_table import DIFFERENCES, SUBCOMMANDS

HERE = Path(__file__).parent
pytestmark = pytest.mark.guests
_JVM_WITHIN_S = 900


@pytest.fixture(scope="module")
def answers(tmp_path_factory, class_path):
    """Line of a subcommand -> what it printed; one JVM for all of them."""
    scratch = tmp_path_factory.mktemp("mqadmin")
    with emulator.launch(HERE / "cluster.toml", mode="live", runs=scratch) as cluster:
        cluster.until("agree", "within", "60s")
        # A member may learn of the retry queues with its second route, 30 s later; real answers are of a minute later.
        for broker in ("broker-a", "broker-b", "broker-c"):
            cluster.until(f"%RETRY%billing/{broker}/0", "somebody", "within", "90s")
        cluster.run_for("6s")  # something has been sent and consumed, and offsets have been committed
        nameserver = cluster.namesrv_addr
        broker = re.sub(r"\.1\.1:9876$", ".2.1:10911", nameserver)

        (scratch / "topics").write_text('[{"topicName":"listed","readQueueNums":2,"writeQueueNums":2,"perm":6}]')
        (scratch / "groups").write_text('[{"groupName":"listed","consumeEnable":true}]')
        words = {"NS": nameserver, "BROKER": broker, "MESSAGE": message_id(broker), "SCRATCH": str(scratch / "exports")}
        words |= {"TOPICS": str(scratch / "topics"), "GROUPS": str(scratch / "groups")}

        def filled(line: str) -> str:
            return " ".join(words.get(word, word) for word in line.split(" "))

        (scratch / "lines").write_text("".join(f"{filled(line)}\n" for line, _ in SUBCOMMANDS))
        run = ["java", f"-Drocketmq.home.dir={scratch}", "-cp", class_path]
        run += [str(HERE / "java" / "Mqadmin.java"), str(scratch / "lines")]
        # Some of them write files where they are.
        done = subprocess.run(run, check=False, cwd=scratch, capture_output=True, text=True, timeout=_JVM_WITHIN_S)
    output = dict(part.split("\n", 1) for part in re.split(r"(?m)^> ", done.stdout)[1:])
    (scratch / "output").write_text(done.stdout)
    return Answers(
        {line: output.get(filled(line), done.stderr) for line, _ in SUBCOMMANDS}, nameserver, broker, scratch
    )


@attrs.frozen
class Answers:
    """What mqadmin printed of an emulated cluster."""

    printed: dict[str, str]
    nameserver: str
    broker: str
    scratch: Path

    def normalised(self, line: str) -> list[str]:
        places = {"nameserver": self.nameserver, "broker": self.broker, "scratch": str(self.scratch)}
        return normalised(self.printed[line], **places)


def message_id(broker: str) -> str:
    """The id of the message at the beginning of a broker's log."""
    ip, port = broker.split(":")
    return "".join(f"{int(part):02X}" for part in ip.split(".")) + f"{int(port):08X}{0:016X}"


@pytest.mark.parametrize(("line", "expected"), SUBCOMMANDS, ids=lambda value: value.partition(" -")[0])
def test_the_subcommand_prints_what_a_real_cluster_lets_it_print(answers, line, expected):
    reported = answers.printed[line]
    assert re.search(expected.replace("BROKER", re.escape(answers.broker)), reported), reported


@pytest.mark.parametrize("line", [line for line, _ in SUBCOMMANDS if line not in DIFFERENCES])
def test_the_subcommand_prints_what_it_printed_of_a_real_cluster(answers, line):
    assert answers.normalised(line) == recorded()[line]


@pytest.mark.parametrize("line", DIFFERENCES)
def test_a_difference_that_has_a_reason_is_still_there(answers, line):
    assert answers.normalised(line) != recorded()[line]

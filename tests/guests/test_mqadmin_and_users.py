"""RocketMQ's own mqadmin creates, changes and shows users and policies, and prints what it printed of a real broker."""

import re
import subprocess
from pathlib import Path

import pytest

import emulator
from guests.mqadmin_answers import normalised, recorded_with_users
from guests.mqadmin_table import DIFFERENCES_WITH_USERS

HERE = Path(__file__).parent
pytestmark = pytest.mark.guests
_JVM_WITHIN_S = 300
RECORDED = recorded_with_users()


@pytest.fixture(scope="module")
def printed(tmp_path_factory, class_path):
    """What each line printed; one JVM for all of them, which signs as the first user."""
    scratch = tmp_path_factory.mktemp("users")
    (scratch / "conf").mkdir()
    (scratch / "conf" / "tools.yml").write_text("accessKey: rocketmq-root\nsecretKey: secret-of-root\n")
    with emulator.launch(HERE / "users.toml", mode="live", runs=scratch) as cluster:
        cluster.until("agree", "within", "60s")
        nameserver = cluster.namesrv_addr
        broker = re.sub(r"\.1\.1:9876$", ".2.1:10911", nameserver)
        lines = [re.sub(r"\bNS\b", nameserver, line).replace("BROKER", broker) for line, _ in RECORDED]
        (scratch / "lines").write_text("".join(f"{line}\n" for line in lines))
        run = ["java", f"-Drocketmq.home.dir={scratch}", "-cp", class_path]
        run += [str(HERE / "java" / "Mqadmin.java"), str(scratch / "lines")]
        done = subprocess.run(run, check=False, cwd=scratch, capture_output=True, text=True, timeout=_JVM_WITHIN_S)
    parts = [part.split("\n", 1)[1] for part in re.split(r"(?m)^> ", done.stdout)[1:]]
    return [normalised(part, nameserver=nameserver, broker=broker, scratch=str(scratch)) for part in parts]


@pytest.mark.parametrize("number", range(len(RECORDED)), ids=lambda number: f"{number}-{RECORDED[number][0]}")
def test_the_line_prints_what_it_printed_of_a_real_broker(printed, number):
    line, expected = RECORDED[number]
    assert (printed[number] == expected) == (line not in DIFFERENCES_WITH_USERS), printed[number]

"""RocketMQ's own mqadmin against a live cluster: every subcommand of the table, and what it prints."""

import re
import subprocess
from pathlib import Path

import pytest

import emulator
from guests.mqadmin_table import SUBCOMMANDS

HERE = Path(__file__).parent
pytestmark = pytest.mark.guests
_JVM_WITHIN_S = 900


@pytest.fixture(scope="module")
def answers(tmp_path_factory, class_path):
    """Line of a subcommand -> what it printed; one JVM for all of them."""
    scratch = tmp_path_factory.mktemp("mqadmin")
    with emulator.launch(HERE / "cluster.toml", mode="live", runs=scratch) as cluster:
        cluster.until("agree", "within", "60s")
        cluster.run_for("3s")  # something has been sent and consumed
        nameserver = cluster.namesrv_addr
        broker = re.sub(r"\.1\.1:9876$", ".2.1:10911", nameserver)

        def filled(line: str) -> str:
            return line.replace("NS", nameserver).replace("BROKER", broker).replace("SCRATCH", str(scratch / "exports"))

        (scratch / "lines").write_text("".join(f"{filled(line)}\n" for line, _ in SUBCOMMANDS))
        run = ["java", f"-Drocketmq.home.dir={scratch}", "-cp", class_path]
        run += [str(HERE / "java" / "Mqadmin.java"), str(scratch / "lines")]
        # Some of them write files where they are.
        done = subprocess.run(run, check=False, cwd=scratch, capture_output=True, text=True, timeout=_JVM_WITHIN_S)
    output = dict(part.split("\n", 1) for part in re.split(r"(?m)^> ", done.stdout)[1:])
    return {line: (output.get(filled(line), done.stderr), broker) for line, _ in SUBCOMMANDS}


@pytest.mark.parametrize(("line", "expected"), SUBCOMMANDS, ids=lambda value: value.partition(" -")[0])
def test_the_subcommand_prints_what_a_real_cluster_lets_it_print(answers, line, expected):
    reported, broker = answers[line]
    assert re.search(expected.replace("BROKER", re.escape(broker)), reported), reported

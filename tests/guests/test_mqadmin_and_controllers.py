"""RocketMQ's own mqadmin against controllers: its subcommands for them, before and after a switch of the master.

The controllers are nodes of their own, or in the processes of nameservers.
"""

import re
import subprocess
from pathlib import Path

import pytest

import emulator

HERE = Path(__file__).parent
pytestmark = pytest.mark.guests
_JVM_WITHIN_S = 300
BEFORE = (
    ("getControllerMetaData -a CONTROLLER", r"#ControllerGroup\s+controllers\n#ControllerLeaderId\s+n\d"),
    ("getControllerConfig -a CONTROLLER", r"enableElectUncleanMaster\s+=\s+false"),
    ("updateControllerConfig -a CONTROLLER -k enableElectUncleanMaster -v true", r"update controller config success"),
    ("getSyncStateSet -a CONTROLLER -b broker-a", r"#MasterBrokerId\s+1\n(.*\n)+.*brokerId=3, .*alive=true"),
    ("getBrokerEpoch -n NS -b broker-a", r"#Epoch: EpochEntry\{epoch=1, startOffset=0"),
    ("electMaster -a CONTROLLER -b 2 -bn broker-a -c DefaultCluster", r"#BrokerMasterAddr\s+127\.\d+\.2\.\d"),
    ("getSyncStateSet -a CONTROLLER -b broker-a", r"#MasterBrokerId\s+2\n"),
    ("cleanBrokerMetadata -a CONTROLLER -bn absent -c DefaultCluster", r"CODE: 2009|not existed"),
)


IN_NAMESERVERS = "count = 3\noptions = { enableControllerInNamesrv = true }"


@pytest.fixture(scope="module", params=[("count = 1", ".185.1:9878"), (IN_NAMESERVERS, ".1.1:9878")], ids=["own", "in"])
def answers(request, tmp_path_factory, class_path):
    """What each subcommand printed, in order; one JVM for all of them."""
    nameservers, port = request.param
    scratch = tmp_path_factory.mktemp("mqadmin")
    file = scratch / "controllers.toml"
    file.write_text((HERE / "controllers.toml").read_text().replace("count = 1", nameservers))
    with emulator.launch(file, mode="live", runs=scratch) as cluster:
        cluster.run_for("15s")  # all three are in sync
        nameserver = cluster.namesrv_addr.split(";")[0]
        controller = re.sub(r"\.1\.1:9876$", port, nameserver)
        lines = [line.replace("NS", nameserver).replace("CONTROLLER", controller) for line, _ in BEFORE]
        (scratch / "lines").write_text("".join(f"{line}\n" for line in lines))
        run = ["java", f"-Drocketmq.home.dir={scratch}", "-cp", class_path]
        run += [str(HERE / "java" / "Mqadmin.java"), str(scratch / "lines")]
        done = subprocess.run(run, check=False, cwd=scratch, capture_output=True, text=True, timeout=_JVM_WITHIN_S)
    return [part.partition("\n")[2] for part in re.split(r"(?m)^> ", done.stdout)[1:]] or [done.stderr]


@pytest.mark.parametrize("number", range(len(BEFORE)), ids=lambda number: f"{number}-{BEFORE[number][0].split()[0]}")
def test_the_subcommand_prints_what_a_real_controller_lets_it_print(answers, number):
    assert re.search(BEFORE[number][1], answers[number]), answers[number]

"""Every port of a session of Spark asks another user of the machine for a secret, whatever the kind of session.

The warm server: `test_warm_server.py`.
"""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from emulator.dataset.guarding import guarding_settings
from emulator.dataset.settings import remove_scratch, sockets_folder
from support.spark_ports import descendants, guards, listening_ports

pytestmark = pytest.mark.spark

SESSION = """
import sys
from emulator.dataset.sessions import open_command_session

def same(batches):
    yield from batches

session = open_command_session(sys.argv[1], rows=10)
print("open", flush=True)
sys.stdin.readline()
print(session.range(10).mapInArrow(same, "id long").count(), flush=True)
print(session.sparkContext.parallelize(range(10), 2).map(abs).sum(), flush=True)
sys.stdin.read()
"""


def _command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:  # it ended meanwhile
        return ""


def test_every_port_of_a_session_in_this_process_asks_for_a_secret(spark):
    def same(batches):  # in here, so that workers need no module of the tests
        yield from batches

    assert spark.range(3).mapInArrow(same, "id long").count() == 3
    # This process and its other children may be servers of other tests.
    of_java = [pid for pid in descendants(os.getpid()) if "java" in _command_line(pid)]
    found = sorted(guards({port for pid in of_java for port in listening_ports(pid)}).values())

    assert found[:2] == ["secret", "secret"], "the driver and its blocks"
    assert set(found[2:]) == {"token of py4j"}, "its JVM"
    assert spark.range(3).mapInArrow(same, "id long").count() == 3


@pytest.mark.slow
@pytest.mark.parametrize(("master", "secrets", "signatures"), [("local[1]", 2, 0), ("local-cluster[1,1,1024]", 5, 2)])
def test_who_holds_every_port_of_a_session_from_its_start_keeps_no_work_from_being_done(
    tmp_path, master, secrets, signatures
):
    with (
        subprocess.Popen(
            [sys.executable, "-c", SESSION, master],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(tmp_path)},
            text=True,
        ) as process,
        ExitStack() as held,
    ):
        assert process.stdout.readline() == "open\n"
        ports = listening_ports(process.pid)
        for port in ports:
            held.enter_context(socket.create_connection(("127.0.0.1", port)))
        print(file=process.stdin, flush=True)

        assert [process.stdout.readline() for _ in range(2)] == ["10\n", "45\n"]
        found = list(guards(listening_ports(process.pid)).values())
        assert found.count("secret") == secrets
        assert found.count("signature") == signatures
        assert found.count("token of py4j") == 1
        assert "" not in found
        assert secrets_among_arguments(process.pid) == []
        process.stdin.close()
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def secrets_among_arguments(pid):
    """The words of command lines of a process and its children that hold a secret of their environment."""
    found = []
    for process in descendants(pid):
        words = Path(f"/proc/{process}/cmdline").read_text().split("\0")
        variables = Path(f"/proc/{process}/environ").read_text().split("\0")
        secrets = [line.partition("=")[2] for line in variables if line.startswith("_SPARK_AUTH_SECRET=")]
        found += [word for word in words if "secretKey" in word or any(secret in word for secret in secrets)]
    return found


@pytest.mark.parametrize("long", [False, True])
def test_sockets_lie_where_no_one_else_can_enter_under_a_name_that_they_can_have(tmp_path, long):
    folder = (tmp_path if not long else tmp_path / ("x" * 100)) / "scratch"
    folder.mkdir(parents=True, mode=0o700)
    made = sockets_folder(folder)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(made / f".{uuid4()}.sock"))

    assert made.stat().st_mode & 0o777 == 0o700
    assert sockets_folder(folder) == made
    assert guarding_settings("local[2]", made)["spark.python.unix.domain.socket.dir"] == str(made)
    remove_scratch(folder)
    assert not folder.exists()
    assert not made.exists()


def test_workers_on_other_machines_have_no_folder_of_this_one():
    assert "spark.python.unix.domain.socket.dir" not in guarding_settings("spark://a:7077", Path("/tmp/rmqemu"))

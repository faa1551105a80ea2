"""Sessions of one process: each has the settings of its own data, and all run on one master."""

import os
import signal
import sys

import pytest

from emulator.dataset.connect import NoConnectError, connect_session, require_connect
from emulator.dataset.masters import MasterError
from emulator.dataset.sessions import describe, open_command_session, open_session

PARTITIONS, CODEGEN = "spark.sql.shuffle.partitions", "spark.sql.codegen.factoryMode"


def settings(session):
    return session.conf.get(PARTITIONS), session.conf.get(CODEGEN)


def test_each_session_has_the_settings_of_its_own_data(spark):
    before = settings(spark)
    small, large = (open_session("local[2]", rows=rows) for rows in (10, 50_000_000))

    assert settings(small) == ("1", "NO_CODEGEN")
    assert settings(large)[0] == "20"
    assert settings(spark) == before
    assert describe(small) == describe(large) == f"Spark {spark.version}, local[2]"


def test_a_command_has_its_workers_import_nothing_from_the_working_directory(spark, monkeypatch):
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    before = signal.getsignal(signal.SIGINT)
    try:
        open_command_session("local[2]", rows=10)
    finally:
        signal.signal(signal.SIGINT, before)

    assert os.environ["PYTHONSAFEPATH"] == "1"
    assert spark.sparkContext.parallelize([0], 1).map(lambda _: sys.flags.safe_path).first()


def test_a_session_with_another_master_is_refused_while_one_runs(spark):
    with pytest.raises(
        MasterError, match=r"^local\[1\]: a Spark session with local\[2\] runs in this process; stop it"
    ):
        open_session("local[1]", rows=10)


def test_a_process_with_a_classic_session_cannot_use_connect(spark):
    with pytest.raises(NoConnectError, match="a Spark session with its own JVM runs in this process"):
        connect_session("sc://127.0.0.1:1", {})


@pytest.mark.parametrize(("module", "package"), [("grpc", "grpcio"), ("grpc_status", "grpcio-status")])
def test_connect_without_its_packages_names_them_and_the_line_to_type(monkeypatch, module, package):
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(NoConnectError) as refused:
        require_connect()

    assert str(refused.value) == f"Spark Connect needs {package}: pip install 'rocketmq-emulator[spark]'"


def test_the_url_of_the_ui_is_noted_or_why_there_is_none(spark):
    notes = []
    open_session("local[2]", rows=10, ui=True, note=notes.append)

    assert notes == ["Spark UI: none, since a session without it runs in this process"]

"""Interrupts, crashes, closing, forgetting, the end of Python: a cluster never stays behind, and says what happened."""

import contextlib
import gc
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import trio._core._run as trio_run

import emulator
from emulator.cluster.cluster import NodeCrashedError
from emulator.notebook.engine import ClusterEndedError
from emulator.run import RunError
from emulator.spec import SpecError
from emulator.trace.run_directory import open_run
from support.small_cluster import launched, scenario, script


def threads_of_clusters():
    return [thread for thread in threading.enumerate() if thread.name.startswith("cluster ")]


def open_sockets():
    """What this process holds open: sockets and event polls."""
    found = []
    for descriptor in sorted(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(FileNotFoundError):  # that of the listing itself
            found.append(str(descriptor.readlink()).split(":[")[0])
    return sorted(name for name in found if name.startswith(("socket", "anon_inode")))


def settings_of_the_process():
    """What a cluster changes while it lives."""
    return gc.get_threshold(), gc.get_freeze_count(), trio_run._r


@pytest.mark.parametrize("mode", ["sim", "fast", "live"])
@pytest.mark.usefixtures("nothing_is_frozen")
def test_closing_leaves_an_ordinary_run_and_no_thread_socket_or_setting(tmp_path, mode):
    gc.collect()
    before = (open_sockets(), settings_of_the_process())
    cluster = launched(tmp_path, mode=mode)
    cluster.advance(200 if mode == "live" else 20_000)
    cluster.cut("c1", "broker-a")
    assert threads_of_clusters()
    path = cluster.close()
    assert path == cluster.path
    assert open_run(path).manifest["ended"] == "complete"
    assert (path / "by_hand.toml").exists()
    assert threads_of_clusters() == []
    gc.collect()
    assert (open_sockets(), settings_of_the_process()) == before
    assert cluster.close() == path, "to close twice does nothing"


def test_after_the_end_every_call_says_so_in_one_line(tmp_path):
    with launched(tmp_path) as cluster:
        cluster.advance(1_000)
    for call in (cluster.status, lambda: cluster.advance(1), lambda: cluster.kill("c1"), lambda: cluster.ownership):
        with pytest.raises(ClusterEndedError) as raised:
            call()
        assert str(raised.value) == f"the cluster has ended: it was closed; its trace is in {cluster.path}"
    assert cluster.now_ms == 1_000
    assert "ended at 1.000 s" in repr(cluster)
    assert cluster._repr_mimebundle_() == {"text/plain": repr(cluster)}


def test_a_cluster_that_is_closed_before_its_nodes_are_ready_ends_where_it_stands(tmp_path):
    cluster = launched(tmp_path)
    cluster.advance(1)
    cluster.cut("c1", "broker-a")
    manifest = open_run(cluster.close()).manifest
    assert manifest["ended"] == "complete"
    assert manifest["virtual_s"] == 0.001


def test_a_node_that_crashes_ends_the_cluster_and_later_calls_say_why(tmp_path):
    cluster = launched(tmp_path)
    cluster.advance(5_000)
    world = cluster._engine.session.cluster.world
    process = cluster._engine.session.cluster.hosts["broker-a"].process

    def bug():
        raise ZeroDivisionError("a bug")

    world.timeline.call_at(6_000_000_000, bug, process)
    with pytest.raises(NodeCrashedError) as raised:
        cluster.advance(5_000)
    assert str(raised.value) == (
        f"broker-a: ZeroDivisionError: a bug; this is a bug: its traceback is in {cluster.path / 'log.jsonl'}"
    )
    with pytest.raises(ClusterEndedError, match="the cluster has ended: broker-a: ZeroDivisionError: a bug; its trace"):
        cluster.status()
    assert threads_of_clusters() == []
    assert cluster.close() == cluster.path, "who has been reported is not reported again"
    assert open_run(cluster.path).manifest["crashes"] == ["broker-a: ZeroDivisionError: a bug"]


def test_when_the_emulation_itself_fails_the_call_says_why(tmp_path):
    cluster = launched(tmp_path)
    cluster.advance(5_000)
    world = cluster._engine.session.cluster.world
    world.timeline.call_at(6_000_000_000, lambda: world.failure.report(OSError(28, "No space left on device")))
    with pytest.raises(ClusterEndedError, match="the trace cannot be written: No space left on device"):
        cluster.advance(5_000)
    with pytest.raises(RunError):
        cluster.close()
    assert threads_of_clusters() == []


def interrupt_after(seconds):
    main = threading.main_thread().ident
    timer = threading.Timer(seconds, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    return timer


def test_an_interrupt_stops_time_where_it_has_come_to_and_the_cluster_lives_on(tmp_path):
    with launched(tmp_path) as cluster:
        cluster.advance(5_000)
        timer = interrupt_after(0.3)
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            cluster.advance(10**9)
        assert time.monotonic() - begin < 5
        timer.join()
        stopped_ms = cluster.now_ms
        assert 5_000 < stopped_ms < 10**9
        assert cluster.status().lines[0].startswith(f"{stopped_ms / 1_000:.3f} s")
        cluster.advance(1_000)
        assert cluster.now_ms == stopped_ms + 1_000
        assert cluster.cut("c1", "broker-a").lines == ("cut-1: cut c1 <-> broker-a",)


def test_an_interrupt_ends_a_call_that_would_never_end_by_itself(tmp_path):
    import trio

    with launched(tmp_path) as cluster:
        engine = cluster._engine

        async def never(session):
            await engine.let_time_pass(trio.sleep_forever, session)

        timer = interrupt_after(0.2)
        with pytest.raises(KeyboardInterrupt):
            engine.call(never)
        timer.join()
        now_ms = cluster.now_ms
        assert now_ms > 0
        cluster.status()
        assert cluster.now_ms == now_ms


def test_a_cluster_that_no_consumer_holds_any_more_is_closed(tmp_path):
    cluster = launched(tmp_path)
    cluster.advance(1_000)
    path = cluster.path
    del cluster
    gc.collect()
    assert threads_of_clusters() == []
    assert open_run(path).manifest["virtual_s"] == 1.0


def test_an_error_inside_with_closes_the_cluster_and_is_not_hidden(tmp_path):
    cluster = launched(tmp_path)
    with pytest.raises(ZeroDivisionError), cluster:
        raise ZeroDivisionError
    assert threads_of_clusters() == []
    assert open_run(cluster.path).manifest["ended"] == "complete"


@pytest.mark.usefixtures("nothing_is_frozen")
def test_two_clusters_run_side_by_side_and_neither_disturbs_the_other(tmp_path):
    def digest(cluster):
        return open_run(cluster.close()).manifest["digest"]

    alone = launched(tmp_path)
    alone.advance(40_000)
    expected = digest(alone)
    before = settings_of_the_process()
    for mode in ("sim", "fast"):
        item, other = launched(tmp_path, mode=mode), launched(tmp_path, mode=mode)
        callers = [threading.Thread(target=cluster.advance, args=(20_000,)) for cluster in (item, other)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        item.advance(20_000)
        assert digest(item) == expected
        other.advance(20_000)  # the first to come has gone, and took no setting with it
        assert digest(other) == expected
    assert settings_of_the_process() == before


def test_several_threads_may_call_one_cluster_and_are_served_one_after_the_other(tmp_path):
    with launched(tmp_path) as cluster:
        callers = [threading.Thread(target=cluster.advance, args=(100,)) for _ in range(20)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert cluster.now_ms == 2_000


def python(code, *, cwd):
    return subprocess.run(
        [sys.executable, "-c", script(code)], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


def test_python_ends_without_a_word_and_the_run_is_complete(tmp_path):
    done = python(
        """
        cluster = emulator.launch(FIRST_CLUSTER, mode="fast")
        cluster.advance(3_000)
        cluster.cut("c1", "broker-a")
        print(cluster.path)
        """,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "runs/first-cluster-fast-seed1-1\n"
    assert open_run(tmp_path / "runs" / "first-cluster-fast-seed1-1").manifest["virtual_s"] == 3.0


def test_an_uncaught_error_ends_python_with_that_error_and_the_run_is_complete(tmp_path):
    done = python("cluster = emulator.launch(FIRST_CLUSTER); cluster.kill('absent')", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "emulator.console.verb.VerbError: there is no node absent; there are "
    )
    assert open_run(tmp_path / "runs" / "first-cluster-sim-seed1-1").manifest["ended"] == "complete"


def test_importing_emulator_loads_neither_trio_nor_spark(tmp_path):
    done = python(
        """
        import sys
        print([name for name in ("trio", "pyspark", "pyarrow", "pandas", "attrs") if name in sys.modules])
        assert "launch" in dir(emulator)
        cluster = emulator.launch(FIRST_CLUSTER)
        cluster.advance(5_000)
        cluster._repr_mimebundle_(), cluster.history, cluster.views()
        print([name for name in ("pyspark", "pandas") if name in sys.modules])
        """,
        cwd=tmp_path,
    )
    assert done.stdout.splitlines() == ["[]", "[]"], done.stderr


def test_what_cannot_be_launched_is_refused_in_one_line_and_leaves_nothing(tmp_path):
    with pytest.raises(SpecError, match=r"nowhere\.toml"):
        emulator.launch(tmp_path / "nowhere.toml", runs=tmp_path / "runs")
    with pytest.raises(ValueError, match="mode: expected live, fast, sim, not 'slow'"):
        emulator.launch(scenario(), mode="slow", runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
    (tmp_path / "runs").write_text("a file is in the way")
    with pytest.raises(RunError, match="no run directory can be created"):
        emulator.launch(scenario(), runs=tmp_path / "runs")
    assert threads_of_clusters() == []


def test_nothing_listens_after_a_live_cluster_has_been_closed(tmp_path):
    cluster = launched(tmp_path, mode="live")
    cluster.advance(500)
    hub = cluster._engine.session.cluster.world.fabric
    addresses = [listener.wire.getsockname() for listener in hub.listeners.values()]
    assert addresses
    cluster.close()
    for address in addresses:
        with pytest.raises(ConnectionRefusedError), socket.create_connection(address, timeout=2):
            pass

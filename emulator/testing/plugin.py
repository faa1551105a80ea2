"""The pytest plugin: the fixture `rocketmq_cluster` starts live clusters for tests of applications.

The fixture takes a scenario or a scenario file, starts the cluster in real time on
addresses of its own, and ends it after the test:

    def test_my_application(rocketmq_cluster):
        cluster = rocketmq_cluster("cluster.toml")
        application = start_it(namesrv_addr=cluster.namesrv_addr)
        cluster.kill("broker-a")
        ...

Every verb of the console is a method of the cluster. pytest loads this module in
every suite where the wheel is installed, so its imports must be fast.
"""

import signal
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from emulator.notebook.handle import ClusterHandle
    from emulator.spec import Scenario


_READY_WITHIN = "60s"
_RUNS: pytest.StashKey[list[Path]] = pytest.StashKey()


@pytest.fixture
def rocketmq_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> "Iterator[Callable[..., ClusterHandle]]":
    """A function that starts a live cluster from a scenario or its file, and returns its handle.

    Its options `listen`, `grpc` and `allow_code` are those of `emulator.launch`: `"127.0.0.1:9876"` puts all nodes on
    one address, and `grpc="127.0.0.1:8081"` proxies.

    It returns when every node is ready and views agree. After the test all clusters are closed, also when SIGTERM ends
    the test process, as of a cancelled CI job: it does what Ctrl-C does, unless the suite handles it itself.
    """
    from emulator.notebook.handle import launch  # noqa: PLC0415 - suites without clusters must not wait for it

    clusters: list[ClusterHandle] = []

    def start(
        spec: "Scenario | str | Path",
        *,
        listen: str | None = None,
        grpc: str | None = None,
        allow_code: bool = False,
    ) -> "ClusterHandle":
        cluster = launch(spec, mode="live", runs=tmp_path / "rmqemu", listen=listen, grpc=grpc, allow_code=allow_code)
        clusters.append(cluster)
        request.node.stash.setdefault(_RUNS, []).append(cluster.path)
        cluster.until("agree", "within", _READY_WITHIN)
        return cluster

    hears_sigterm = _hear_sigterm()
    yield start
    for cluster in reversed(clusters):
        cluster.close()
    if hears_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _hear_sigterm() -> bool:
    """Have SIGTERM end the tests like Ctrl-C, the second one at once; returns whether it does."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        return False
    signal.signal(signal.SIGTERM, _interrupt)
    return True


def _interrupt(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise KeyboardInterrupt


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the run directories of its clusters to the report of a failed test."""
    report = yield
    runs = item.stash.get(_RUNS, [])
    if report.failed and runs:
        report.sections.append(("rmqemu", "\n".join(f"what happened: rmqemu analyze {run}" for run in runs)))
    return report

"""A StatefulSet starts its pods in order, scales them, and revives them under the same names."""

from emulator.testing import GROUP, execute
from nodes.config import StatefulSetConfig
from nodes.protocol.headers_statefulset import ProbePath
from support.statefulsets import a_statefulset, pods, ready_ms


def lives(trace, event):
    return [(row.node, round(row.at_s, 1)) for row in trace.select("lifecycle", event=event, role="consumer")]


def test_each_pod_starts_when_the_one_before_is_ready():
    trace = execute(a_statefulset(3), for_ms=5_000)

    ready = [ready_ms(trace, f"consumer-{ordinal}") for ordinal in range(3)]
    started = {row.node: row.at_ms for row in trace.select("lifecycle", event="started", role="consumer")}
    assert list(started) == ["consumer-0", "consumer-1", "consumer-2"]
    assert started["consumer-1"] == ready[0]
    assert started["consumer-2"] == ready[1]


def test_a_scale_down_stops_the_last_pod_first_and_a_scale_up_starts_it_again():
    async def script(stage):
        await stage.at_ms(5_000)
        first = await stage.begin(f"scale {GROUP} 1")
        await stage.at_ms(20_000)
        assert stage.cluster.members(GROUP) == ("consumer-0",)
        await stage.begin(f"scale {GROUP} 5")
        await stage.at_ms(40_000)
        assert stage.cluster.members(GROUP) == tuple(f"consumer-{ordinal}" for ordinal in range(5))
        await stage.end(first)

    trace = execute(a_statefulset(3), script, for_ms=50_000)

    assert [node for node, _ in lives(trace, "stopped")] == ["consumer-2", "consumer-1"]
    started = [node for node, _ in lives(trace, "started")]
    assert started[3:] == ["consumer-1", "consumer-2", "consumer-3", "consumer-4"]


def test_a_dead_pod_is_revived_under_its_name_at_once_and_then_after_a_pause():
    async def script(stage):
        for at_ms in (5_000, 8_000):
            await stage.at_ms(at_ms)
            await stage.kill("consumer-0")

    trace = execute(a_statefulset(2), script, for_ms=30_000)

    began = [at_s for node, at_s in lives(trace, "started") if node == "consumer-0"]
    assert len(began) == 3
    assert 5 <= began[1] <= 6.1
    assert 18 <= began[2] <= 19.1


def test_a_pod_that_a_fault_keeps_down_comes_back_when_the_fault_ends():
    async def script(stage):
        await stage.at_ms(5_000)
        fault = await stage.begin("kill consumer-1")
        await stage.at_ms(25_000)
        assert pods(stage.trace)[-1][1] == {"consumer-0": "ready", "consumer-1": "pending"}
        await stage.end(fault)

    trace = execute(a_statefulset(2), script, for_ms=40_000)

    assert [at_s for node, at_s in lives(trace, "started") if node == "consumer-1"][1:] == [25.0]


def test_a_suspended_pod_fails_its_probes_and_is_killed_after_the_grace_period():
    config = StatefulSetConfig(termination_grace_period_seconds=5)

    async def script(stage):
        await stage.at_ms(15_000)
        await stage.host("consumer-0").suspend()

    trace = execute(a_statefulset(2, config=config), script, for_ms=80_000)

    # Probes every 10 s: the third failure is that of 40 s, reported after 1 s; 5 s of grace; a look every second.
    (killed,) = [at_s for node, at_s in lives(trace, "killed") if node == "consumer-0"]
    assert 46 <= killed <= 47.1
    assert pods(trace)[-1][1] == {"consumer-0": "ready", "consumer-1": "ready"}


def test_the_swapped_paths_of_the_manifest_restart_a_pod_that_has_not_started_yet():
    def starts(**paths):
        config = StatefulSetConfig(liveness_probe_failure_threshold=1, termination_grace_period_seconds=2, **paths)
        return len(lives(execute(a_statefulset(1, config=config), for_ms=60_000), "started"))

    right = {"liveness_probe_path": ProbePath.LIVENESS, "readiness_probe_path": ProbePath.READINESS}
    assert starts(**right) == 1
    assert starts() == 4  # again at once, after 10 s, and after 20 s


def test_a_cut_between_the_api_node_and_a_pod_restarts_the_pod_although_nothing_is_wrong_with_it():
    async def script(stage):
        await stage.at_ms(5_000)
        stage.cut("kubernetes", "consumer-1")
        await stage.at_ms(40_000)
        stage.heal("kubernetes", "consumer-1")

    trace = execute(a_statefulset(2), script, for_ms=70_000)

    assert [node for node, _ in lives(trace, "stopped")] == ["consumer-1"]
    assert pods(trace)[-1][1] == {"consumer-0": "ready", "consumer-1": "ready"}


def test_one_broken_pod_stops_every_scaling():
    config = StatefulSetConfig(liveness_probe_failure_threshold=1_000)

    async def script(stage):
        await stage.at_ms(5_000)
        stage.cut("kubernetes", "consumer-0")
        await stage.at_ms(40_000)
        await stage.begin(f"scale {GROUP} 1")

    trace = execute(a_statefulset(3, config=config), script, for_ms=80_000)

    assert pods(trace)[-1][1] == {"consumer-0": "running", "consumer-1": "ready", "consumer-2": "ready"}


def test_the_api_server_knows_its_pods_and_the_scale_again_after_a_restart():
    async def script(stage):
        await stage.at_ms(5_000)
        await stage.begin(f"scale {GROUP} 3")
        await stage.at_ms(30_000)
        await stage.kill("kubernetes")
        await stage.kill("consumer-2")
        await stage.at_ms(45_000)
        stage.start("kubernetes")

    trace = execute(a_statefulset(2), script, for_ms=60_000)

    assert pods(trace)[-1][1] == {"consumer-0": "ready", "consumer-1": "ready", "consumer-2": "ready"}
    assert [at_s for node, at_s in lives(trace, "started") if node == "consumer-2"][1:] == [45.0]

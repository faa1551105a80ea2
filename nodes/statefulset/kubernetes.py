"""A Kubernetes control plane in one process: API server, StatefulSet controller, and the kubelets of the pods."""

import json
from collections.abc import Mapping
from typing import Protocol

import attrs
import trio

from nodes.allocation.ordinal import ordinal_of, pod_name
from nodes.beliefs import Belief, BeliefKind, Json, Lifecycle, LifecycleEvent
from nodes.config import StatefulSetConfig
from nodes.config.statefulset import API_PORT, POD_PORT
from nodes.host import Channel, Host
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_statefulset import (
    ProbePath,
    ProbeRequestHeader,
    PutScaleRequestHeader,
    RolloutRequestHeader,
    ScaleHeader,
    StatefulSetHeader,
)
from nodes.protocol.registry import decode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import RemotingError
from nodes.rpc.server import Handlers, RpcServer
from nodes.rpc.typed import invoke, success
from nodes.statefulset.tables.controller import CreatePod, DeletePod, Revisions, Wanted, is_updated, next_step
from nodes.statefulset.tables.pod import Pod, PodAction, ProbeKind
from nodes.threads import ScheduledThread
from nodes.units import MS_PER_S, NS_PER_MS, NS_PER_S
from nodes.values import frozen


class ContainerRuntime(Protocol):
    """Starts and ends the processes of pods, by name; no call waits."""

    def running(self) -> tuple[str, ...]:
        """Pods whose process lives, suspended ones included."""

    def address(self, pod: str) -> str:
        """IP address of a pod that was started."""

    def revision(self, pod: str) -> int:
        """The revision of the template from which a pod was started last."""

    def start(self, pod: str, revision: int) -> bool:
        """Start the process of a pod on its machine; returns whether there is a machine that can run it now."""

    def terminate(self, pod: str) -> None:
        """SIGTERM; a suspended process receives it when it runs again."""

    def kill(self, pod: str) -> None:
        """SIGKILL."""

    def remove(self, pod: str) -> None:
        """The pod does not exist any more; its process has ended."""


_RELIST_MS = 1_000
"""Time between two looks of the kubelet at the processes of its pods."""
_FILE = "statefulsets.json"


@frozen
class StatefulSet:
    """A StatefulSet as its manifest describes it."""

    name: str
    replicas: int
    config: StatefulSetConfig


@frozen
class _Probe:
    """One probe of a StatefulSet's pods."""

    kind: ProbeKind
    path: ProbePath
    initial_delay_s: int
    period_s: int
    timeout_s: int


@attrs.define
class _Controlled:
    """A StatefulSet and its pods."""

    manifest: StatefulSet
    replicas: int
    revisions: Revisions = Revisions()
    pods: dict[int, Pod] = attrs.Factory(dict)
    """Ordinal -> pod."""

    @property
    def wanted(self) -> Wanted:
        """What the controller works towards."""
        return Wanted(self.replicas, self.manifest.config, self.revisions)


class Kubernetes:
    """The API node of one or more StatefulSets.

    It stands for the kubelets, too: probes travel from this node to the pods, so a cut between the two makes them fail,
    and while this node is down or suspended no pod is probed, created, deleted or started again. Real kubelets would
    go on. Desired replicas and revisions survive the process, as in etcd.

    Args:
        statefulsets: as first deployed; a later scale takes precedence.
        runtime: starts and ends the processes of pods.

    Emits:
        PODS whenever the replicas or the phase of a pod change.
    """

    def __init__(self, host: Host, statefulsets: tuple[StatefulSet, ...], runtime: ContainerRuntime) -> None:
        self._host = host
        self._runtime = runtime
        stored = _stored(host.disk.read(_FILE))
        self._sets = {
            statefulset.name: _Controlled(
                statefulset, *stored.get(statefulset.name, (statefulset.replicas, Revisions()))
            )
            for statefulset in statefulsets
        }
        self._client = RpcClient(host)
        self._server = RpcServer(host)
        self._server.serve(self.handlers())
        self._believed: dict[str, Json] = {}
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Serve until a shutdown is requested; pods live on without it."""
        self._adopt_running()
        self._host.listen(API_PORT, self._server)
        self._host.record(Lifecycle(LifecycleEvent.READY))
        kubelet = ScheduledThread(self._host, "kubelet")
        kubelet.with_fixed_delay("relist", self._relist, 0, _RELIST_MS)
        kubelet.start()
        await self._stopping.wait()

    def request_shutdown(self) -> None:
        """Start the shutdown, which is only the end of the process."""
        self._stopping.set()

    # --- the API --------------------------------------------------------------------

    def handlers(self) -> Handlers:
        """The scale sub-resource of StatefulSets, and their templates."""
        return {
            RequestCode.GET_SCALE: self._get_scale,
            RequestCode.PUT_SCALE: self._put_scale,
            RequestCode.ROLLOUT: self._roll_out,
        }

    def _get_scale(self, _channel: Channel, request: Command) -> Command:
        name = decode_header(StatefulSetHeader, request.ext_fields).statefulset
        known = self._sets.get(name)
        if known is None:
            return _not_found(request, name)
        return success(request, ScaleHeader(known.replicas, len(known.pods)))

    def _put_scale(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(PutScaleRequestHeader, request.ext_fields)
        known = self._sets.get(header.statefulset)
        if known is None:
            return _not_found(request, header.statefulset)
        if header.spec_replicas < 0:
            return request.answer(ResponseCode.INVALID_PARAMETER, f"spec.replicas is {header.spec_replicas}, below 0")
        known.replicas = header.spec_replicas
        self._store()
        self._sync(known)
        return success(request)

    def _roll_out(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(RolloutRequestHeader, request.ext_fields)
        known = self._sets.get(header.statefulset)
        if known is None:
            return _not_found(request, header.statefulset)
        known.revisions = known.revisions.rolled(undo=header.undo)
        self._store()
        self._sync(known)
        return success(request)

    def _store(self) -> None:
        sets = {name: (item.replicas, *attrs.astuple(item.revisions)) for name, item in self._sets.items()}
        self._host.disk.write(_FILE, json.dumps(sets).encode())

    # --- controller and kubelet --------------------------------------------------------

    def _adopt_running(self) -> None:
        """Know the pods that run already, because this node was down: they are ready when a probe succeeds."""
        for name in self._runtime.running():
            known = self._sets.get(name.rpartition("-")[0])
            if known is not None:
                pod = known.pods[ordinal_of(name)] = Pod(name, known.manifest.config, self._runtime.revision(name))
                self._begin(pod, known)

    async def _relist(self) -> None:
        """Compare the pods with the processes that run."""
        running = self._runtime.running()
        for known in self._sets.values():
            for pod in known.pods.values():
                is_up = pod.name in running
                if pod.is_up and not is_up:
                    pod.ended(self._now_ms())
                elif is_up and not pod.is_up:
                    self._begin(pod, known)
            self._sync(known)

    def _sync(self, known: _Controlled) -> None:
        """Do everything that can be done now."""
        self._act(known)
        while (step := next_step(known.pods, known.wanted)) is not None:
            match step:
                case CreatePod(ordinal, revision):
                    name = pod_name(known.manifest.name, ordinal)
                    known.pods[ordinal] = Pod(name, known.manifest.config, revision)
                case DeletePod(ordinal):
                    known.pods[ordinal].delete()
            self._act(known)
        revisions = known.revisions
        if revisions.current != revisions.update and is_updated(known.pods, known.wanted):
            known.revisions = attrs.evolve(revisions, current=revisions.update)
            self._store()
        self._believe(known)

    def _act(self, known: _Controlled) -> None:
        for ordinal, pod in list(known.pods.items()):
            while (action := pod.next_action(self._now_ms())) is not None:
                match action:
                    case PodAction.START:
                        if not self._runtime.start(pod.name, pod.revision):
                            break
                        self._begin(pod, known)
                    case PodAction.TERMINATE:
                        self._runtime.terminate(pod.name)
                    case PodAction.KILL:
                        self._runtime.kill(pod.name)
                        break
                    case PodAction.REMOVE:
                        self._runtime.remove(pod.name)
                        del known.pods[ordinal]
                        break

    def _begin(self, pod: Pod, known: _Controlled) -> None:
        """A process of a pod runs: probe it."""
        pod.started(self._now_ms())
        for probe in _probes(known.manifest.config):
            self._host.start_soon(self._probe, pod, known, probe, name=f"{probe.kind} probe")

    async def _probe(self, pod: Pod, known: _Controlled, probe: _Probe) -> None:
        """Probe one process of a pod until it ends."""
        process = pod.starts
        due_ns = self._host.clock.monotonic_ns() + probe.initial_delay_s * NS_PER_S
        while True:
            await self._host.sleep_until_ns(due_ns)
            if not pod.is_up or pod.starts != process:
                return
            self._host.begin_cause(f"{probe.kind} probe")
            succeeded = await self._ask(pod.name, probe)
            if pod.starts == process:
                pod.probed(probe.kind, succeeded=succeeded)
                self._sync(known)
            due_ns = max(due_ns + probe.period_s * NS_PER_S, self._host.clock.monotonic_ns())

    async def _ask(self, pod: str, probe: _Probe) -> bool:
        address = f"{self._runtime.address(pod)}:{POD_PORT}"
        try:
            answer = await invoke(
                self._client,
                address,
                RequestCode.PROBE,
                ProbeRequestHeader(probe.path),
                timeout_ms=probe.timeout_s * MS_PER_S,
            )
        except RemotingError:
            return False
        return answer.code == ResponseCode.SUCCESS

    def _now_ms(self) -> int:
        return self._host.clock.monotonic_ns() // NS_PER_MS

    def _believe(self, known: _Controlled) -> None:
        phases = {known.pods[ordinal].name: str(known.pods[ordinal].phase) for ordinal in sorted(known.pods)}
        value: Json = {"replicas": known.replicas, "pods": phases}
        if known.revisions.newest > 1:
            value["revisions"] = {
                known.pods[ordinal].name: known.pods[ordinal].revision for ordinal in sorted(known.pods)
            }
        if self._believed.get(known.manifest.name) != value:
            self._believed[known.manifest.name] = value
            self._host.record(Belief(BeliefKind.PODS, known.manifest.name, value))


def _probes(config: StatefulSetConfig) -> tuple[_Probe, _Probe]:
    return (
        _Probe(
            ProbeKind.LIVENESS,
            config.liveness_probe_path,
            config.liveness_probe_initial_delay_seconds,
            config.liveness_probe_period_seconds,
            config.liveness_probe_timeout_seconds,
        ),
        _Probe(
            ProbeKind.READINESS,
            config.readiness_probe_path,
            config.readiness_probe_initial_delay_seconds,
            config.readiness_probe_period_seconds,
            config.readiness_probe_timeout_seconds,
        ),
    )


def _stored(content: bytes | None) -> Mapping[str, tuple[int, Revisions]]:
    """StatefulSet -> replicas and revisions."""
    stored: Mapping[str, tuple[int, ...]] = {} if content is None else json.loads(content)
    return {name: (replicas, Revisions(*numbers)) for name, (replicas, *numbers) in stored.items()}


def _not_found(request: Command, name: str) -> Command:
    return request.answer(ResponseCode.QUERY_NOT_FOUND, f'statefulsets.apps "{name}" not found')

"""An external process that reads the replicas from the API server, stores them, and notifies the pods."""

import json
from collections.abc import Mapping
from functools import partial

import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.cause import cause
from nodes.host import Channel, Host
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command, CommandFlag
from nodes.protocol.headers_statefulset import ScaleHeader, StatefulSetHeader
from nodes.protocol.registry import decode_header, encode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.rpc.server import Handlers, RpcServer
from nodes.rpc.typed import invoke, succeeded, success
from nodes.threads import ScheduledThread
from nodes.units import MS_PER_S

SCALER_PORT = 8_080
_FILE = "scales.json"
_TIMEOUT_MS = 3_000


class Scaler:
    """Reports pods how many replicas are desired, as it has last read, even while the API server is away.

    A pod asks once and is notified over the same connection from then on; a notification is sent once.

    Args:
        api_address: `ip:port` of the API server.
        period_s: mapping StatefulSet -> seconds between two questions to the API server.
    """

    def __init__(self, host: Host, api_address: str, period_s: Mapping[str, int]) -> None:
        self._host = host
        self._api_address = api_address
        self._period_s = period_s
        retained = host.disk.read(_FILE)
        self._scales: dict[str, int] = {} if retained is None else json.loads(retained)
        self._pods: dict[str, dict[int, Channel]] = {}
        """StatefulSet -> connection -> channel of a pod that has asked."""
        self._client = RpcClient(host)
        self._server = RpcServer(host, on_channel_closed=self._on_channel_closed)
        self._server.serve(self.handlers())
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Read and report until a shutdown is requested."""
        self._host.listen(SCALER_PORT, self._server)
        for name, period_s in self._period_s.items():
            thread = ScheduledThread(self._host, f"scaler of {name}")
            thread.with_fixed_delay("readScale", partial(self._read, name), 0, period_s * MS_PER_S)
            thread.start()
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()

    def request_shutdown(self) -> None:
        """Start the shutdown, which is only the end of the process."""
        self._stopping.set()

    def handlers(self) -> Handlers:
        """The question of a pod, with the code that the API server answers, too."""
        return {RequestCode.GET_SCALE: self._get_scale}

    def _get_scale(self, channel: Channel, request: Command) -> Command:
        name = decode_header(StatefulSetHeader, request.ext_fields).statefulset
        replicas = self._scales.get(name)
        if replicas is None:
            return request.answer(ResponseCode.QUERY_NOT_FOUND, f"the replicas of {name} are not known yet")
        self._pods.setdefault(name, {})[channel.id] = channel
        return success(request, ScaleHeader(replicas, replicas))

    async def _read(self, name: str) -> None:
        try:
            answer = succeeded(
                await invoke(
                    self._client,
                    self._api_address,
                    RequestCode.GET_SCALE,
                    StatefulSetHeader(name),
                    timeout_ms=_TIMEOUT_MS,
                )
            )
        except (RemotingError, BrokerError) as error:
            self._host.log.warning("reading the replicas failed", api=self._api_address, error=str(error))
            return
        replicas = decode_header(ScaleHeader, answer.ext_fields).spec_replicas
        if replicas != self._scales.get(name):
            self._scales[name] = replicas
            self._host.disk.write(_FILE, json.dumps(self._scales).encode())
            self._notify(name, replicas)

    def _notify(self, name: str, replicas: int) -> None:
        fields = encode_header(ScaleHeader(replicas, replicas))
        notice = Command(int(RequestCode.REPLICAS_CHANGED), CommandFlag.ONEWAY, ext_fields=fields, cause=cause.get())
        self._host.send_each(self._pods.get(name, {}).values(), notice)

    def _on_channel_closed(self, channel: Channel) -> None:
        for pods in self._pods.values():
            pods.pop(channel.id, None)

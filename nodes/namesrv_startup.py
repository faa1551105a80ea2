"""A nameserver's process with a controller in it."""

from collections.abc import Mapping

import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.config import NameserverWithControllerConfig
from nodes.controller.controller import Controller
from nodes.host import Host
from nodes.live_config import with_stored_changes
from nodes.nameserver.nameserver import Nameserver


class NameserverWithController:
    """A nameserver and a controller that share process and options, and nothing else.

    Each has its own port, clients and tables; the controller reaches brokers and other controllers through the network.
    What `updateNamesrvConfig` has changed stands in the one file of options, so the next controller has it, too.

    Args:
        host: machine of the process.
        config: options of both.
        group: name of the group of controllers.
        self_id: of this controller, `n0`.
        peers: id -> address of all controllers, this one included.

    Mirrors:
        `org.apache.rocketmq.namesrv.NamesrvStartup#main`.
    """

    def __init__(
        self, host: Host, config: NameserverWithControllerConfig, group: str, self_id: str, peers: Mapping[str, str]
    ) -> None:
        config = with_stored_changes(host.disk, config)
        self._host = host
        self.nameserver = Nameserver(host, config)
        enabled = config.enable_controller_in_namesrv
        self.controller = Controller(host, config, group, self_id, peers) if enabled else None
        """None: `updateNamesrvConfig` has switched it off."""
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Start the nameserver, then the controller, and serve until a shutdown is requested."""
        self.nameserver.start()
        if self.controller is not None:
            self.controller.start()
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()

    def request_shutdown(self) -> None:
        """Start the shutdown of both, which is only the end of the process."""
        self._stopping.set()

"""The options of a nameserver, as operators read and change them.

Mirrors:
    `org.apache.rocketmq.namesrv.processor.DefaultRequestProcessor#getConfig`, `#updateConfig`.
"""

from nodes.config import NameserverConfig
from nodes.config_options import ConfigError
from nodes.config_text import to_lines
from nodes.host import Channel
from nodes.live_config import LiveConfig
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.rpc.server import RpcServer
from nodes.rpc.typed import success


class ConfigRequests:
    """Answers 318 and 319."""

    def __init__(self, server: RpcServer, config: LiveConfig[NameserverConfig]) -> None:
        self._config = config
        server.register(RequestCode.GET_NAMESRV_CONFIG, self._get_config)
        server.register(RequestCode.UPDATE_NAMESRV_CONFIG, self._update_config)

    def _get_config(self, _channel: Channel, request: Command) -> Command:
        return success(request, None, to_lines(self._config.values()).encode())

    def _update_config(self, _channel: Channel, request: Command) -> Command:
        try:
            self._config.update((request.body or b"").decode(errors="replace"))
        except PermissionError as error:
            return request.answer(ResponseCode.NO_PERMISSION, str(error))
        except (ConfigError, ValueError) as error:
            return request.answer(ResponseCode.SYSTEM_ERROR, str(error))
        return success(request)

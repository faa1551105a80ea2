"""Requests that show and change the options of a node whose options are all of one class."""

from typing import Generic, TypeVar

from nodes.config.options import Config
from nodes.config.text import to_lines
from nodes.host import Channel
from nodes.live_config import LiveConfig
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success

_Config = TypeVar("_Config", bound=Config)


class ConfigRequests(Generic[_Config]):
    """Answers GET_NAMESRV_CONFIG (319) and UPDATE_NAMESRV_CONFIG (318), or the same of a controller (1010, 1009)."""

    def __init__(self, config: LiveConfig[_Config], *, get: RequestCode, update: RequestCode) -> None:
        self._config = config
        self._get = get
        self._update = update

    def handlers(self) -> Handlers:
        """Both requests for the configuration."""
        return {self._get: self._get_config, self._update: self._update_config}

    def _get_config(self, _channel: Channel, request: Command) -> Command:
        return success(request, None, to_lines(self._config.values()).encode())

    def _update_config(self, _channel: Channel, request: Command) -> Command:
        return update_config(self._config, request)


def update_config(config: LiveConfig[_Config], request: Command) -> Command:
    """Change the options that a request names; returns its answer."""
    try:
        config.update((request.body or b"").decode(errors="replace"))
    except PermissionError as error:
        return request.answer(ResponseCode.NO_PERMISSION, str(error))
    except ValueError as error:
        return request.answer(ResponseCode.SYSTEM_ERROR, str(error))
    return success(request)

"""Requests that show and change the options of a node whose options are all of one class."""

from collections.abc import Callable
from typing import Generic, TypeVar

from nodes.config.java_properties import MalformedPropertiesError
from nodes.config.options import Config
from nodes.config.text import to_lines
from nodes.fields import FieldError
from nodes.host import Channel
from nodes.live_config import LiveConfig
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success

_Config = TypeVar("_Config", bound=Config)
LINES_BYTES_MAX = 256 * 1024
"""Most bytes of lines of `name=value`; all options of a broker have 20 KB."""


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


def long_lines_remark(body: bytes) -> str:
    """The remark of an answer to a request with too many lines of `name=value`."""
    return f"{len(body)} bytes of name=value; at most {LINES_BYTES_MAX} are read"


def update_config(
    config: LiveConfig[_Config], request: Command, on_changed: Callable[[tuple[str, ...]], None] | None = None
) -> Command:
    """Change the options that a request names; returns its answer.

    As in RocketMQ a name that is unknown, or a text that does not parse, changes nothing, and is a success. A value
    that RocketMQ takes and an emulated node cannot have, such as a period of 0, is refused: that is ours.

    Args:
        config: the options of the node.
        request: its body has lines of `name=value`.
        on_changed: called with the names in the body.
    """
    if not request.body:
        return success(request)
    if len(request.body) > LINES_BYTES_MAX:
        return request.answer(ResponseCode.SYSTEM_ERROR, long_lines_remark(request.body))
    try:
        changed = config.update(request.body.decode(errors="replace"))
    except PermissionError as error:
        return request.answer(ResponseCode.NO_PERMISSION, str(error))
    except MalformedPropertiesError:
        return request.answer(ResponseCode.SYSTEM_ERROR, "string2Properties error")
    except FieldError as error:
        return request.answer(ResponseCode.SYSTEM_ERROR, str(error))
    if on_changed is not None:
        on_changed(changed)
    return success(request)

"""Requests of operators about the store: reads of cold data, read-ahead, RocksDB."""

import json

from nodes.broker.context import BrokerContext
from nodes.broker.part import Part
from nodes.config.tables import MAX_GROUPS
from nodes.config.text import from_lines
from nodes.config_requests import LINES_BYTES_MAX, long_lines_remark
from nodes.host import Channel
from nodes.protocol import headers_admin as headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.errors import require_room
from nodes.protocol.registry import decode_header
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success

_CG_COLD_READ_THRESHOLD, _GLOBAL_COLD_READ_THRESHOLD = 3 * 1024 * 1024, 100 * 1024 * 1024
"""Defaults of `cgColdReadThreshold` and `globalColdReadThreshold`, in bytes."""
_MADV_NORMAL, _MADV_RANDOM = "0", "1"
_CHECK_IN_PROGRESS = 2
_CONFIG_TYPES = ("topics", "subscriptiongroups", "consumeroffsets")


class AdminStore(Part):
    """Answers as a broker does whose tables are files, and whose reads all come from memory.

    Which part of the log is in the memory of a machine is not emulated, so no read is cold: thresholds are accepted
    and listed, and slow no consumer down. Of RocksDB there is nothing to check and nothing to export.

    Mirrors:
        `org.apache.rocketmq.broker.processor.AdminBrokerProcessor`,
        `org.apache.rocketmq.broker.coldctr.ColdDataCgCtrService`.
    """

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._thresholds: dict[str, int] = {}
        """Mapping group -> bytes of cold reads in five seconds (`cgColdThresholdMapConfig`); a restart forgets them."""

    def handlers(self) -> Handlers:
        """The requests that it answers."""
        return {
            RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: self._update_thresholds,
            RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: self._remove_threshold,
            RequestCode.GET_COLD_DATA_FLOW_CTR_INFO: self._thresholds_info,
            RequestCode.SET_COMMITLOG_READ_MODE: self._set_read_mode,
            RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: self._check_rocksdb,
            RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON: self._export_rocksdb,
        }

    def _update_thresholds(self, _channel: Channel, request: Command) -> Command:
        """Lines of `group=bytes`; an entry that is no number is left out."""
        body = request.body or b""
        if len(body) > LINES_BYTES_MAX:
            return request.answer(ResponseCode.SYSTEM_ERROR, long_lines_remark(body))
        for group, text in from_lines(body.decode()).items():
            require_room(self._thresholds, group, MAX_GROUPS, "thresholds of groups")
            try:
                self._thresholds[group] = int(text)
            except ValueError:
                self._broker.host.log.warning("updateColdDataFlowCtrGroupConfig", group=group, value=text)
        return success(request)

    def _remove_threshold(self, _channel: Channel, request: Command) -> Command:
        self._thresholds.pop((request.body or b"").decode(), None)
        return success(request)

    def _thresholds_info(self, _channel: Channel, request: Command) -> Command:
        info = {
            "runtimeTable": {},
            "configTable": self._thresholds,
            "cgColdReadThreshold": _CG_COLD_READ_THRESHOLD,
            "globalColdReadThreshold": _GLOBAL_COLD_READ_THRESHOLD,
            "globalAcc": 0,
        }
        return success(request, body=json.dumps(info, separators=(",", ":")).encode())

    def _set_read_mode(self, _channel: Channel, request: Command) -> Command:
        if not request.ext_fields:
            return request.answer(ResponseCode.SYSTEM_ERROR, "set commitlog readahead mode param error")
        mode = decode_header(headers.SetCommitLogReadModeRequestHeader, request.ext_fields).read_ahead_mode
        if mode is None or not mode.lstrip("+-").isdecimal():
            return request.answer(ResponseCode.SYSTEM_ERROR, "set commitlog readahead mode failed")
        if str(int(mode)) not in (_MADV_NORMAL, _MADV_RANDOM):
            return request.answer(ResponseCode.INVALID_PARAMETER, "set commitlog readahead mode param value error")
        return request.answer(ResponseCode.SUCCESS, f"set commitlog readahead mode success, mode: {int(mode)}")

    def _check_rocksdb(self, _channel: Channel, request: Command) -> Command:
        """A real broker begins to check in a thread, and writes what it finds into its log only."""
        decode_header(headers.CheckRocksdbCqWriteProgressRequestHeader, request.ext_fields)
        return success(request, body=json.dumps({"checkStatus": _CHECK_IN_PROGRESS}, separators=(",", ":")).encode())

    def _export_rocksdb(self, _channel: Channel, request: Command) -> Command:
        """Nothing is exported where the tables are files, and that is a success."""
        header = decode_header(headers.ExportRocksDBConfigToJsonRequestHeader, request.ext_fields)
        for name in filter(None, header.config_type.split(";")):
            if name.strip().lower() not in _CONFIG_TYPES:
                remark = f"java.lang.IllegalArgumentException: Unknown config type: {name}"
                return request.answer(ResponseCode.SYSTEM_ERROR, remark)
        return request.answer(ResponseCode.SUCCESS, "export done.")

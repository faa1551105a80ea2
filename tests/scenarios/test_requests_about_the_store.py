"""Requests of operators about cold reads, read-ahead and RocksDB, as a broker answers whose tables are files."""

import json

import pytest

from emulator.testing import Stage, a_scenario, execute
from nodes.protocol import headers_admin as headers
from nodes.protocol.codes import RequestCode as Code
from nodes.protocol.codes import ResponseCode
from support.asking_guest import a_guest

BROKER = "broker-a"


def answers(*requests):
    """The answers of a broker to requests (code, header, body), one after the other."""
    found = []

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await stage.at_ms(2_000)
        for code, header, body in requests:
            found.append(await guest.ask(BROKER, code, header, body))

    execute(a_scenario(), script)
    return found


def test_thresholds_of_cold_reads_are_listed_until_they_are_removed_and_what_is_no_number_is_left_out():
    update = Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, None, b"g=1024\nh=many\nk=5\n"
    remove = Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, None, b"k"
    *done, info = answers(update, remove, (Code.GET_COLD_DATA_FLOW_CTR_INFO, None, None))
    assert [answer.code for answer in done] == [ResponseCode.SUCCESS] * 2
    assert json.loads(info.body) == {
        "runtimeTable": {},
        "configTable": {"g": 1024},
        "cgColdReadThreshold": 3_145_728,
        "globalColdReadThreshold": 104_857_600,
        "globalAcc": 0,
    }


@pytest.mark.parametrize(
    ("mode", "code", "remark"),
    [
        ("0", ResponseCode.SUCCESS, "set commitlog readahead mode success, mode: 0"),
        ("1", ResponseCode.SUCCESS, "set commitlog readahead mode success, mode: 1"),
        ("3", ResponseCode.INVALID_PARAMETER, "set commitlog readahead mode param value error"),
        ("much", ResponseCode.SYSTEM_ERROR, "set commitlog readahead mode failed"),
        (None, ResponseCode.SYSTEM_ERROR, "set commitlog readahead mode param error"),
    ],
)
def test_the_read_ahead_of_the_log_is_changed_or_refused(mode, code, remark):
    header = None if mode is None else headers.SetCommitLogReadModeRequestHeader(mode)
    (answer,) = answers((Code.SET_COMMITLOG_READ_MODE, header, None))
    assert (answer.code, answer.remark) == (code, remark)


def test_of_rocksdb_there_is_nothing_to_check_and_nothing_to_export():
    check = Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS, headers.CheckRocksdbCqWriteProgressRequestHeader("orders"), None
    export = headers.ExportRocksDBConfigToJsonRequestHeader
    checked, exported, refused = answers(
        check,
        (Code.EXPORT_ROCKSDB_CONFIG_TO_JSON, export("topics;subscriptionGroups;"), None),
        (Code.EXPORT_ROCKSDB_CONFIG_TO_JSON, export("topics;names"), None),
    )
    assert (checked.code, json.loads(checked.body)) == (ResponseCode.SUCCESS, {"checkStatus": 2})
    assert (exported.code, exported.remark) == (ResponseCode.SUCCESS, "export done.")
    assert refused.code == ResponseCode.SYSTEM_ERROR
    assert "Unknown config type: names" in refused.remark

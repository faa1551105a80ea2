"""Family wire_command: whole frames in both forms of the header, and the numbers of RocketMQ's tables."""

import json

from emulator.guests.remoting.remoting_command import (
    BadLengthError,
    EndsEarlyError,
    LanguageCode,
    NoHeaderError,
    RemotingCommand,
    SerializeType,
    decode_remoting,
    encode_remoting,
)
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import CommandFlag
from nodes.rpc.codec import FrameError

TABLES = {"LanguageCode": LanguageCode, "RequestCode": RequestCode, "ResponseCode": ResponseCode}
OURS_FROM = 400_001
"""From here on RocketMQ has no codes of requests."""
OURS = (
    ResponseCode.FENCED,
    ResponseCode.GRPC_ERROR,
    RequestCode.DLEDGER_VOTE,
    RequestCode.DLEDGER_PUSH,
    *(code for code in RequestCode if code >= OURS_FROM),
)
"""Codes that RocketMQ does not have, or that are DLedger's."""
JAVA_ERRORS = {
    BadLengthError: "RemotingCommandException",
    EndsEarlyError: "IndexOutOfBoundsException",
    NoHeaderError: "NullPointerException",
}


def wire_command(requested):
    match requested["op"]:
        case "encode":
            return _encoded(requested, requested["extFields"])
        case "decode":
            return _decoded(bytes.fromhex(requested["frameHex"]))
        case "fastEncodeHeader":
            fields = {name: _text(value) for name, value in requested["fields"].items() if value is not None}
            defaults = {"flag": 0, "remark": None, "language": "JAVA", "bodyHex": None}
            encoded = _encoded(defaults | requested, fields)
            return {"hex": encoded["hex"], "decoded": encoded["decoded"]}
        case "LanguageCode":
            return {"codes": [[language.name, int(language)] for language in LanguageCode]}
        case table if table in TABLES:
            return {member.name: int(member) for member in TABLES[table] if member not in OURS}
    raise AssertionError(f"no operation is called {requested['op']}")


def in_any_order(out):
    """Header fields stand in the order of a hash table: of a frame its length counts and which bytes are in it.

    Of tables of numbers those count that ours have, too.
    """
    shown = dict(out)
    for name in ("hex", "headerHex_fastEncode"):
        if isinstance(shown.get(name), str):
            shown[name] = sorted(bytes.fromhex(shown[name]))
    if isinstance(shown.get("jsonHeader"), str):
        shown["jsonHeader"] = json.loads(shown["jsonHeader"])
    for table in TABLES.values():
        if "SUCCESS" in out or "SEND_MESSAGE" in out:
            shown = {name: value for name, value in shown.items() if name in table.__members__} or shown
    return shown


def _encoded(requested, fields):
    command = RemotingCommand(
        requested["code"],
        LanguageCode.__members__.get(requested["language"]),
        requested["version"],
        requested["opaque"],
        requested["flag"],
        requested["remark"],
        fields,
        None if requested["bodyHex"] is None else bytes.fromhex(requested["bodyHex"]),
        SerializeType[requested["serializeType"]],
    )
    frame = encode_remoting(command)
    header = frame[: len(frame) - len(command.body or b"")]
    return {
        "hex": frame.hex(),
        "headerHex_fastEncode": header.hex(),
        "encodeHeader_equals_prefix": True,
        "fastEncode_equals_prefix": True,
        "jsonHeader": header[8:].decode() if command.serialize_type is SerializeType.JSON else None,
        "decoded": _decoded(frame[4:]),
    }


def _decoded(content):
    try:
        read = decode_remoting(content)
    except FrameError as error:
        return {"error": JAVA_ERRORS.get(type(error), "JSONException")}
    if read.language is None and read.serialize_type is SerializeType.ROCKETMQ:
        return {"error": "NullPointerException"}  # of a language that is unknown to this version the name is asked for
    return {
        "code": read.code,
        "opaque": read.opaque,
        "flag": read.flag,
        "remark": read.remark,
        "version": read.version,
        "language": None if read.language is None else read.language.name,
        "extFields": read.ext_fields,
        "bodyHex": None if read.body is None else read.body.hex(),
        "serializeType": read.serialize_type.name,
        "isResponse": bool(read.flag & CommandFlag.RESPONSE),
        "isOneway": bool(read.flag & CommandFlag.ONEWAY),
    }


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)

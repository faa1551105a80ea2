"""Family wire_body: bodies in JSON and back, topics as lines, the compressed registration.

A body for which we have a class goes through it; any other goes through writer and reader alone.
"""

import importlib
import json
import zlib

import attrs

from emulator.guests.remoting.body_json import decode_json_body, plain_body
from emulator.guests.remoting.fastjson import ObjectKey, read_json
from emulator.guests.remoting.register_broker_body import decode_register_broker_body, decode_topic_config
from nodes.protocol.java import as_int, bucket_of, hash_ordered, java_hash
from nodes.protocol.json_text import to_json
from nodes.protocol.model import DataVersion, TopicConfig
from nodes.protocol.wire_names import wire, wire_name
from support.register_broker_body import encode_register_broker_body, encode_topic_config

MODULES = [importlib.import_module(f"nodes.protocol.{name}") for name in ("bodies", "model")]
ALIASES = {"KVTable": "KvTable", "SubscriptionGroupWrapper": "SubscriptionGroupTable"}
MORE_THAN_OURS = {"QueryAssignmentResponseBody", "SubscriptionGroupConfig", "SubscriptionGroupWrapper"}
"""What ours lack of these is nothing that the emulator needs."""
LETTERS = {
    "bitSet": "b",
    "consumerGroup": "c",
    "invisibleTime": "it",
    "popTime": "pt",
    "queueId": "q",
    "retry": "r",
    "reviveQueueId": "rq",
    "startOffset": "so",
    "topic": "t",
}
"""What `BatchAck` calls its fields on the wire."""
NEW_VERSION = {"counter": 0, "stateVersion": 0, "timestamp": "<now>"}
"""The `dataVersion` of a `TopicConfigSerializeWrapper` whose JSON has none."""
NOT_OURS = {"uncompressedJson", "bodyCrc32_of_compressed", "bodyCrc32_of_uncompressed", "mappingDataVersion", "note"}
"""Who registers here writes no checksum, and versions of static topics are not emulated."""
RENAMED = {"isWithoutSub": "withoutSub"}
NOW_MS = 1_700_000_000_000


def wire_body(requested):
    match requested["op"]:
        case "RemotingSerializable.encode":
            return _encoded(requested)
        case "RemotingSerializable.decode":
            return {"fields": _read(requested["class"], requested["json"])}
        case "HeartbeatData.computeHeartbeatFingerprint":
            return _fingerprint(requested["fields"])
        case "TopicConfig.encode":
            topic = _topic(requested["fields"])
            text = encode_topic_config(topic)
            again = decode_topic_config(text)
            return {"text": text, "decodeOk": again is not None, "decoded": _dump(again)}
        case "TopicConfig.decode":
            return _topic_read(requested["text"])
        case "RegisterBrokerBody.encode":
            return _registration(requested["fields"])
        case "DataVersion.nextVersion":
            return _next_versions(DataVersion(*requested["start"]))
        case "DataVersion.compare":
            versions = [DataVersion(*version) for version in requested["stateVersion_timestamp_counter"]]
            return {
                "equals": [[a == b for b in versions] for a in versions],
                "compare": [[a.compare(b) for b in versions] for a in versions],
            }
    raise AssertionError(f"no operation is called {requested['op']}")


def absent_is_nothing(out):
    """Entries that are null, empty or false are left out, texts of JSON are read: hash tables order their entries."""
    shown = {name: value for name, value in out.items() if name not in NOT_OURS}
    for name in ("json",):
        if isinstance(shown.get(name), str):
            shown[name] = read_json(shown[name])
            shown.setdefault(f"{name} bytes", len(out[name]))
    for name in ("compressedHex", "inflatedHex"):
        if name in shown:
            raw = bytes.fromhex(shown[name])
            shown[name] = sorted(zlib.decompress(raw) if name == "compressedHex" else raw)
    return _something(shown)


def _something(value):
    if isinstance(value, dict):
        retained = {_key(key): _something(item) for key, item in value.items() if key not in NOT_OURS}
        return {key: item for key, item in retained.items() if item not in (None, "", [], {}, False, 0)}
    if isinstance(value, list | tuple):
        return sorted((_something(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


def _key(key):
    return json.dumps(dict(key), sort_keys=True) if isinstance(key, ObjectKey) else key


# --- through our classes ----------------------------------------------------------


def _class_of(java_class):
    name = java_class.rpartition(".")[2]
    if name in MORE_THAN_OURS:
        return None
    return next((found for module in MODULES if (found := getattr(module, ALIASES.get(name, name), None))), None)


def _encoded(requested):
    ours = _class_of(requested["class"])
    fields = _with_letters(requested["fields"])
    text = to_json(_writable(fields))
    if ours is not None:
        through_ours = decode_json_body(ours, text.encode())
        names = {name for name, value in fields.items() if value is not None}
        if names <= {wire_name(ours, field) for field in attrs.fields(ours)} and _whole(ours, fields):
            text = to_json(through_ours)
    answer = {"json": text}
    if requested["class"].rpartition(".")[2] != "RoleChangeNotifyEntry":
        answer["decodedFields"] = _read(requested["class"], text, fields)
    return answer


def _whole(ours, fields):
    """Whether nothing is null that is not null in ours, nor inside something that ours has less of."""
    return read_json(to_json(decode_json_body(ours, to_json(_writable(fields)).encode()))) == read_json(
        to_json(_writable(fields))
    )


def _read(java_class, text, like=None):
    ours = _class_of(java_class)
    plain = read_json(text) if ours is None else plain_body(ours, text.encode())
    if plain is None:
        return None
    shown = _without_letters(plain)
    if java_class.endswith(".TopicConfigSerializeWrapper") and shown.get("dataVersion") is None:
        shown["dataVersion"] = NEW_VERSION
    if ours is None and like is not None:
        shown = like | {name: value for name, value in shown.items() if name not in like}
    return _dump_plain(shown)


def _dump_plain(value):
    """As the cases write it: maps whose keys are no texts as pairs."""
    if isinstance(value, dict):
        if value and not all(isinstance(key, str) for key in value):
            return {"__pairs__": [[_dump_plain(_as_dict(key)), _dump_plain(item)] for key, item in value.items()]}
        back = {name: java for java, name in RENAMED.items()}
        return {back.get(key, key): _dump_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_dump_plain(item) for item in value]
    return value


def _as_dict(key):
    return dict(key) if isinstance(key, ObjectKey) else key


def _dump(value):
    return None if value is None else json.loads(to_json(value))


def _writable(value):
    """A dump as the writer takes it."""
    if isinstance(value, dict) and "__pairs__" in value:
        return {_object_key(key): _writable(item) for key, item in value["__pairs__"]}
    if isinstance(value, dict):
        named = {RENAMED.get(name, name): item for name, item in value.items()}
        return {name: _writable(named[name]) for name in sorted(named) if named[name] is not None}
    return [_writable(item) for item in value] if isinstance(value, list) else value


def _object_key(key):
    if not isinstance(key, dict):
        return key
    cls = attrs.make_class("Key", {name: attrs.field(metadata=wire(name)) for name in key}, frozen=True)
    return cls(**key)


def _with_letters(value):
    """What is written, with the letters in each `BatchAck`."""
    if isinstance(value, list):
        return [_with_letters(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == LETTERS.keys():
        return {LETTERS[name]: _bits_written(item) if name == "bitSet" else item for name, item in value.items()}
    return {name: _with_letters(item) for name, item in value.items()}


def _without_letters(value):
    """What was read, with the names of the fields in each `BatchAck`."""
    if isinstance(value, list):
        return [_without_letters(item) for item in value]
    if not isinstance(value, dict):
        return value
    names = {letter: name for name, letter in LETTERS.items()}
    if value and all(name in names for name in value):
        return {names[name]: _bits_shown(item) if name == "b" else item for name, item in value.items()}
    return {name: _without_letters(item) for name, item in value.items()}


def _bits_written(shown):
    bits = [int(bit) for bit in shown.removeprefix("bits:{").removesuffix("}").split(",") if bit.strip()]
    number = sum(1 << bit for bit in bits)
    import base64

    return base64.b64encode(number.to_bytes((number.bit_length() + 7) // 8, "little")).decode()


def _bits_shown(written):
    import base64

    number = int.from_bytes(base64.b64decode(written), "little")
    return "bits:{" + ", ".join(str(bit) for bit in range(number.bit_length()) if number >> bit & 1) + "}"


# --- single operations -----------------------------------------------------------


def _fingerprint(fields):
    copied = json.loads(json.dumps(fields)) | {"clientID": "", "heartbeatFingerprint": 0, "isWithoutSub": False}
    for consumer in copied["consumerDataSet"]:
        for subscription in consumer["subscriptionDataSet"]:
            subscription["subVersion"] = 0
            subscription["tagsSet"] = hash_ordered(subscription["tagsSet"])
        consumer["subscriptionDataSet"].sort(key=_bucket)
    return {"fingerprint": as_int(java_hash(to_json(_writable(copied)))), "fieldsAfter": fields}


def _bucket(subscription):
    """Where a Java set of up to twelve keeps a subscription."""
    return bucket_of(subscription_hash(subscription), 16)


def subscription_hash(subscription):
    """`SubscriptionData#hashCode`, without its version, in 32 bits."""
    hashed = 31 + (1231 if subscription["classFilterMode"] else 1237)
    for part in (
        sum(subscription["codeSet"]),
        java_hash(subscription["subString"]),
        sum(map(java_hash, subscription["tagsSet"])),
        java_hash(subscription["topic"]),
        java_hash(subscription["expressionType"]),
    ):
        hashed = 31 * hashed + part
    return hashed & 0xFFFFFFFF


def _next_versions(start):
    made = {"nextVersion": start.next_version(NOW_MS), "nextVersion(9)": start.next_version(NOW_MS, 9)}
    counted = {f"{name}_state_counter": [item.state_version, item.counter] for name, item in made.items()}
    return counted | {"timestampBecomesNow": all(item.timestamp == NOW_MS for item in made.values())}


def _topic(fields):
    return decode_json_body(TopicConfig, json.dumps(fields).encode())


def _topic_read(text):
    try:
        topic = decode_topic_config(text)
    except ValueError as error:
        kind = "NumberFormatException" if "invalid literal" in str(error) else "IllegalArgumentException"
        return {"error": kind}
    return {"ok": topic is not None, "fields": _dump(topic or TopicConfig(""))}


def _registration(fields):
    """What ours have no place for is looked at by no one, and so is what it would be decoded to."""
    plain = json.dumps(_writable(fields)).encode()
    body = decode_register_broker_body(plain, compressed=False)
    compressed = encode_register_broker_body(body)
    answer = {"compressedHex": compressed.hex(), "inflatedHex": zlib.decompress(compressed).hex()}
    for name, read in (
        ("decodedFromCompressed", decode_register_broker_body(compressed, compressed=True)),
        ("decodedFromUncompressed", body),
    ):
        answer[name] = _dump(read)
    return answer

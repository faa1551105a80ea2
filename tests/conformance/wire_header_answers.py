"""Family wire_header: the fields of headers as texts, and back.

What RocketMQ has a header for and we have not is compared with a header of the same fields, so that its texts at
least are those of the real one.
"""

import contextlib
import importlib
import pkgutil
import types

import attrs

import nodes.protocol
from nodes.protocol.errors import ProtocolError, RefusedHeaderError
from nodes.protocol.header_codec import NeededNumberError, decode_header, encode_header
from nodes.protocol.headers import BoundaryType
from nodes.protocol.widths import Int32
from nodes.protocol.wire_names import wire, wire_name

JAVA_TYPES = {
    "String": str,
    "Integer": Int32,
    "Long": int,
    "int": Int32,
    "long": int,
    "Boolean": bool,
    "boolean": bool,
    "BoundaryType": BoundaryType,
}
ALIASES = {
    "ExchangeHAInfoRequestHeader": "ExchangeHaInfoHeader",
    "ExchangeHAInfoResponseHeader": "ExchangeHaInfoHeader",
    "UnRegisterBrokerRequestHeader": "UnregisterBrokerRequestHeader",
}


def _ours():
    found = {}
    for module in pkgutil.iter_modules(nodes.protocol.__path__):
        if module.name.startswith("headers"):
            members = vars(importlib.import_module(f"nodes.protocol.{module.name}"))
            found |= {name: cls for name, cls in members.items() if isinstance(cls, type) and attrs.has(cls)}
    return found


OURS = _ours()


def class_of_ours(java_class):
    name = java_class.rpartition(".")[2]
    return OURS.get(ALIASES.get(name, name))


def wire_header(requested):
    ours = class_of_ours(requested["class"])
    if requested["op"] == "decodeCommandCustomHeader":
        read_as = ours if requested["fastPath"] else _read_by_reflection(ours)
        try:
            return {"fields": _shown(decode_header(read_as, requested["extFields"]))}
        except NeededNumberError as error:  # on which the real handler fails
            return {"fields": _shown(error.header)}
        except RefusedHeaderError as error:
            return {"error": "RemotingCommandException", "message": str(error)}
        except ProtocolError as error:
            return {"error": "NumberFormatException", "message": str(error)}
    same_fields = _class_with(requested["fieldTypes"])
    full = requested["fullFields"]
    texts = encode_header(same_fields(**full))
    answer = {"extFields_full": texts, "decode_full_roundtrip": _round_trip(same_fields(**full))}
    if ours is not None:
        known = [field for field in attrs.fields(ours) if wire_name(ours, field) in full]
        header = ours(**{field.name: full[wire_name(ours, field)] for field in known})
        answer["extFields_full"] = {**texts, **encode_header(header)}
        answer["decode_full_roundtrip"] = _or_refused(lambda: _round_trip(header, _never_written(ours, full)))
        of_nothing = _or_refused(lambda: _decoded_to_nothing(ours))
        answer |= {"decode_empty_ext_fast": of_nothing, "decode_empty_ext_reflect": of_nothing}
    return answer


def _or_refused(answer):
    try:
        return answer()
    except RefusedHeaderError as error:
        return {"error": "RemotingCommandException", "message": str(error)}


def _decoded_to_nothing(ours):
    """Numbers that are needed are null there, and the handlers fail on them: here the decoder does."""
    with contextlib.suppress(NeededNumberError):
        decode_header(ours, {})
    return {"ok": True}


def _read_by_reflection(ours):
    """A class that is not read field by field, so that a malformed number is null."""
    return attrs.frozen(type(ours.__name__, (ours,), {"FAST_CODES": False}))


def _never_written(ours, full):
    """What a header that writes its letters one by one leaves out: all else."""
    letters = getattr(ours, "WIRE_NAMES", {}).values()
    return {name: None for name in full if letters and name not in letters}


def without_java_alone(question):
    """The question without what is of Java's classes alone: annotations, initial values, and checks of headers."""
    dropped = ["CFNotNull", "FastCodesHeader", "fastEncodeMissingFields", "extFields_default"]
    ours = class_of_ours(question.requested["class"])
    if ours is None:
        dropped += ["decode_empty_ext_fast", "decode_empty_ext_reflect"]
    out = {name: value for name, value in question.out.items() if name not in dropped}
    if ours is None and "error" in out.get("decode_full_roundtrip", {}):
        out["decode_full_roundtrip"] = {"fieldsThatDiffer": {}}
    if ours is not None and "fields" in out:
        known = [wire_name(ours, field) for field in attrs.fields(ours)]
        out["fields"] = {name: out["fields"][name] for name in known if name in out["fields"]}
    return attrs.evolve(question, out=out)


def without_nothing(out):
    """What is missing is null there, and here, where a field cannot be None, nothing of its kind."""
    if "fields" not in out:
        return out
    return out | {"fields": {name: value for name, value in out["fields"].items() if value not in (None, "", 0, False)}}


def _class_with(types):
    """Its names are those of the wire; a field of an object type may be None."""
    fields = {}
    for name, kind in types.items():
        may_be_none = kind[0].isupper()
        default = {"default": None} if may_be_none else {}
        hint = JAVA_TYPES[kind] | None if may_be_none else JAVA_TYPES[kind]
        fields[name] = attrs.field(type=hint, metadata=wire(name), kw_only=True, **default)
    return attrs.make_class("SameFields", fields, frozen=True)


def _round_trip(header, lost=types.MappingProxyType({})):
    """As texts and back; the header itself would be handed on."""
    again = decode_header(type(header), dict(encode_header(header)))
    before, after = _shown(header), _shown(again)
    return {"fieldsThatDiffer": {name: value for name, value in after.items() if value != before[name]} | dict(lost)}


def _shown(header):
    return {wire_name(type(header), field): getattr(header, field.name) for field in attrs.fields(type(header))}

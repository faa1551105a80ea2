"""Family configuration: what a properties file sets in the objects of RocketMQ."""

import math

from conformance.java_errors import throwing
from emulator.importing.property_files import BadPropertiesError, read_properties
from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.rocketmq.known_options import known_options
from emulator.spec.rocketmq.option_values import read_value
from nodes.config.java_values import UnreadValueError

JAVA_KINDS = {BadPropertiesError: "IllegalArgumentException"}
CLASSES = ("BrokerConfig", "MessageStoreConfig")


def configuration(requested):
    return throwing(JAVA_KINDS, _set_by, requested["file"].encode("iso-8859-1"))


def _set_by(content):
    properties = {item.name: item.value for item in read_properties(content)}
    return {"properties": properties, "set": {of: _changed(of, properties) for of in CLASSES}}


def _changed(of, properties):
    read = {}
    for option in known_options(FileKind.BROKER):
        if option.of == of and option.is_read and option.name in properties:
            try:
                value = _as_java_prints(read_value(option, properties[option.name]))
            except UnreadValueError:
                continue
            if option.depends_on or value != option.default:
                read[FIELDS.get(option.name, option.name)] = value
    return read


FIELDS = {"inBrokerContainer": "isInBrokerContainer"}
"""Setter -> field, where they have two names."""


def _as_java_prints(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value)

"""Family data_version: `DataVersion`, kept in registers."""

from conformance.executing import Adapter
from conformance.pretended_time import ORIGIN_MS
from nodes.protocol.body_codec import decode_body, encode_body
from nodes.protocol.json_text import data_version_of, from_json
from nodes.protocol.model import DataVersion, VersionWithoutCounterError

NO_COUNTER = "NullPointerException"


class DataVersions(Adapter):
    """Times that a version takes from the clock are far behind those that a case sets."""

    def __init__(self):
        self.registers = {}

    @property
    def now_ms(self):
        return ORIGIN_MS + self.at_ms

    def new(self, reg):
        return self._put(reg, DataVersion(timestamp=self.now_ms))

    def set(self, reg, value):
        return self._put(reg, DataVersion(*value))

    def next_version(self, reg, state_version):
        given = () if state_version is None else (state_version,)
        return self._change(reg, lambda version: version.next_version(self.now_ms, *given))

    def assign_new_one(self, reg, from_):
        return self._change(reg, lambda version: version.assign_new_one(self.registers[from_]))

    def compare(self, a, b):
        item, other = self.registers[a], self.registers[b]
        out = {"equals": item == other, "equalsReverse": other == item, "sameHash": hash(item) == hash(other)}
        try:
            return out | {"compare": item.compare(other)}
        except VersionWithoutCounterError:
            return out | {"error": NO_COUNTER}

    def encode_decode(self, reg, to):
        return self._put(to, decode_body(DataVersion, encode_body(self.registers[reg])))

    def from_json(self, json, to):
        return self._put(to, data_version_of(from_json(json), now_ms=self.now_ms))

    def _change(self, reg, change):
        try:
            return self._put(reg, change(self.registers[reg]))
        except VersionWithoutCounterError as error:
            return self._put(reg, error.left) | {"error": NO_COUNTER}

    def _put(self, reg, version):
        self.registers[reg] = version
        timestamp = version.timestamp
        taken = timestamp - ORIGIN_MS if timestamp >= ORIGIN_MS else timestamp
        return {"value": [version.state_version, taken, version.counter]}

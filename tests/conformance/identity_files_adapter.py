"""Family identity_files: `BrokerMetadata`, `TempBrokerMetadata`."""

from types import SimpleNamespace

from conformance.executing import Adapter
from nodes.broker.group.controlled_replica import IDENTITY_FILE, _read
from nodes.broker.tables.group.broker_identity import (
    BrokerMetadata,
    DamagedIdentityError,
    TempBrokerMetadata,
    read_broker_metadata,
    read_temp_broker_metadata,
)


class IdentityFiles(Adapter):
    def metadata(self, cluster, name, id):  # noqa: A002 - as the case calls it
        text = BrokerMetadata(cluster, name, id).text
        return {"text": text, "readBack": read_back(read_broker_metadata, text)}

    def temp_metadata(self, cluster, name, id, check_code):  # noqa: A002 - as above
        text = TempBrokerMetadata(cluster, name, id, check_code).text
        return {"text": text, "readBack": read_back(read_temp_broker_metadata, text)}

    def read_missing(self):
        without_files = SimpleNamespace(host=SimpleNamespace(disk=SimpleNamespace(read=lambda _name: None)))
        return {"loaded": _read(without_files, IDENTITY_FILE, read_broker_metadata) is not None}

    def read_text(self, text):
        found = read_back(read_broker_metadata, text)
        return {name: found[name] for name in ("error", "message", "loaded", "id") if name in found}

    def clear_temp(self):
        """There is nothing to ask a table: the file is deleted."""


def read_back(read, text):
    try:
        found = read(text)
    except DamagedIdentityError as error:
        kind = "NumberFormatException" if str(error).startswith("For") else "ArrayIndexOutOfBoundsException"
        return {"error": kind, "message": str(error), "loaded": False}
    check_code = {"checkCode": found.register_check_code} if isinstance(found, TempBrokerMetadata) else {}
    names = {"cluster": found.cluster_name, "name": found.broker_name, "id": found.broker_id}
    return {**names, **check_code, "loaded": found.is_loaded}

"""What guests changed as administrators do, such as with mqadmin, as acts: each row of table `admin` is one.

A row names one node that carried out one request, so its act has this node as its place. What no act stands for is
reported as it is.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

import attrs

from emulator.acts.access import DeleteUser, UpdateUser
from emulator.acts.act import Act, TimedAct
from emulator.acts.groups import DeleteSubGroup, SetMessageRequestMode, UpdateSubGroup, different_options
from emulator.acts.kv_config import DeleteKvConfig, UpdateKvConfig
from emulator.acts.nodes import AddBroker, RemoveBroker
from emulator.acts.offsets import ResetOffset, ResetOffsetByTime, SkipAccumulatedMessage, UpdateConsumeOffset
from emulator.acts.options import (
    AddWritePerm,
    UpdateBrokerConfig,
    UpdateControllerConfig,
    UpdateNamesrvConfig,
    WipeWritePerm,
)
from emulator.acts.topics import DeleteTopic, UpdateTopic
from emulator.base.errors import one_line
from emulator.spec.model.addresses import ADMINISTRATOR_ADDRESS
from emulator.trace.batches import Row
from emulator.trace.schema import ADMIN, TraceTable
from nodes.fields import FieldError
from nodes.protocol.attribute_parser import parse_to_string
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import MASTER_ID, MessageRequestMode
from nodes.secret import MASK
from nodes.units import NS_PER_MS

Fields = Mapping[str, Any]


@attrs.frozen
class UnrepeatedAct:
    """What was done interactively and is not in the scenario that repeats the rest."""

    at_ms: int
    subject: str
    reason: str

    def describe(self) -> str:
        """For people, in one line whatever a guest has sent: `31.2 s: CLEAN_UNUSED_TOPIC at b: it has no act`."""
        return one_line(f"{self.at_ms / 1_000:.3f} s: {self.subject}: {self.reason}")


@attrs.frozen
class AdminRequestRow:
    """A row of table `admin`, for its translation."""

    node: str
    request: str
    topic: str
    group: str
    broker_name: str
    detail: Fields

    def unrepeated(self, at_ms: int, reason: str) -> UnrepeatedAct:
        """The request as one that is not repeated."""
        named = " ".join(filter(None, (self.request, self.topic, self.group)))
        return UnrepeatedAct(at_ms, f"{named} at {self.node}", reason)

    def number(self, name: str, default: int | None = None) -> int | None:
        """A number in the details; the header has it as a text, a body as a number."""
        value = self.detail.get(name)
        return default if value is None else int(value)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A switch in the details."""
        value = self.detail.get(name)
        return default if value is None else str(value).lower() == "true"

    def attributes(self) -> str:
        """Changes of attributes in the details; a header has them as a text, a body as a table."""
        value = self.detail.get("attributes") or ""
        return parse_to_string(value) if isinstance(value, dict) else str(value)


class GuestActs:
    """Collects what guests change from the rows of a run; its method `note` is a `RowListener`.

    Args:
        nodes: mapping IP address -> node of the cluster, which is no guest; it may grow.
    """

    def __init__(self, nodes: Mapping[str, str]) -> None:
        self._nodes = nodes
        self._rows: list[tuple[int, AdminRequestRow]] = []

    def translated(self, epoch_ms: int, used: Iterable[str]) -> tuple[tuple[TimedAct, ...], tuple[UnrepeatedAct, ...]]:
        """(acts, what no act stands for), each in order of time.

        Args:
            epoch_ms: wall clock at the begin of the run: what guests send has the wall clock.
            used: ids that other acts have.
        """
        acts: list[tuple[int, Act]] = []
        left: list[UnrepeatedAct] = []
        for at_ms, row in self._rows:
            try:
                act = act_of_row(row, epoch_ms)
            except (FieldError, ValueError, KeyError) as error:
                left.append(row.unrepeated(at_ms, f"it has no words: {error}"))
                continue
            if act is None:
                left.append(row.unrepeated(at_ms, "no act stands for it"))
                continue
            if isinstance(act, ResetOffset) and acts and acts[-1][1] == _commit_before(act):
                acts.pop()  # the act does both
            acts.append((at_ms, act))
        ids = dict.fromkeys(used)
        timed = (TimedAct(_free_id(act.wording.verb, ids), act, at_ms) for at_ms, act in acts)
        return tuple(timed), tuple(left)

    def note(self, table: TraceTable, row: Row) -> None:
        """Collect a row of table `admin` that is of a guest."""
        if table is not ADMIN:
            return
        fields = {column.name: value for column, value in zip(table.columns, row, strict=True)}
        if str(fields["client"]).rpartition(":")[0] in (ADMINISTRATOR_ADDRESS, *self._nodes):
            return
        node, request, topic, group, broker_name = (str(fields[name]) for name in _NAMES)
        detail = json.loads(str(fields["detail"]))
        read = AdminRequestRow(node, request, topic, group, broker_name, detail)
        self._rows.append((int(fields["began_ns"]) // NS_PER_MS, read))


_NAMES = ("node", "request", "topic", "group", "broker_name")


def _free_id(verb: str, ids: dict[str, None]) -> str:
    found = next(f"{verb}-{number}" for number in count(1) if f"{verb}-{number}" not in ids)
    ids[found] = None
    return found


def _commit_before(act: ResetOffset) -> UpdateConsumeOffset:
    return UpdateConsumeOffset(act.group, act.topic, act.queue, act.offset, act.on)


def act_of_row(row: AdminRequestRow, epoch_ms: int) -> Act | None:
    """The act that sends the request of a row to its node; None: there is none.

    Args:
        row: of table `admin`.
        epoch_ms: wall clock at the begin of the run.

    Raises:
        FieldError: a field of the request is none that words can have.
        ValueError: a number of the request is none.
    """
    make = _ACTS.get(row.request)
    return None if make is None else make(row, epoch_ms)


def _update_topic(row: AdminRequestRow, _epoch_ms: int) -> Act | None:
    read, write = (row.number(name, 8) or 0 for name in ("readQueueNums", "writeQueueNums"))
    if row.detail.get("topicFilterType", "SINGLE_TAG") != "SINGLE_TAG" or row.number("topicSysFlag", 0):
        return None
    perm, order, attributes = row.number("perm", 6) or 0, row.flag("order"), row.attributes()
    if read == write and read:
        return UpdateTopic(row.topic, read, perm=perm, order=order, attributes=attributes, on=row.node)
    return UpdateTopic(row.topic, max(read, write, 1), read, write, perm, order, attributes, row.node)


def _delete_topic(row: AdminRequestRow, _epoch_ms: int) -> Act:
    return DeleteTopic(row.topic, row.node)


def _update_group(row: AdminRequestRow, _epoch_ms: int) -> Act:
    given = {name: value for name, value in row.detail.items() if isinstance(value, bool | int)}
    return UpdateSubGroup(row.group, different_options(given), row.attributes(), row.node)


def _delete_group(row: AdminRequestRow, _epoch_ms: int) -> Act:
    return DeleteSubGroup(row.group, row.flag("cleanOffset"), row.node)


def _reset(row: AdminRequestRow, epoch_ms: int) -> Act:
    queue, offset = row.number("queueId", -1), row.number("offset", -1)
    timestamp = row.number("timestamp", 0) or 0
    if queue is not None and queue >= 0 and offset is not None and offset > 0:
        return ResetOffset(row.group, row.topic, queue, offset, row.node)
    if queue is not None and queue >= 0:
        raise ValueError("one queue is reset by time")
    if timestamp < 0:
        return SkipAccumulatedMessage(row.group, row.topic, row.node)
    instant_ms = timestamp - epoch_ms
    to = f"{instant_ms}ms" if instant_ms >= 0 else f"{timestamp:012}"
    return ResetOffsetByTime(row.group, row.topic, to, row.flag("isForce"), row.node)


def _commit(row: AdminRequestRow, _epoch_ms: int) -> Act:
    return UpdateConsumeOffset(
        row.group, row.topic, int(row.detail["queueId"]), int(row.detail["commitOffset"]), row.node
    )


def _mode(row: AdminRequestRow, _epoch_ms: int) -> Act:
    mode, share = MessageRequestMode(row.detail["mode"]), row.number("popShareQueueNum", 0) or 0
    return SetMessageRequestMode(row.group, row.topic, mode, share, row.node)


def _kv_entry(row: AdminRequestRow, _epoch_ms: int) -> Act:
    namespace, entry = str(row.detail["namespace"]), str(row.detail["key"])
    if row.request == RequestCode.DELETE_KV_CONFIG.name:
        return DeleteKvConfig(namespace, entry, row.node)
    return UpdateKvConfig(namespace, entry, str(row.detail["value"]), row.node)


def _add_broker(row: AdminRequestRow, _epoch_ms: int) -> Act | None:
    path = str(row.detail["configPath"])
    name = path.removeprefix("conf/").removesuffix(".conf")
    return AddBroker(name) if path == f"conf/{name}.conf" else None


def _remove_broker(row: AdminRequestRow, _epoch_ms: int) -> Act:
    broker_id = int(row.detail["brokerId"])
    return RemoveBroker(row.broker_name if broker_id == MASTER_ID else f"{row.broker_name}-s{broker_id}")


def _options(row: AdminRequestRow) -> dict[str, str]:
    if MASK in map(str, row.detail.values()):
        raise ValueError("it sets a secret")
    return {name: str(value) for name, value in row.detail.items()}


def _user_status(row: AdminRequestRow, _epoch_ms: int) -> Act:
    password = row.detail.get("password")
    if password is not None:
        raise ValueError("it sets a secret")
    kind, status = (str(row.detail.get(name) or "") for name in ("userType", "userStatus"))
    return UpdateUser(str(row.detail["username"]), "", kind, status, row.node)


def _delete_user(row: AdminRequestRow, _epoch_ms: int) -> Act:
    return DeleteUser(str(row.detail["username"]), row.node)


_ACTS: Mapping[str, Callable[[AdminRequestRow, int], Act | None]] = {
    code.name: make
    for code, make in (
        (RequestCode.UPDATE_AND_CREATE_TOPIC, _update_topic),
        (RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, _update_topic),
        (RequestCode.DELETE_TOPIC_IN_BROKER, _delete_topic),
        (RequestCode.DELETE_TOPIC_IN_NAMESRV, _delete_topic),
        (RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, _update_group),
        (RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, _update_group),
        (RequestCode.DELETE_SUBSCRIPTIONGROUP, _delete_group),
        (RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, _reset),
        (RequestCode.UPDATE_CONSUMER_OFFSET, _commit),
        (RequestCode.SET_MESSAGE_REQUEST_MODE, _mode),
        (RequestCode.PUT_KV_CONFIG, _kv_entry),
        (RequestCode.DELETE_KV_CONFIG, _kv_entry),
        (RequestCode.UPDATE_BROKER_CONFIG, lambda row, _: UpdateBrokerConfig(_options(row), on=row.node)),
        (RequestCode.UPDATE_NAMESRV_CONFIG, lambda row, _: UpdateNamesrvConfig(_options(row), row.node)),
        (RequestCode.UPDATE_CONTROLLER_CONFIG, lambda row, _: UpdateControllerConfig(_options(row), row.node)),
        (RequestCode.ADD_BROKER, _add_broker),
        (RequestCode.REMOVE_BROKER, _remove_broker),
        (RequestCode.AUTH_UPDATE_USER, _user_status),
        (RequestCode.AUTH_DELETE_USER, _delete_user),
        (RequestCode.WIPE_WRITE_PERM_OF_BROKER, lambda row, _: WipeWritePerm(row.broker_name, row.node)),
        (RequestCode.ADD_WRITE_PERM_OF_BROKER, lambda row, _: AddWritePerm(row.broker_name, row.node)),
    )
}
"""Request -> the act that sends it."""

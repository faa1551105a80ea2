"""How brokers answer the pulls of a consumer: refusals with their reasons, and calls that fail.

At level full each answer is a row with its remark. At level findings answers are counted per second, without remarks.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.schema import BELIEFS, COUNTS, RPC
from nodes.beliefs import BeliefKind
from nodes.protocol.answer_codes import answer_code_name
from nodes.protocol.codes import ResponseCode
from nodes.protocol.exchange import Movement
from nodes.protocol.registry import codes_where

PULLS = tuple(sorted(codes_where(lambda exchange: exchange.movement is Movement.RECEIVE)))
_CALM = (
    *(int(ResponseCode.SUCCESS), int(ResponseCode.PULL_NOT_FOUND), int(ResponseCode.POLLING_TIMEOUT)),
    int(ResponseCode.PULL_RETRY_IMMEDIATELY),  # the filter of the group has left all of them out
)
_GAP_NS = 30 * 1_000_000_000
"""Refusals with longer pauses between them are different episodes: a consumer pulls again after 3 s at most."""
_COUNTED_NS = 1_000_000_000
"""Where answers are counted, one came within so long."""
_FAILED = ("timed_out", "refused", "connect_lost", "dropped", "lost", "broken")
_GROUPS, _TOPICS = "subscription_groups", "topics"
"""Tables of a broker whose versions are beliefs."""
_CHANGED_BY = {
    int(ResponseCode.TOPIC_NOT_EXIST): _TOPICS,
    int(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST): _GROUPS,
}
"""Mapping status of an answer -> the table of the broker that it is about."""


@attrs.frozen
class Refusals:
    """Pulls of a consumer that a broker goes on refusing."""

    consumer: str
    broker: str
    status: int
    since_ns: int
    count: int
    reason: str
    """Why, in words; empty: the trace does not show it."""
    change: TraceRow | None
    """The change of the broker's tables that led to it."""
    first: TraceRow | None
    """The first answer; None where the level of the trace leaves answers out."""

    @property
    def answer(self) -> str:
        """`NO_PERMISSION`."""
        return answer_code_name(self.status) or f"response code {self.status}"


@attrs.frozen
class _PullAnswer:
    t_ns: int
    status: int
    remark: str
    count: int
    row: TraceRow | None


def refusals(
    trace: TraceRows, group: str, topic: str, consumer: str, brokers: Sequence[str], at_ns: int
) -> Iterator[Refusals]:
    """The refusals of one consumer that last until an instant, at each of the nodes of a broker group.

    Args:
        trace: of the run.
        group: of the consumer.
        topic: that it pulls.
        consumer: its node.
        brokers: nodes that may answer.
        at_ns: the instant.
    """
    for broker in brokers:
        answers = [answer for answer in _answers(trace, consumer, broker, at_ns) if answer.status not in _CALM]
        lasting = _lasting([answer for answer in answers if _is_about(answer, group, topic)], at_ns)
        if lasting:
            first = lasting[0]
            reason, table = _reason(first, group, topic)
            change = _change(trace, broker, first, table)
            if not reason and change is not None:
                reason = _guess(change, group, topic)
            count = sum(item.count for item in lasting)
            yield Refusals(consumer, broker, first.status, first.t_ns, count, reason, change, first.row)


def failed_calls(trace: TraceRows, consumer: str, brokers: Sequence[str], after_ns: int, at_ns: int) -> list[TraceRow]:
    """The frames between a consumer and the nodes of a broker group that did not arrive, and calls given up."""
    nodes = (consumer, *brokers)
    rows = trace.select(RPC, event=_FAILED, src=nodes, after_ns=after_ns, until_ns=at_ns)
    return [row for row in rows if (row.text("src") == consumer) != (row.text("dst") == consumer)]


def _answers(trace: TraceRows, consumer: str, broker: str, at_ns: int) -> list[_PullAnswer]:
    wanted: dict[str, Any] = {"kind": "response", "code": PULLS, "event": "delivered"}
    rows = trace.select(RPC, src=broker, dst=consumer, until_ns=at_ns, **wanted)
    found = [_PullAnswer(row.t_ns, row.number("status"), row.text("detail"), 1, row) for row in rows]
    counted = trace.select(COUNTS, table=RPC.name, node=broker, peer=consumer, until_ns=at_ns, **wanted)
    found += [_PullAnswer(row.t_ns, row.number("status"), "", row.number("rows"), None) for row in counted]
    return sorted(found, key=lambda item: item.t_ns)


def _is_about(pull_answer: _PullAnswer, group: str, topic: str) -> bool:
    """Whether an answer may be about the group or the topic; a remark may name another one."""
    if pull_answer.status != ResponseCode.NO_PERMISSION or not pull_answer.remark:
        return True
    words = pull_answer.remark.replace("[", " ").replace("]", " ").replace(",", " ").split()
    return group in words or topic in words or "broker" in words


def _lasting(answers: list[_PullAnswer], at_ns: int) -> list[_PullAnswer]:
    """The last answers, without a long pause between them and before the instant."""
    found: list[_PullAnswer] = []
    newer_ns = at_ns
    for answer in reversed(answers):
        if newer_ns - answer.t_ns > _GAP_NS or (found and answer.status != found[-1].status):
            break
        found.append(answer)
        newer_ns = answer.t_ns
    return found[::-1]


def _reason(pull_answer: _PullAnswer, group: str, topic: str) -> tuple[str, str]:
    """(why the broker refuses, the table in which that stands)."""
    remarks = {
        f"group {group} may not consume": (_switched_off(group), _GROUPS),
        f"subscription group no permission, {group}": (_switched_off(group), _GROUPS),
        f"group {group} may not broadcast": (
            f"group {group} may not broadcast (consumeBroadcastEnable false)",
            _GROUPS,
        ),
        f"group {group} may not read topic {topic}": (f"group {group} is forbidden to read topic {topic}", _GROUPS),
        f"topic {topic} may not be read": (_unreadable(topic), _TOPICS),
        f"the topic[{topic}] peeking message is forbidden": (_unreadable(topic), _TOPICS),
    }
    if pull_answer.remark in remarks:
        return remarks[pull_answer.remark]
    if pull_answer.remark.startswith("the broker["):
        return "the permission of the broker lacks read (brokerPermission)", ""
    return pull_answer.remark, _CHANGED_BY.get(pull_answer.status, "")


def _switched_off(group: str) -> str:
    return f"group {group} is switched off (consumeEnable false)"


def _unreadable(topic: str) -> str:
    return f"the permission of topic {topic} lacks read"


def _guess(change: TraceRow, group: str, topic: str) -> str:
    """The reason by the table that was changed last, where the trace has no remarks."""
    return _switched_off(group) if change.text("subject") == _GROUPS else _unreadable(topic)


def _change(trace: TraceRows, broker: str, pull_answer: _PullAnswer, table: str) -> TraceRow | None:
    """The change of a table of a broker that came shortly before an answer; of either table where none is named."""
    if not table and (pull_answer.status != ResponseCode.NO_PERMISSION or pull_answer.remark):
        return None
    rows = trace.select(
        BELIEFS,
        kind=BeliefKind.DATA_VERSION.value,
        node=broker,
        subject=(table,) if table else (_GROUPS, _TOPICS),
        after_ns=pull_answer.t_ns - _GAP_NS,
        until_ns=pull_answer.t_ns if pull_answer.row is not None else pull_answer.t_ns + _COUNTED_NS,
    )
    changed = [row for row in rows if row.cause]
    return changed[-1] if changed else None

"""Messages that a broker handed out to a client that never got them: the answer of the receive was lost on its way.

A client of RocketMQ 5 asks a proxy, which pops at a broker; the answers go back the same way. A message of an answer
that is lost stays invisible until its time is over, unless the client asks again with the same attempt id, which it can
only of a queue that is popped in order.
"""

from collections.abc import Iterator

import attrs

from emulator.history.processes import AWAY, BACK
from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.schema import FAULTS, LIFECYCLE, MESSAGES, RPC
from emulator.why.words import fault_words, request_words, seconds
from nodes.beliefs import MessageEvent
from nodes.protocol.exchange import Movement
from nodes.protocol.extra_info import parse_extra_info
from nodes.protocol.registry import codes_where
from nodes.units import NS_PER_MS

_RECEIVES = tuple(sorted(codes_where(lambda exchange: exchange.movement is Movement.RECEIVE)))
_HOPS_MAX = 3
"""Answers on the way from a broker to a client: through a proxy there are two."""


@attrs.frozen
class LostAnswer:
    """An answer with messages that did not arrive."""

    popped: TraceRow
    """The message was handed out with it."""
    frame: TraceRow
    """The answer."""

    @property
    def client(self) -> str:
        """The node that should have got it."""
        return self.frame.text("dst")

    @property
    def hidden_until_ns(self) -> int:
        """Until when no other client gets the message."""
        return self.popped.t_ns + parse_extra_info(self.popped.text("key")).invisible_time_ms * NS_PER_MS


def lost_answer(trace: TraceRows, popped: TraceRow) -> LostAnswer | None:
    """The answer with which a message was handed out, if it was lost on its way; None: it arrived, or is not known."""
    if not popped.cause:
        return None
    pops = trace.select(MESSAGES, event=MessageEvent.POPPED.value, cause=popped.cause)
    receivers = list(dict.fromkeys(map(_receiver, pops)))  # one message ends the waits of several groups
    number, cause = receivers.index(_receiver(popped)), popped.cause
    for _ in range(_HOPS_MAX):
        answers = trace.select(RPC, cause=cause, kind="response", code=_RECEIVES, status=0)
        if number >= len(answers):
            return None
        if answers[number].text("event") != "delivered":
            return LostAnswer(popped, answers[number])
        number, cause = 0, answers[number].seq
    return None


def _receiver(popped: TraceRow) -> tuple[str, str]:
    return popped.text("group"), popped.text("client_id")


def lost_answer_lines(trace: TraceRows, lost: LostAnswer) -> Iterator[str]:
    """Where the answer was lost and why, until when its messages are hidden, and when the client asked again."""
    frame, client = lost.frame, lost.client
    subject = f"the answer of {frame.text('src')} to {request_words(frame.number('code'))} of {client}"
    yield f"{subject} was lost at {seconds(frame.t_ns)}: {_why(trace, frame)}"
    away = trace.newest(LIFECYCLE, node=client, event=AWAY, until_ns=frame.t_ns)
    back = trace.newest(LIFECYCLE, node=client, event=BACK, until_ns=frame.t_ns)
    if away is not None and (back is None or back.seq < away.seq):
        word = away.text("event").replace("_", " ")
        yield f"{client} was {word} at {seconds(away.t_ns)}: the call was that of a dead client"
    elif (closed := _closed(trace, frame)) is not None:
        yield f"{client} had closed its connection at {seconds(closed.t_ns)}: the call was that of a dead client"
    again = trace.select(
        RPC, src=client, dst=frame.text("src"), kind="request", code=frame.number("code"), after_ns=frame.t_ns
    )
    place = {name: lost.popped.fields[name] for name in ("group", "topic", "broker_name", "queue_id", "offset")}
    next_pop = trace.select(MESSAGES, event=MessageEvent.POPPED.value, after_ns=lost.popped.t_ns, **place)
    if again:
        took_ns = again[0].number("sent_ns") - frame.t_ns
        yield f"{client} asked again at {seconds(again[0].number('sent_ns'))}, {seconds(took_ns)} later"
    if not next_pop:
        yield f"it is hidden until {seconds(lost.hidden_until_ns)}"
    elif next_pop[0].t_ns < lost.hidden_until_ns:
        yield (
            f"it was handed out again at {seconds(next_pop[0].t_ns)}, although it is hidden until "
            f"{seconds(lost.hidden_until_ns)}: a client may ask again with the same attempt id"
        )
    else:
        yield f"it was handed out again at {seconds(next_pop[0].t_ns)}, when its invisible time was over"


def _closed(trace: TraceRows, frame: TraceRow) -> TraceRow | None:
    """The end of the connection of the call, of a client whose process is not emulated; None: it was open."""
    if frame.text("event") == "dropped":
        return None
    peers = {"src": frame.text("dst"), "dst": frame.text("src")}
    return trace.newest(RPC, event="closed", connection=frame.number("connection"), until_seq=frame.seq, **peers)


def _why(trace: TraceRows, frame: TraceRow) -> str:
    event, detail = frame.text("event"), frame.text("detail")
    if event != "dropped":
        return f"{event.replace('_', ' ')}{f', {detail}' if detail else ''}"
    began = trace.newest(FAULTS, event="begin", fault_id=detail)
    return f"fault {detail} took it" if began is None else f"{fault_words(began)} took it"

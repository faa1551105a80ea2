"""Owners of queues, now and over time: lines, a table, and a picture that needs no Spark."""

from collections.abc import Iterator, Mapping
from itertools import groupby

from emulator.analysis.rendering.canvas import Axis, band, element, label_lanes, titled
from emulator.analysis.rendering.canvas import text as written
from emulator.analysis.rendering.palette import colour_of
from emulator.history.rows.queues import GroupQueue
from emulator.notebook.html import ALARM, QUIET, VerbOutput, block, chip, table, text
from emulator.state.live import LiveFault, LiveState
from emulator.state.present_owners import OwnedSpan, PresentOwners
from nodes.units import NS_PER_S

Owners = tuple[str, ...]
_NO_NODE = "no owner"
_WIDTH, _LEFT, _RIGHT = 960, 190, 14
_ROW_PX, _LANE_PX, _AXIS_PX = 17, 15, 18
_FAULT = "#8a94a6"
_PALE = {"fill-opacity": 0.25}


def ownership_output(book: PresentOwners, nodes: tuple[str, ...]) -> VerbOutput:
    """The current owners of all queues.

    Args:
        book: owners of queues.
        nodes: of the cluster; decides the colours, so that an owner keeps its colour.
    """
    owners = book.owners()
    if not owners:
        return VerbOutput(("there is no queue that anybody could own",))
    return VerbOutput((*_owner_lines(owners), _summary(owners)), _page(owners, owner_colours(book, nodes)))


def owner_colours(book: PresentOwners, nodes: tuple[str, ...]) -> dict[str, str]:
    """Mapping node -> colour, for all nodes that have owned a queue, in the order of `nodes`."""
    ever = {name: None for queue in book.owners() for span in book.history(queue) for name in span.owners}
    return colour_of(name for name in nodes if name in ever)


def _sections(owners: Mapping[GroupQueue, Owners]) -> Iterator[tuple[str, str, dict[str, dict[int, Owners]]]]:
    """(group, topic, mapping broker -> queue id -> owners)."""
    for (group, topic), queues in groupby(owners, key=lambda queue: (queue.group, queue.topic)):
        brokers: dict[str, dict[int, Owners]] = {}
        for queue in queues:
            brokers.setdefault(queue.broker_name, {})[queue.queue_id] = owners[queue]
        yield group, topic, brokers


def _owner_lines(owners: Mapping[GroupQueue, Owners]) -> Iterator[str]:
    for group, topic, brokers in _sections(owners):
        yield f"{topic} (group {group})"
        for broker_name, queues in brokers.items():
            answer = (f"q{queue_id} {' and '.join(names) or _NO_NODE}" for queue_id, names in queues.items())
            yield f"  {broker_name}: {', '.join(answer)}"


def _summary(owners: Mapping[GroupQueue, Owners]) -> str:
    two, none = (_queues(sum(map(bad, owners.values()))) for bad in (lambda n: len(n) > 1, lambda n: not n))
    return f"{two} two owners or more, {none} none"


def _queues(count: int) -> str:
    return f"{count or 'no'} queue{' has' if count in (0, 1) else 's have'}"


def _page(owners: Mapping[GroupQueue, Owners], colours: Mapping[str, str]) -> str:
    parts = []
    for group, topic, brokers in _sections(owners):
        parts.append(text(topic, "font-weight:600") + text(f"  group {group}", QUIET))
        ids = sorted({queue_id: None for queues in brokers.values() for queue_id in queues})
        rows = [
            [text(name), *(_cell(queues[queue_id], colours) if queue_id in queues else "" for queue_id in ids)]
            for name, queues in brokers.items()
        ]
        parts.append(table(("", *(f"q{queue_id}" for queue_id in ids)), rows))
    healthy = all(len(names) == 1 for names in owners.values())
    parts.append(text(_summary(owners), QUIET if healthy else "font-weight:600"))
    return block(*parts)


def _cell(names: Owners, colours: Mapping[str, str]) -> str:
    if not names:
        return chip(_NO_NODE, ALARM)
    chips = "".join(chip(name, colours[name]) for name in names)
    if len(names) == 1:
        return chips
    return f'<span style="border:2px solid {ALARM};border-radius:6px;padding:1px">{chips}</span>'


def history_output(state: LiveState, nodes: tuple[str, ...], now_ns: int) -> VerbOutput:
    """The owners of all queues from the beginning until now.

    Args:
        state: of the run.
        nodes: of the cluster; decides the colours.
        now_ns: end of the picture.
    """
    book = state.owners
    queues = [queue for queue in book.owners() if book.history(queue)]
    if not queues:
        return VerbOutput(("no consumer has owned a queue yet",))
    colours = owner_colours(book, nodes)
    legend = "".join(chip(name, colour) for name, colour in colours.items()) + chip("no owner", ALARM)
    note = text("one row per queue; two colours in a row: two owners", "opacity:.6")
    return VerbOutput(
        tuple(_history_lines(book, queues)), block(f"{legend} {note}", _svg(state, queues, colours, now_ns))
    )


def _history_lines(book: PresentOwners, queues: list[GroupQueue]) -> Iterator[str]:
    for queue in queues:
        answer = (
            f"{' and '.join(s.owners) or 'no owner'} from {s.start_ns / NS_PER_S:.1f} s" for s in book.history(queue)
        )
        yield f"{_name(queue)}: {', '.join(answer)}"


def _name(queue: GroupQueue) -> str:
    return f"{queue.topic} {queue.broker_name} q{queue.queue_id}"


def _svg(state: LiveState, queues: list[GroupQueue], colours: Mapping[str, str], now_ns: int) -> str:
    axis = Axis(_LEFT, _WIDTH - _RIGHT, now_ns)
    faults, top = _faults(state.faults(), axis, now_ns)
    bottom = top + _AXIS_PX + _ROW_PX * len(queues)
    content = [*faults]
    for fault in state.faults():
        end_ns = now_ns if fault.end_ns is None else fault.end_ns
        content.append(band(axis, fault.start_ns, end_ns, top + _AXIS_PX, bottom, "", fill=_FAULT, **_PALE))
    for x, label in axis.ticks():
        content.append(written(x, top + 12, label, anchor="middle"))
    for row, queue in enumerate(queues):
        y = top + _AXIS_PX + row * _ROW_PX
        content.append(written(_LEFT - 8, y + 12, _name(queue), anchor="end"))
        content += _bars(queue, state.owners.history(queue), axis, y, colours, now_ns)
    style = "max-width:100%;height:auto;font:11px system-ui,sans-serif;color:inherit"
    size = {"width": _WIDTH, "height": bottom + 6, "viewBox": f"0 0 {_WIDTH} {bottom + 6}"}
    return element("svg", element("g", "".join(content), fill="currentColor"), style=style, role="img", **size)


def _bars(
    queue: GroupQueue, spans: tuple[OwnedSpan, ...], axis: Axis, y: int, colours: Mapping[str, str], now_ns: int
) -> Iterator[str]:
    """One bar per span; several owners allocate its height."""
    ends_ns = [*(span.start_ns for span in spans[1:]), now_ns]
    for span, end_ns in zip(spans, ends_ns, strict=True):
        fills = [colours[name] for name in span.owners] or [ALARM]
        height = (_ROW_PX - 3) / len(fills)
        bars = (
            band(axis, span.start_ns, end_ns, y + place * height, y + (place + 1) * height, "", fill=fill)
            for place, fill in enumerate(fills)
        )
        about = f"{' and '.join(span.owners) or 'no owner'}\n{_name(queue)}"
        yield titled("".join(bars), f"{about}\n{span.start_ns / NS_PER_S:.1f} s to {end_ns / NS_PER_S:.1f} s")


def _faults(faults: tuple[LiveFault, ...], axis: Axis, now_ns: int) -> tuple[list[str], int]:
    """Faults with labels in lanes; returns the elements, and the y coordinate below them."""
    labels = [(f.start_ns, now_ns if f.end_ns is None else f.end_ns, f.subject, "") for f in faults]
    lanes = label_lanes(axis, labels)
    drawn = []
    for lane, (start_ns, end_ns, label, _) in lanes:
        y = lane * _LANE_PX
        x, anchor = axis.label_at(start_ns, label)
        drawn.append(band(axis, start_ns, end_ns, y + 12, y + 14, "", fill=_FAULT, width_min=3))
        drawn.append(written(x, y + 10, label, anchor=anchor))
    return drawn, _LANE_PX * (1 + max((lane for lane, _ in lanes), default=-1)) + 2

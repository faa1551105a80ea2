"""The owners of queues over time, as a picture that a notebook has at once: no Spark is asked."""

from collections.abc import Iterator, Mapping

from emulator.analysis.canvas import Axis, band, element, label_lanes, text, titled
from emulator.handle.html import ALARM, block, chip
from emulator.handle.html import text as words
from emulator.handle.owner_book import FaultSpan, OwnedSpan, OwnerBook
from emulator.handle.ownership import owner_colours
from emulator.handle.told import Told
from emulator.queue_owners import GroupQueue

_WIDTH, _LEFT, _RIGHT = 960, 190, 14
_ROW_PX, _LANE_PX, _AXIS_PX = 17, 15, 18
_FAULT = "#8a94a6"
_PALE = {"fill-opacity": 0.25}
_NS = 1_000_000_000


def tell_history(book: OwnerBook, nodes: tuple[str, ...], now_ns: int) -> Told:
    """Who owned which queue from the beginning until now.

    Args:
        nodes: of the cluster; an owner has the colour that it has in the table of owners.
    """
    queues = [queue for queue in book.owners() if book.history(queue)]
    if not queues:
        return Told(("nobody has owned a queue yet",))
    colours = owner_colours(book, nodes)
    legend = "".join(chip(name, colour) for name, colour in colours.items()) + chip("nobody", ALARM)
    note = words("one row per queue; two colours in a row: two owners", "opacity:.6")
    return Told(tuple(_lines(book, queues)), block(f"{legend} {note}", _svg(book, queues, colours, now_ns)))


def _lines(book: OwnerBook, queues: list[GroupQueue]) -> Iterator[str]:
    for queue in queues:
        said = (f"{' and '.join(s.owners) or 'nobody'} from {s.start_ns / _NS:.1f} s" for s in book.history(queue))
        yield f"{_name(queue)}: {', '.join(said)}"


def _name(queue: GroupQueue) -> str:
    return f"{queue.topic} {queue.broker_name} q{queue.queue_id}"


def _svg(book: OwnerBook, queues: list[GroupQueue], colours: Mapping[str, str], now_ns: int) -> str:
    axis = Axis(_LEFT, _WIDTH - _RIGHT, now_ns)
    faults, top = _faults(book.faults(), axis, now_ns)
    bottom = top + _AXIS_PX + _ROW_PX * len(queues)
    content = [*faults]
    for fault in book.faults():
        end_ns = now_ns if fault.end_ns is None else fault.end_ns
        content.append(band(axis, fault.start_ns, end_ns, top + _AXIS_PX, bottom, "", fill=_FAULT, **_PALE))
    for x, label in axis.ticks():
        content.append(text(x, top + 12, label, anchor="middle"))
    for row, queue in enumerate(queues):
        y = top + _AXIS_PX + row * _ROW_PX
        content.append(text(_LEFT - 8, y + 12, _name(queue), anchor="end"))
        content += _bars(queue, book.history(queue), axis, y, colours, now_ns)
    style = "max-width:100%;height:auto;font:11px system-ui,sans-serif;color:inherit"
    size = {"width": _WIDTH, "height": bottom + 6, "viewBox": f"0 0 {_WIDTH} {bottom + 6}"}
    return element("svg", element("g", "".join(content), fill="currentColor"), style=style, role="img", **size)


def _bars(
    queue: GroupQueue, spans: tuple[OwnedSpan, ...], axis: Axis, y: int, colours: Mapping[str, str], now_ns: int
) -> Iterator[str]:
    """One bar per span; several owners share its height."""
    ends_ns = [*(span.start_ns for span in spans[1:]), now_ns]
    for span, end_ns in zip(spans, ends_ns, strict=True):
        fills = [colours[name] for name in span.owners] or [ALARM]
        height = (_ROW_PX - 3) / len(fills)
        bars = (
            band(axis, span.start_ns, end_ns, y + place * height, y + (place + 1) * height, "", fill=fill)
            for place, fill in enumerate(fills)
        )
        about = f"{' and '.join(span.owners) or 'nobody'}\n{_name(queue)}"
        yield titled("".join(bars), f"{about}\n{span.start_ns / _NS:.1f} s to {end_ns / _NS:.1f} s")


def _faults(faults: tuple[FaultSpan, ...], axis: Axis, now_ns: int) -> tuple[list[str], int]:
    """Faults with their names in as few lanes as keep them apart; returns where the lanes end."""
    labels = [(f.start_ns, now_ns if f.end_ns is None else f.end_ns, f.subject, "") for f in faults]
    lanes = label_lanes(axis, labels)
    drawn = []
    for lane, (start_ns, end_ns, label, _) in lanes:
        y = lane * _LANE_PX
        x, anchor = axis.label_at(start_ns, label)
        drawn.append(band(axis, start_ns, end_ns, y + 12, y + 14, "", fill=_FAULT, width_min=3))
        drawn.append(text(x, y + 10, label, anchor=anchor))
    return drawn, _LANE_PX * (1 + max((lane for lane, _ in lanes), default=-1)) + 2

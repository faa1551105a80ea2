"""Who owns which queue, in lines and as a table."""

from collections.abc import Iterator, Mapping
from itertools import groupby

from emulator.analysis.palette import colour_of
from emulator.handle.html import ALARM, QUIET, block, chip, table, text
from emulator.handle.owner_book import OwnerBook
from emulator.handle.told import Told
from emulator.queue_owners import GroupQueue

_NOBODY = "nobody"
Owners = tuple[str, ...]


def tell_ownership(book: OwnerBook, nodes: tuple[str, ...]) -> Told:
    """The owners of all queues.

    Args:
        nodes: of the cluster; an owner has the same colour every time.
    """
    owners = book.owners()
    if not owners:
        return Told(("there is no queue that anybody could own",))
    return Told((*_lines(owners), _summary(owners)), _page(owners, owner_colours(book, nodes)))


def owner_colours(book: OwnerBook, nodes: tuple[str, ...]) -> dict[str, str]:
    """The colour of everybody who has ever owned a queue; `nodes` is the order in which colours are given."""
    ever = {name: None for queue in book.owners() for span in book.history(queue) for name in span.owners}
    return colour_of(name for name in nodes if name in ever)


def _sections(owners: Mapping[GroupQueue, Owners]) -> Iterator[tuple[str, str, dict[str, dict[int, Owners]]]]:
    """Group, topic, and broker -> queue id -> owners."""
    for (group, topic), queues in groupby(owners, key=lambda queue: (queue.group, queue.topic)):
        brokers: dict[str, dict[int, Owners]] = {}
        for queue in queues:
            brokers.setdefault(queue.broker_name, {})[queue.queue_id] = owners[queue]
        yield group, topic, brokers


def _lines(owners: Mapping[GroupQueue, Owners]) -> Iterator[str]:
    for group, topic, brokers in _sections(owners):
        yield f"{topic} (group {group})"
        for broker_name, queues in brokers.items():
            said = (f"q{queue_id} {' and '.join(names) or _NOBODY}" for queue_id, names in queues.items())
            yield f"  {broker_name}: {', '.join(said)}"


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
        return chip(_NOBODY, ALARM)
    chips = "".join(chip(name, colours[name]) for name in names)
    if len(names) == 1:
        return chips
    return f'<span style="border:2px solid {ALARM};border-radius:6px;padding:1px">{chips}</span>'

"""A comparison of two runs in words: a headline, then one section after the other, each a list of lines."""

import shlex
from collections.abc import Iterator, Sequence

from emulator.analysis.run_measures import IMPACT_ORDER, Measure, is_notable
from emulator.base.amounts import Amounts, heading_with_unit
from emulator.base.text import shortened
from emulator.comparison.beliefs import OWNERS, HeldDifference, HeldInRun
from emulator.comparison.compare import LASTING_NS, RunComparison
from emulator.comparison.consequences import followed_from
from emulator.comparison.headline import headline
from emulator.comparison.judged_pair import JudgedPair
from emulator.comparison.rows import ComparedRow
from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.run_directory import RunDirectory
from emulator.why.answer import chain_of_row, names_of_run
from emulator.why.words import row_words, seconds, value_words

_FOLLOWED_MAX = 6
_NEXT_MAX = 8
_ROW_CHARS = 300
_PHASE_CHARS = 60
_LASTING = f"{LASTING_NS / 1e9:g} s"
ANSWER_LINES = 20
_CHANGES_MAX = 2
_BEFORE_CHARS = 40
"""How much of two long values is shown before and after the place where they begin to differ."""


def comparison_lines(found: RunComparison, judged: JudgedPair, *, every: bool = False) -> tuple[str, ...]:
    """The lines of a comparison, the headline first; `identical` alone if the two are the same run twice.

    Args:
        found: the comparison.
        judged: the same two runs.
        every: all of it; else the answer, which has at most twenty lines.
    """
    if found.is_identical:
        return ("identical", *found.made_differently)
    if not every:
        return tuple(_answer(found, judged))
    reported = (_verdicts(judged), _rows(found), *_beliefs(found), _measures(judged), _phases(judged))
    sections = (headline(found, judged), _heads(found), _scenario(found), *reported, _counts(found))
    return tuple(line for section in sections if section for line in ("", *section))[1:]


def _answer(found: RunComparison, judged: JudgedPair) -> Iterator[str]:
    """What differs that matters, in twenty lines, and where the rest is."""
    lines = [*headline(found, judged), "", *_heads(found)]
    changes = [item.words() for item in found.scenario]
    lines += [f"   {line}" for line in changes[:_CHANGES_MAX]]
    if (left := len(changes) - _CHANGES_MAX) > 0:
        lines.append(f"   and {_counted(left, 'more change')} of the scenario")
    paths = " ".join(shlex.quote(str(run.path)) for run in (found.first, found.second))
    last = ["", f"all of it: rmqemu compare --all {paths}"]
    measures = _measures(judged, IMPACT_ORDER)
    if measures:
        measures = ["", *measures[: ANSWER_LINES - len(lines) - len(last) - 1]]
    yield from (*lines, *measures, *last)


def _heads(found: RunComparison) -> list[str]:
    runs = (found.first, found.second)
    same_name = found.first.path.name == found.second.path.name
    paths = [str(run.path) if same_name else run.path.name for run in runs]
    return [_head(name, path, run) for name, path, run in zip("AB", paths, runs, strict=True)]


def _head(name: str, path: str, run: RunDirectory) -> str:
    manifest = run.manifest
    subject = f"{manifest['scenario']['scenario']['name']}, seed {manifest['seed']}, {manifest['mode']}"
    return f"{name}  {path}  {subject}, {run.end_ns / 1e9:.1f} s emulated"


def _scenario(found: RunComparison) -> list[str]:
    reported = [item.words() for item in found.scenario] or ["the same"]
    return ["Scenario", *_indented((*reported, *found.made_differently))]


def _verdicts(judged: JudgedPair) -> list[str]:
    """Both verdicts of both runs, and reasons; a reason of both is printed once."""
    reports = (judged.first, judged.second)
    lines = [
        f"{name}: rules {report.verdict}, service {report.service}" for name, report in zip("AB", reports, strict=True)
    ]
    for reason in dict.fromkeys(reason for report in reports for reason in report.reasons):
        of = " and ".join(name for name, report in zip("AB", reports, strict=True) if reason in report.reasons)
        lines.append(f"{of}: {reason}")
    return ["Verdicts", *_indented(lines)]


def _measures(judged: JudgedPair, order: Sequence[str] = ()) -> list[str]:
    """The measures that are not 0 in both runs.

    Args:
        judged: the runs.
        order: names of those that are wanted and differ by enough to matter, in this order; empty: all.
    """
    rows = [("", "A", "B", "B - A")]
    found = {item[0].name: item for item in judged.measures()}
    wanted = [found[name] for name in order if name in found and is_notable(*_named(found[name]))]
    for measure, first, second in wanted if order else found.values():
        amounts = Amounts(measure.name, (first, second))
        difference = "=" if first == second else f"{'+' if second > first else '-'}{amounts.plain(abs(second - first))}"
        heading = heading_with_unit(measure.heading, measure.name)
        rows.append((heading, amounts.plain(first), amounts.plain(second), difference))
    return ["Measures", *_indented(_columns(rows))] if len(rows) > 1 else []


def _named(item: tuple[Measure, float, float]) -> tuple[str, float, float]:
    return item[0].name, item[1], item[2]


def _phases(judged: JudgedPair) -> list[str]:
    """Queue seconds of each phase in both runs; phases of one run alone have a dash for the other."""
    pairs = judged.phases
    if len(pairs) < 2:
        return []
    figures = {"views differ": "view_ns", "two owners": "overlap_ns", "no owner": "orphan_ns"}
    shown = {
        heading: field
        for heading, field in figures.items()
        if any(getattr(item, field) for pair in pairs for item in (pair.first, pair.second) if item is not None)
    }
    if not shown:
        return ["Phases", f"  in none of the {len(pairs)} phases views or owners differed"]
    rows = [("from", *(f"{heading} {name}" for heading in shown for name in "AB"), "it begins with")]
    for pair in pairs:
        sides = (pair.first, pair.second)
        cells = [
            "-" if side is None else f"{getattr(side, field) / 1e9:,.1f}" for field in shown.values() for side in sides
        ]
        starts = dict.fromkeys(f"{side.start_ns / 1e9:,.1f}" for side in sides if side is not None)
        subject = shortened("; ".join(pair.what) or "the start", _PHASE_CHARS)
        rows.append((" / ".join(starts), *cells, subject))
    return ["Phases, in s", *_indented(_columns(rows, left=1))]


def _columns(rows: Sequence[Sequence[str]], left: int = 0) -> list[str]:
    """Rows with their columns below each other; the first is to the left, and so are `left` of the last ones."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - left
    return [
        "  ".join(
            cell.rjust(width) if 0 < number < last else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _rows(found: RunComparison) -> list[str]:
    row = found.row
    if row is None:
        return ["Traces", "  identical, row by row: what differs in the scenario changed nothing"]
    lines = [f"the first {row.seq - 1:,} rows are equal; the first that differs is at {seconds(row.t_ns)}"]
    return ["Traces", *_indented((*lines, f"A: {_row(row.first)}", f"B: {_row(row.second)}"))]


def _row(row: ComparedRow | None) -> str:
    if row is None:
        return "has ended"
    text = " ".join(f"{column}={value}" for column, value in row.fields.items())
    return f"{row.table}: {shortened(' '.join(text.split()), _ROW_CHARS)}"


def _beliefs(found: RunComparison) -> Iterator[list[str]]:
    if found.row is None:
        return
    teller = _Teller(found)
    first = found.first_belief
    if first is None:
        yield ["Beliefs", "  nodes that live in both runs believed the same at every instant"]
    else:
        yield ["First belief that differs", *teller.lines(first)]
    lasting = found.lasting
    earliest = next((item for item in lasting if item.about.kind != OWNERS), None)
    if earliest is not None and earliest != first:
        yield [f"First belief that differs for {_LASTING} or longer", *teller.lines(earliest)]
    owners = next((item for item in lasting if item.about.kind == OWNERS), None)
    if owners is not None:
        yield [f"First queue with other owners for {_LASTING} or longer", *teller.lines(owners)]
    following = [item for item in lasting if item not in (first, earliest, owners)]
    if following:
        more = len(following) - _NEXT_MAX
        rest = [f"  and {more} more"] if more > 0 else []
        yield [
            f"What else differs for {_LASTING} or longer",
            *(line for item in following[:_NEXT_MAX] for line in teller.brief(item)),
            *rest,
        ]


class _Teller:
    """Reports differences of beliefs and owners, with their causes."""

    def __init__(self, found: RunComparison) -> None:
        self._until_ns = found.until_ns
        self._sides = tuple(_ComparedRun(name, run) for name, run in (("A", found.first), ("B", found.second)))

    def brief(self, held_difference: HeldDifference) -> Iterator[str]:
        """Who, about what, how long, and the two values."""
        begin = seconds(held_difference.begin_ns)
        yield f"  {begin:>10}  {self._about(held_difference)}, {self._lasting(held_difference)}"
        values = [
            side.value(held_difference, held)
            for side, held in zip(self._sides, (held_difference.first, held_difference.second), strict=True)
        ]
        if (
            held_difference.first is not None
            and held_difference.second is not None
            and any(value.endswith("…") for value in values)
        ):
            values = [
                f"{value}  {text}"
                for value, text in zip(values, _apart(held_difference.first, held_difference.second), strict=True)
            ]
        for side, held, value in zip(self._sides, (held_difference.first, held_difference.second), values, strict=True):
            since = "" if held is None or held.t_ns == held_difference.begin_ns else f", as since {seconds(held.t_ns)}"
            yield f"              {side.name}: {value}{since}"

    def lines(self, held_difference: HeldDifference) -> Iterator[str]:
        """As `brief`; then, for each run, what led to it and what followed."""
        yield from self.brief(held_difference)
        for side, held in zip(self._sides, (held_difference.first, held_difference.second), strict=True):
            yield from ("", *_indented(side.story(held_difference, held)))

    def _about(self, held_difference: HeldDifference) -> str:
        about = held_difference.about
        return f"queue {about.subject}" if about.kind == OWNERS else f"{about.node} about {about.kind} {about.subject}"

    def _lasting(self, held_difference: HeldDifference) -> str:
        return (
            "until the end"
            if held_difference.end_ns is None
            else f"for {seconds(held_difference.lasts_ns(self._until_ns))}"
        )


class _ComparedRun:
    """One of the two runs."""

    def __init__(self, name: str, run: RunDirectory) -> None:
        self.name = name
        self._run = run
        self._trace = TraceRows(run.path)
        self._names = names_of_run(run)

    def value(self, held_difference: HeldDifference, held: HeldInRun | None) -> str:
        """What the run held at the beginning of a difference."""
        if held is None:
            return "nothing"
        row = self._trace.row(held.seq)
        return held.value if held_difference.about.kind == OWNERS or row is None else value_words(row, self._names)

    def story(self, held_difference: HeldDifference, held: HeldInRun | None) -> list[str]:
        """What led to it, and what followed; for a run in which nothing changed, just that."""
        row = None if held is None or held.t_ns < held_difference.begin_ns else self._trace.row(held.seq)
        if row is None:
            return [f"in {self.name} nothing changed at that instant"]
        lines = [f"why in {self.name}:", *_indented(chain_of_row(self._trace, row, self._names))]
        return [*lines, *self._followed(row)]

    def _followed(self, row: TraceRow) -> list[str]:
        found = followed_from(self._trace, self._run.trace, row, _FOLLOWED_MAX)
        if not found.rows:
            return [f"nothing followed from it in {self.name}"]
        many = f"{_counted(found.beliefs, 'belief')} and {_counted(found.ownership, 'change')} of ownership"
        text = [f"{seconds(item.t_ns):>10}  {item.text('node')}  {self._words(item)}" for item in found.rows]
        more = found.beliefs + found.ownership - len(text)
        rest = [f"and {more} more"] if more > 0 else []
        return [f"what followed from it in {self.name}, {many}:", *_indented((*text, *rest))]

    def _words(self, row: TraceRow) -> str:
        return row_words(self._trace, row, self._names)


def _apart(first: HeldInRun, second: HeldInRun) -> tuple[str, str]:
    """Where two long values differ, since what was left out of them may be what matters."""
    pairs = enumerate(zip(first.value, second.value, strict=False))
    apart = next((place for place, (a, b) in pairs if a != b), min(len(first.value), len(second.value)))
    begin = max(0, apart - _BEFORE_CHARS)
    here, there = (shortened(held.value[begin:], 2 * _BEFORE_CHARS) for held in (first, second))
    return f"…{here}", f"…{there}"


def _counts(found: RunComparison) -> list[str]:
    width = max(len(item.what) for item in found.counts)
    lines = [f"{'':<{width}}  {'A':>11}  {'B':>11}  {'B - A':>11}"]
    for count in found.counts:
        difference = f"{count.second - count.first:+,}" if count.second != count.first else "="
        lines.append(f"{count.what:<{width}}  {count.first:>11,}  {count.second:>11,}  {difference:>11}")
    return ["Counts", *_indented(lines)]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _indented(lines: Iterator[str] | list[str] | tuple[str, ...]) -> list[str]:
    return [f"  {line}" if line else "" for line in lines]

"""A comparison of two runs in words: a headline, then one section after the other, each a list of lines."""

from collections.abc import Iterator, Sequence

from emulator.analysis.rows.lookup import TraceRow, TraceRows
from emulator.base.amounts import Amounts, heading_with_unit
from emulator.base.text import shortened
from emulator.comparison.beliefs import OWNERS, Held, HeldDifference
from emulator.comparison.compare import LASTING_NS, RunComparison
from emulator.comparison.followed import followed_from
from emulator.comparison.headline import headline
from emulator.comparison.judged import JudgedPair
from emulator.comparison.rows import Row
from emulator.trace.run_directory import RunDirectory
from emulator.why.answer import chain_of_row, names_of_run
from emulator.why.words import row_words, seconds, value_words

_FOLLOWED_MOST = 6
_NEXT_MOST = 8
_ROW_CHARS = 300
_PHASE_CHARS = 60
_LASTING = f"{LASTING_NS / 1e9:g} s"
_BEFORE_CHARS = 40
"""How much of two long values is shown before and after the place where they begin to differ."""


def comparison_lines(found: RunComparison, judged: JudgedPair) -> tuple[str, ...]:
    """All lines of a comparison, the headline first; `identical` alone if the two are the same run twice.

    Args:
        found: the comparison.
        judged: the same two runs.
    """
    if found.is_identical:
        return ("identical", *found.made_differently)
    told = (_verdicts(judged), _rows(found), *_beliefs(found), _measures(judged), _phases(judged))
    sections = (headline(found, judged), _heads(found), _scenario(found), *told, _counts(found))
    return tuple(line for section in sections if section for line in ("", *section))[1:]


def _heads(found: RunComparison) -> list[str]:
    runs = (found.first, found.second)
    same_name = found.first.path.name == found.second.path.name
    paths = [str(run.path) if same_name else run.path.name for run in runs]
    return [_head(name, path, run) for name, path, run in zip("AB", paths, runs, strict=True)]


def _head(name: str, path: str, run: RunDirectory) -> str:
    manifest = run.manifest
    what = f"{manifest['scenario']['scenario']['name']}, seed {manifest['seed']}, {manifest['mode']}"
    return f"{name}  {path}  {what}, {run.end_ns / 1e9:.1f} s emulated"


def _scenario(found: RunComparison) -> list[str]:
    told = [one.words() for one in found.scenario] or ["the same"]
    return ["Scenario", *_indented((*told, *found.made_differently))]


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


def _measures(judged: JudgedPair) -> list[str]:
    rows = [("", "A", "B", "B - A")]
    for measure, first, second in judged.measures():
        amounts = Amounts(measure.name, (first, second))
        difference = "=" if first == second else f"{'+' if second > first else '-'}{amounts.plain(abs(second - first))}"
        heading = heading_with_unit(measure.heading, measure.name)
        rows.append((heading, amounts.plain(first), amounts.plain(second), difference))
    return ["Measures", *_indented(_columns(rows))] if len(rows) > 1 else []


def _phases(judged: JudgedPair) -> list[str]:
    """Queue seconds of each phase in both runs; phases of one run alone have a dash for the other."""
    pairs = judged.phases
    if len(pairs) < 2:
        return []
    figures = {"views differ": "view_ns", "two owners": "overlap_ns", "no owner": "orphan_ns"}
    shown = {
        heading: field
        for heading, field in figures.items()
        if any(getattr(one, field) for pair in pairs for one in (pair.first, pair.second) if one is not None)
    }
    if not shown:
        return ["Phases", f"  in none of the {len(pairs)} phases views or owners differed"]
    rows = [("from", *(f"{heading} {name}" for heading in shown for name in "AB"), "it begins with")]
    for pair in pairs:
        sides = (pair.first, pair.second)
        cells = [
            "-" if one is None else f"{getattr(one, field) / 1e9:,.1f}" for field in shown.values() for one in sides
        ]
        starts = dict.fromkeys(f"{one.start_ns / 1e9:,.1f}" for one in sides if one is not None)
        what = shortened("; ".join(pair.what) or "the start", _PHASE_CHARS)
        rows.append((" / ".join(starts), *cells, what))
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


def _row(row: Row | None) -> str:
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
        yield ["First belief that differs", *teller.tell(first)]
    lasting = found.lasting
    earliest = next((one for one in lasting if one.about.kind != OWNERS), None)
    if earliest is not None and earliest != first:
        yield [f"First belief that differs for {_LASTING} or longer", *teller.tell(earliest)]
    owners = next((one for one in lasting if one.about.kind == OWNERS), None)
    if owners is not None:
        yield [f"First queue with other owners for {_LASTING} or longer", *teller.tell(owners)]
    following = [one for one in lasting if one not in (first, earliest, owners)]
    if following:
        more = len(following) - _NEXT_MOST
        rest = [f"  and {more} more"] if more > 0 else []
        yield [
            f"What else differs for {_LASTING} or longer",
            *(line for one in following[:_NEXT_MOST] for line in teller.brief(one)),
            *rest,
        ]


class _Teller:
    """Tells differences of beliefs and owners, with their causes."""

    def __init__(self, found: RunComparison) -> None:
        self._until_ns = found.until_ns
        self._sides = tuple(_Side(name, run) for name, run in (("A", found.first), ("B", found.second)))

    def brief(self, one: HeldDifference) -> Iterator[str]:
        """Who, about what, how long, and the two values."""
        yield f"  {seconds(one.begin_ns):>10}  {self._about(one)}, {self._lasting(one)}"
        values = [side.value(one, held) for side, held in zip(self._sides, (one.first, one.second), strict=True)]
        if one.first is not None and one.second is not None and any(value.endswith("…") for value in values):
            values = [f"{value}  {text}" for value, text in zip(values, _apart(one.first, one.second), strict=True)]
        for side, held, value in zip(self._sides, (one.first, one.second), values, strict=True):
            since = "" if held is None or held.t_ns == one.begin_ns else f", as since {seconds(held.t_ns)}"
            yield f"              {side.name}: {value}{since}"

    def tell(self, one: HeldDifference) -> Iterator[str]:
        """As `brief`; then, for each run, what led to it and what followed."""
        yield from self.brief(one)
        for side, held in zip(self._sides, (one.first, one.second), strict=True):
            yield from ("", *_indented(side.story(one, held)))

    def _about(self, one: HeldDifference) -> str:
        about = one.about
        return f"queue {about.subject}" if about.kind == OWNERS else f"{about.node} about {about.kind} {about.subject}"

    def _lasting(self, one: HeldDifference) -> str:
        return "until the end" if one.end_ns is None else f"for {seconds(one.lasts_ns(self._until_ns))}"


class _Side:
    """One of the two runs."""

    def __init__(self, name: str, run: RunDirectory) -> None:
        self.name = name
        self._run = run
        self._trace = TraceRows(run.path)
        self._names = names_of_run(run)

    def value(self, one: HeldDifference, held: Held | None) -> str:
        """What the run held at the beginning of a difference."""
        if held is None:
            return "nothing"
        row = self._trace.row(held.seq)
        return held.value if one.about.kind == OWNERS or row is None else value_words(row, self._names)

    def story(self, one: HeldDifference, held: Held | None) -> list[str]:
        """What led to it, and what followed; for a run in which nothing changed, just that."""
        row = None if held is None or held.t_ns < one.begin_ns else self._trace.row(held.seq)
        if row is None:
            return [f"in {self.name} nothing changed at that instant"]
        lines = [f"why in {self.name}:", *_indented(chain_of_row(self._trace, row, self._names))]
        return [*lines, *self._followed(row)]

    def _followed(self, row: TraceRow) -> list[str]:
        found = followed_from(self._trace, self._run.trace, row, _FOLLOWED_MOST)
        if not found.rows:
            return [f"nothing followed from it in {self.name}"]
        many = f"{_counted(found.beliefs, 'belief')} and {_counted(found.ownership, 'change')} of ownership"
        told = [f"{seconds(one.t_ns):>10}  {one.text('node')}  {self._words(one)}" for one in found.rows]
        more = found.beliefs + found.ownership - len(told)
        rest = [f"and {more} more"] if more > 0 else []
        return [f"what followed from it in {self.name}, {many}:", *_indented((*told, *rest))]

    def _words(self, row: TraceRow) -> str:
        return row_words(self._trace, row, self._names)


def _apart(first: Held, second: Held) -> tuple[str, str]:
    """Where two long values differ, since what was left out of them may be what matters."""
    pairs = enumerate(zip(first.value, second.value, strict=False))
    apart = next((place for place, (a, b) in pairs if a != b), min(len(first.value), len(second.value)))
    begin = max(0, apart - _BEFORE_CHARS)
    here, there = (shortened(held.value[begin:], 2 * _BEFORE_CHARS) for held in (first, second))
    return f"…{here}", f"…{there}"


def _counts(found: RunComparison) -> list[str]:
    width = max(len(one.what) for one in found.counts)
    lines = [f"{'':<{width}}  {'A':>11}  {'B':>11}  {'B - A':>11}"]
    for one in found.counts:
        difference = f"{one.second - one.first:+,}" if one.second != one.first else "="
        lines.append(f"{one.what:<{width}}  {one.first:>11,}  {one.second:>11,}  {difference:>11}")
    return ["Counts", *_indented(lines)]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _indented(lines: Iterator[str] | list[str] | tuple[str, ...]) -> list[str]:
    return [f"  {line}" if line else "" for line in lines]

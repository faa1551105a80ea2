"""The timelines as people read them."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from emulator.timelines.real import Judged, RealRun, Span, Verdict

_MARKS = {Verdict.INSIDE: "", Verdict.MACHINE_LOAD: "~", Verdict.REAL_THREADS: "~", Verdict.OUTSIDE: "!"}


def render(
    found: Mapping[str, Mapping[str, Span]], reals: Sequence[RealRun], judged: Mapping[str, Sequence[Judged]]
) -> Table:
    """One row per run and event.

    Args:
        found: run -> event -> ours.
        reals: the real runs of these.
        judged: name of a real run -> its values.
    """
    table = Table(
        box=None, caption="seconds (consumed_twice: messages); * on a calm machine, ~ explained below, ! outside"
    )
    for title in ("run", "event", "n", "minimum", "median", "maximum", "real", "verdict"):
        table.add_column(title, justify="right" if title in ("n", "minimum", "median", "maximum") else "left")
    for run, events in found.items():
        ours = [real for real in reals if real.scenario == run]
        told = dict.fromkeys([*events, *(event for real in ours for event in real.events)])
        for event in told:
            values = [(one, real.calm) for real in ours for one in judged[real.name] if one.event == event]
            table.add_row(run, event, *_figures(events.get(event)), _listed(values), _worst(values))
        table.add_section()
    return table


def render_excuses(excused: Sequence[Judged]) -> Table:
    """The real values outside our range that something explains, each with the reason."""
    table = Table(box=None, title="explained", title_justify="left")
    for title in ("real run", "event", "seconds", "reason"):
        table.add_column(title, justify="right" if title == "seconds" else "left")
    for one in excused:
        table.add_row(one.run, one.event, f"{one.seconds:.2f}", one.reason)
    return table


def _figures(span: Span | None) -> tuple[str, str, str, str]:
    if span is None:
        return "0", "-", "-", "-"
    return str(span.n), f"{span.minimum:.2f}", f"{span.median:.2f}", f"{span.maximum:.2f}"


def _listed(values: Sequence[tuple[Judged, bool]]) -> str:
    return " ".join(f"{one.seconds:.2f}{'*' if calm else ''}{_MARKS[one.verdict]}" for one, calm in values)


def _worst(values: Sequence[tuple[Judged, bool]]) -> str:
    verdicts = [one.verdict for one, _ in values]
    return next((str(v) for v in reversed(Verdict) if v in verdicts), "")

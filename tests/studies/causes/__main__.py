"""`python -m studies.causes`: how good the named causes are, against scenarios of which the truth is on record.

The truth of a scenario is found by running it without each disturbance, with each alone, and in pairs, with paired
seeds; that takes 10 to 40 runs, and is on record in `truth.jsonl`. Naming causes takes one run for each seed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.terminal import progress_bar
from studies.causes.recorded import Recorded, record, recorded
from studies.causes.score import Judged, Score, judged, named_in, score

HERE = Path(__file__).parent
TRUTH = HERE / "truth.jsonl"
PAGE = HERE / "README.md"
BEGIN, END = "<!-- the tables of make causes -->\n", "<!-- their end -->\n"
_HEADINGS = ("", "causes", "named", "missed", "innocent, named", "innocent, not named", "precision", "recall", "shares")

app = typer.Typer(add_completion=False)


@app.command()
def main(
    record_more: Annotated[
        int, typer.Option("--record", min=0, metavar="N", help="Find the truth of so many more scenarios first.")
    ] = 0,
    first: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only the first N scenarios on record.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    is_page: Annotated[bool, typer.Option("--page", help="Write the tables into the page of the study, too.")] = False,
) -> None:
    """Run the scenarios on record, compare the causes named with the truth, and print tables and mistakes."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        if record_more:
            _record(pool, record_more)
        items = list(islice(recorded(TRUTH), first))
        with progress_bar("scenarios") as progress:
            every = list(_judged_in(pool, items, progress))
    tables = "\n".join(_tables(every, len(items)))
    typer.echo("\n".join((tables, "", *_mistakes(every))))
    if is_page:
        _write_page(tables)


def _record(pool: ProcessPoolExecutor, more: int) -> None:
    known = {item.seed for item in recorded(TRUTH)}
    seeds = list(islice((seed for seed in count(1) if seed not in known), more))
    with progress_bar("truths") as progress:
        for done, item in enumerate(pool.map(record, seeds), 1):
            with TRUTH.open("a", encoding="utf-8") as file:
                file.write(item.line() + "\n")
            progress(done / more)


def _judged_in(
    pool: ProcessPoolExecutor, items: Sequence[Recorded], progress: Callable[[float], None]
) -> Iterator[Judged]:
    every_named = pool.map(named_in, (item.tables() for item in items))
    for done, (item, named) in enumerate(zip(items, every_named, strict=True), 1):
        yield from judged(item, named)
        progress(done / len(items))


def _tables(every: Sequence[Judged], scenarios: int) -> Iterator[str]:
    yield f"{scenarios} scenarios, {len(every)} pairs of a disturbance and an impact"
    yield from _table("impact", every, lambda item: item.kind)
    yield from _table("disturbance", every, lambda item: item.of)


def _table(title: str, every: Sequence[Judged], key: Callable[[Judged], str]) -> Iterator[str]:
    yield ""
    yield "| " + " | ".join((title, *_HEADINGS[1:])) + " |"
    yield "|---|" + "--:|" * (len(_HEADINGS) - 1)
    yield _row("all", every)
    for name in sorted({key(item) for item in every}):
        yield _row(name, [item for item in every if key(item) == name])


def _row(name: str, items: Sequence[Judged]) -> str:
    found = score(items)
    innocent = sum(item.role == "innocent" and not item.is_named for item in items)
    cells = (found.right + found.missed, found.right, found.missed, found.wrong, innocent, *_rates(found))
    return f"| {name} | " + " | ".join(map(str, cells)) + " |"


def _rates(found: Score) -> tuple[str, str, str]:
    """Precision, recall, and right shares; empty where nothing was to be named."""
    precision = f"{found.precision:.3f}" if found.right + found.wrong else ""
    recall = f"{found.recall:.3f}" if found.right + found.missed else ""
    return precision, recall, f"{found.shares_right} of {found.shares}" if found.shares else ""


def _mistakes(every: Iterable[Judged]) -> Iterator[str]:
    for item in every:
        wrong = {"innocent": item.is_named, "cause": not item.is_named}.get(item.role, False)
        mistake = "innocent, named" if item.role == "innocent" else "missed"
        if item.role == "cause" and item.is_named and not item.share_is_right:
            wrong, mistake = True, "share"
        if wrong:
            yield (
                f"{mistake}: scenario {item.seed}, {item.kind}, {item.disturbance}: in truth {item.true_share:.2f}, "
                f"named with {item.named.share:.2f} of {item.named.total:.2f}"
            )


def _write_page(tables: str) -> None:
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise AssertionError(f"{PAGE}: no place for the tables: expected the lines {BEGIN!r} and {END!r}")
    PAGE.write_text(f"{before}{BEGIN}\n{tables}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    app()

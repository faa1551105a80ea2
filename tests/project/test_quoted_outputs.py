"""Every output and figure that a page quotes is what the command prints, and a page that was changed is found."""

import re

import nbformat
import pytest

import emulator
from project.quote_blocks import LEFT_OUT, commands, quoted, renewed, untrue_line, with_quote
from project.quote_runs import Workshop, demonstration, two_silent_members
from project.quoted import output_of, problem_of_figure, problem_of_quote, read, table
from project.quoted_pages import FIGURES, GENERATED, MEASURED, NO_OUTPUTS, QUOTES, RENEWS, ROOT
from support.every_case import each_case

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "emulator/README.md",
    "emulator/STUDY.md",
    *sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "emulator").glob("*/README.md")),
    "examples/OPERATE.md",
    "examples/README.md",
    "faults/README.md",
    "nodes/README.md",
    "notebooks/ANALYSE_DATA.md",
    "notebooks/README.md",
    "notebooks/RECIPES.md",
    "tests/README.md",
)
_TYPED = re.compile(r"(\$ |rmqemu |make |pip |mvn |go |git |python|NAMESRV_ADDR|\. |sed |perl )")
"""What lines of commands begin with."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """The outputs of commands; each is executed when it is asked for first."""
    return Workshop(tmp_path_factory.mktemp("quoted"))


def _case(entry):
    marks = (pytest.mark.slow,) if getattr(entry, "is_slow", False) else ()
    return pytest.param(entry, id=entry.name.replace(" ", "_"), marks=marks)


def _damaged(text):
    """The text with its last figure changed; without figures, with its first letter changed."""
    changed = re.sub(r"\d(?=\D*$)", lambda digit: str((int(digit[0]) + 1) % 10), text, count=1)
    return changed if changed != text else re.sub(r"[a-z]", lambda item: "x" if item[0] != "x" else "y", text, count=1)


@pytest.mark.parametrize("entry", [_case(entry) for entry in QUOTES])
def test_a_page_quotes_what_the_command_prints_and_each_changed_line_is_found(entry, workshop):
    page, output = read(entry.page), output_of(entry, workshop)
    assert problem_of_quote(entry, page, output) is None

    place = entry.place(page)
    lines = quoted(page, place)
    for number, line in enumerate(lines):
        if line.strip() in ("", LEFT_OUT) or line.startswith("runs/"):
            continue
        changed = with_quote(page, place, [*lines[:number], _damaged(line), *lines[number + 1 :]])
        assert f"`{RENEWS}` writes the true ones" in problem_of_quote(entry, changed, output), line


@pytest.mark.parametrize("entry", [_case(entry) for entry in FIGURES])
def test_a_figure_in_prose_is_what_the_command_prints_and_a_changed_one_is_found(entry, workshop):
    page, output = read(entry.page), output_of(entry, workshop)
    assert problem_of_figure(entry, page, output) is None

    changed = [_damaged(line) for line in output]
    assert "change the page" in problem_of_figure(entry, page, changed)


def test_the_campaign_with_two_seeds_prints_what_the_page_quotes_but_for_its_figures(workshop):
    (entry,) = (quote for quote in QUOTES if quote.command.startswith("rmqemu compare campaigns/silent-member"))
    page = read(entry.page)
    quote = quoted(page, entry.place(page))
    workshop.prepare(two_silent_members)
    output = workshop.output("rmqemu compare campaigns/fewer as-shipped sooner")

    opening = quote.index("sooner against as-shipped")
    assert output[output.index(quote[opening]) + 1] == quote[opening + 1]
    (heads,) = (line.split() for line in quote if line.startswith("per run "))
    assert heads in [line.split() for line in output]
    counts = [line.replace("20", "2") for line in quote if line.startswith(("invalid: ", "paging: "))]
    assert len(counts) == 2
    assert [line for line in counts if line not in output] == []


def test_a_notebook_has_the_report_that_the_demonstration_gives_now(workshop):
    workshop.prepare(demonstration)
    report = emulator.traces(workshop.folder / "runs" / "half-seen-consumer-sim-seed1-1").report()
    notebook = nbformat.read(ROOT / "notebooks" / "06_your_own_run.ipynb", as_version=4)
    (cell,) = (cell for cell in notebook.cells if cell.source == "run.report()")

    committed = cell.outputs[0]["data"]["text/plain"]
    assert report._repr_mimebundle_()["text/plain"] == committed, "`make notebooks`, and commit the outputs"


def _blocks(page):
    """The first lines of indented blocks, outside of fences."""
    fenced, before = False, ""
    for line in page.splitlines():
        fenced ^= line.startswith("```")
        if not fenced and line.startswith("    ") and not before.strip():
            yield line.strip()
        before = line if line.strip() else before if before.startswith("    ") else ""


@each_case("page", PAGES)
def test_no_page_quotes_an_output_that_is_not_in_the_table(page):
    content = read(page)
    places = [entry.place(content) for entry in QUOTES if entry.page == page]
    known = {line.strip() for place in places for line in content.splitlines()[place.first : place.end]}
    measured = " ".join(entry.command for entry in MEASURED if entry.page == page)
    mentioned = {entry.command for entry in QUOTES if entry.page == page}

    assert [command for command in commands(content) if command not in mentioned and (page, command) not in LIVE] == []
    assert [
        line
        for line in _blocks(content)
        if not _TYPED.match(line) and line not in known and not line.startswith(NO_OUTPUTS) and line not in measured
    ] == []


LIVE = (
    ("emulator/dataset/README.md", "rmqemu watch --all runs/first-cluster-live-seed1-1"),
    ("emulator/trace/README.md", "rmqemu analyze runs/acting-slave-sim-seed1-1"),
)
"""Pages and quoted commands that read what a live or a killed emulator left."""


@each_case("entry", MEASURED, ids=lambda entry: f"{entry.page}:{entry.text}".replace(" ", "_"))
def test_a_measured_figure_of_the_table_still_stands_in_its_page(entry):
    assert entry.text in " ".join(read(entry.page).split())


def test_the_table_names_tests_that_exist_and_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [command for command in [RENEWS, *(part.command for part in GENERATED)] if command.startswith("make ")]

    assert [part.test for part in GENERATED if not (ROOT / part.test).is_file()] == []
    assert [target for target in targets if f"\n{target.removeprefix('make ')}:" not in makefile] == []
    assert len(list(table())) == len(QUOTES) + len(FIGURES) + len(GENERATED) + len(MEASURED)


OUTPUT = ["head", "a took 10 s", "b took 20 s", "c took 3,000 s and more words", "tail"]


@pytest.mark.parametrize(
    "quote",
    [
        ["a took 10 s", "b took 20 s"],
        ["head", "...", "b took 20 s", "..."],
        ["c took 3,000 s ...", "tail"],
    ],
)
def test_lines_in_order_are_true_with_dots_for_what_is_left_out(quote):
    assert untrue_line(quote, OUTPUT) is None
    assert renewed(quote, OUTPUT) == quote


@pytest.mark.parametrize(
    ("quote", "untrue", "true"),
    [
        (["a took 11 s"], "a took 11 s", ["a took 10 s"]),
        (["head", "b took 20 s"], "b took 20 s", ["head", "...", "b took 20 s"]),
        (["tail", "...", "a took 10 s"], "a took 10 s", ["tail", "..."]),
        (["a took 9 s", "...", "c took 2,999 s ..."], "a took 9 s", ["a took 10 s", "...", "c took 3,000 s ..."]),
        (["nothing of that kind at all", "tail"], "nothing of that kind at all", ["...", "tail"]),
    ],
)
def test_a_line_that_is_not_there_is_named_and_replaced_by_the_one_that_is_most_like_it(quote, untrue, true):
    assert untrue_line(quote, OUTPUT) == untrue
    assert renewed(quote, OUTPUT) == true

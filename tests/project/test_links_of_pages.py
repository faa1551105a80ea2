"""Links of pages lead to files and headings, and each promise of the page on security names the tests that prove it."""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from support.every_case import each_case

HOME = Path(__file__).parents[2]
FOLDERS = ("emulator", "nodes", "faults", "tests", "examples", "notebooks")
KINDS = (".md", ".ipynb")
PAGES = sorted(
    [*HOME.glob("*.md"), *(page for folder in FOLDERS for page in (HOME / folder).rglob("*") if page.suffix in KINDS)]
)
LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def content(page):
    """The text of a page; of a notebook, that of its cells of prose."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        return text
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


@cache
def anchors(page):
    """What a link to a heading of the page has behind `#`, as GitHub makes it."""
    prose = re.sub(r"^```.*?^```", "", content(page), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#{1,6} (.*)$", prose, re.MULTILINE)
    texts = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip() for title in titles]
    slugs = [re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in texts]
    counted = Counter()
    found = set()
    for slug in slugs:
        found.add(f"{slug}-{counted[slug]}" if counted[slug] else slug)
        counted[slug] += 1
    return found


def broken(page, text):
    """Links of a text that lead to no file, or to no heading of a page.

    Args:
        page: where the text stands.
        text: what has the links.
    """
    for link in LINK.findall(text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if "://" in link:
            continue
        if not target.exists() or (anchor and target.suffix in KINDS and anchor not in anchors(target)):
            yield link


@each_case("page", PAGES, ids=lambda page: str(page.relative_to(HOME)))
def test_links_of_a_page_lead_to_files_and_to_headings(page):
    assert list(broken(page, content(page))) == []


@pytest.mark.parametrize(
    "link", ["no_file.md", "emulator/README.md#no-heading", "#no-heading", "emulator/why/no_file.md#why"]
)
def test_a_link_to_no_file_or_to_no_heading_is_found(link):
    assert list(broken(HOME / "README.md", f"[text]({link})")) == [link]


def test_the_map_of_the_emulator_leads_to_the_page_of_each_package_that_has_one():
    pages = [page.relative_to(HOME / "emulator").as_posix() for page in (HOME / "emulator").glob("*/README.md")]
    linked = content(HOME / "emulator" / "README.md")

    assert len(pages) > 10
    assert [page for page in sorted(pages) if f"]({page})" not in linked] == []


@pytest.mark.parametrize(
    ("page", "lines_max"),
    [
        ("README.md", 179),
        ("emulator/README.md", 119),
        ("emulator/STUDY.md", 120),
        ("examples/OPERATE.md", 120),
        ("notebooks/ANALYSE_DATA.md", 120),
    ],
)
def test_a_page_with_which_readers_begin_is_short(page, lines_max):
    assert len(content(HOME / page).splitlines()) <= lines_max


@pytest.mark.parametrize("page", ["emulator/STUDY.md", "examples/OPERATE.md", "notebooks/ANALYSE_DATA.md"])
def test_a_page_for_one_kind_of_reader_ends_in_commands_and_the_readme_leads_to_it(page):
    end = content(HOME / page).rpartition("\n## Five minutes\n")[2]

    assert end.startswith("\n    rmqemu ")
    assert f"]({page})" in content(HOME / "README.md")


def test_each_promise_names_its_tests():
    rows = [line for line in (HOME / "emulator" / "SECURITY.md").read_text().splitlines() if line.startswith("| **")]
    assert len(rows) == 12
    assert [row for row in rows if not re.search(r"\(\.\./tests/[a-z_/]+\.py\)", row)] == []


def test_every_file_that_the_worked_examples_name_exists():
    page = (HOME / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n## For who carries on\n")[2]
    named = re.findall(r"`((?:emulator|examples|faults|nodes|notebooks|tests)/[\w./]+)`", page)

    assert len(named) > 30
    assert [path for path in named if not (HOME / path).exists()] == []


def test_the_page_of_the_tests_names_the_folders_that_there_are():
    section = (
        (HOME / "tests" / "README.md").read_text(encoding="utf-8").partition("## Folders")[2].partition("\n## ")[0]
    )
    cells = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    folders = {
        path.parent.relative_to(HOME / "tests").parts[0]
        for path in (HOME / "tests").glob("*/**/*.*")
        if path.suffix != ".pyc"
    }

    assert sorted(named) == sorted(folders)

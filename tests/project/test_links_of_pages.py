"""Links of all pages lead to files, and each promise of the page on security names the tests that prove it."""

import re
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
FOLDERS = ("emulator", "nodes", "faults", "tests", "examples", "notebooks")
PAGES = sorted([*HOME.glob("*.md"), *(page for folder in FOLDERS for page in (HOME / folder).rglob("*.md"))])
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOME)))
def test_links_of_a_page_lead_to_files(page):
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_each_promise_names_its_tests():
    rows = [line for line in (HOME / "emulator" / "SECURITY.md").read_text().splitlines() if line.startswith("| **")]
    assert len(rows) == 10
    assert [row for row in rows if not re.search(r"\(\.\./tests/[a-z_/]+\.py\)", row)] == []


def test_every_file_that_the_worked_examples_name_exists():
    page = (HOME / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n## For who carries on\n")[2]
    named = re.findall(r"`((?:emulator|examples|faults|nodes|notebooks|tests)/[\w./]+)`", page)

    assert len(named) > 30
    assert [path for path in named if not (HOME / path).exists()] == []

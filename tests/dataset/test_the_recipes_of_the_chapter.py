"""The recipes of the chapter *I analyse data* run as they are copied."""

import re

import pytest

from project.recipes import CAMPAIGN, PAGE, execute_campaign, outputs, recipes, with_outputs

_CAMPAIGN_FILE = PAGE.parents[1] / "examples" / "campaigns" / "half_seen_consumer.toml"
_HEAD = re.compile(r"^\+[-+]+\+\n(\|.*)\n\+[-+]+\+$", re.MULTILINE)


@pytest.fixture
def in_an_empty_folder(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # No server of the user, but the session of the tests.
    monkeypatch.setenv("RMQEMU_SPARK", spark.sparkContext.master)
    return tmp_path


def _heads(text):
    """The names of the columns of each table that was printed."""
    return [head.replace("|", " ").split() for head in _HEAD.findall(text)]


def test_every_recipe_runs_on_fewer_seeds_and_prints_the_columns_and_the_run_that_the_page_shows(in_an_empty_folder):
    page, fewer = PAGE.read_text(encoding="utf-8"), in_an_empty_folder / "fewer.toml"
    fewer.write_text(_CAMPAIGN_FILE.read_text(encoding="utf-8").replace('"1-12"', '"1-2"'), encoding="utf-8")
    execute_campaign(str(fewer))

    printed = list(outputs(recipes(page)))

    assert printed[0].startswith("4 runs, ")
    assert _heads("\n".join(printed)) == _heads(page)
    of_some_runs = [
        text
        for code, text in zip(recipes(page), printed, strict=True)
        if "sooner-seed2" in code or "load(both)" in code
    ]
    assert len(of_some_runs) == 6
    assert [text for text in of_some_runs if text not in page] == []


@pytest.mark.slow
def test_the_page_shows_what_the_recipes_print(in_an_empty_folder):
    page = PAGE.read_text(encoding="utf-8")
    execute_campaign(CAMPAIGN)

    assert with_outputs(page, list(outputs(recipes(page)))) == page, "`make recipes`, and commit the page"

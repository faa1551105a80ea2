"""The code of *I analyse data* and of its recipes runs as it is copied."""

import re

import pytest

from project.recipes import CAMPAIGN, PAGES, execute_campaign, outputs, recipes, with_outputs

_CAMPAIGN_FILE = PAGES[0].parents[1] / "examples" / "campaigns" / "half_seen_consumer.toml"
_STREAMS = re.compile(r"```python\n((?!```).)*readStream.*?```\n(\n```text\n.*?```\n)?", re.DOTALL)
"""Blocks that take as long as all others, with their outputs: `test_streaming_runs_with_spark.py` asks the same."""
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


def test_each_recipe_but_streams_runs_on_one_seed_and_prints_the_columns_and_the_run_of_the_page(in_an_empty_folder):
    fewer = in_an_empty_folder / "fewer.toml"
    fewer.write_text(_CAMPAIGN_FILE.read_text(encoding="utf-8").replace('"1-12"', '"2"'), encoding="utf-8")
    execute_campaign(str(fewer))

    pages = [_STREAMS.sub("", path.read_text(encoding="utf-8")) for path in PAGES]
    (head, *of_first), (same_head, *of_second) = map(recipes, pages)
    assert head == same_head, "it lands, judges and names views, which takes as long as all the rest: once for both"
    names = {}
    (opened,) = outputs([head], names)
    assert opened.startswith("2 runs, ")
    counts = []
    for page, codes in zip(pages, (of_first, of_second), strict=True):
        printed = list(outputs(codes, {**names}))  # a page has nothing of the other one
        assert _heads("\n".join(printed)) == _heads(page)
        of_some_runs = [text for code, text in zip(codes, printed, strict=True) if "sooner-seed2" in code]
        assert [text for text in of_some_runs if text not in page] == []
        counts.append(len(of_some_runs))
    assert counts == [1, 3]


@pytest.mark.slow
def test_the_pages_show_what_the_recipes_print(in_an_empty_folder):
    execute_campaign(CAMPAIGN)

    for page in (path.read_text(encoding="utf-8") for path in PAGES):
        assert with_outputs(page, list(outputs(recipes(page)))) == page, "`make recipes`, and commit the pages"

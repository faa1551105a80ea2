"""The words of the glossary in CONTRIBUTING.md: retired ones come back nowhere, and no name stands for two things."""

import ast
import json
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from project.house import PACKAGES, ROOT, modules, parsed, where

FOLDERS = (*PACKAGES, "examples", "notebooks", "tests")
KINDS = (".css", ".html", ".ipynb", ".js", ".md", ".py", ".toml")
# Answers of the real classes have their own words.
FOREIGN = ("tests/vectors/", "tests/project/test_words.py")
VARIABLES = ("it", "one", "said", "told", "what", "who")
"""Names that say nothing of what a variable holds."""
_NAMES = "|".join(VARIABLES)
_MAY_BE_VARIABLE = re.compile(rf"\b({_NAMES})\b *([]=:,)]|in\b)|\bas ({_NAMES})\b")
"""How a name that is stored, or a parameter, goes on; most files have none, and need not be parsed."""


@cache
def retired() -> dict[str, str]:
    """Mapping retired word -> the words that stand for it, from the table in CONTRIBUTING.md."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.partition("| retired | in its place |")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ") and "---" not in line]
    return {word.strip(): better for words, better in rows for word in words.split(",")}


def found_in(text: str) -> list[str]:
    """Each retired word of a text, with what stands in its place; an underscore parts words, too."""
    lower = re.sub(r"\.tell\(\)|def tell\(self\) -> int", "", text).lower()  # where a file is, in Python
    words = set(re.findall(r"[a-z]+", lower))
    has = {word: bool(re.search(rf"\b{word}\b", lower)) if " " in word else word in words for word in retired()}
    return [f"{word}: {better}" for word, better in retired().items() if has[word]]


def texts() -> list[tuple[str, str]]:
    """Name and text of each page, module, notebook (its sources) and scenario."""
    paths = [ROOT / "README.md", ROOT / "Makefile", ROOT / "pyproject.toml"]
    paths += [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in KINDS]
    named = [(where(path), path) for path in paths if path.is_file()]
    return [(name, _text(path)) for name, path in named if not name.startswith(FOREIGN)]


def _text(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])


def test_no_text_has_a_retired_word():
    assert [(name, words) for name, text in texts() if (words := found_in(text))] == []


@pytest.mark.parametrize("text", ["it was told", "camps of nodes", "def is_told(told):", '"a door"', "Play it again"])
def test_a_retired_word_is_found_in_prose_and_in_names(text):
    assert found_in(text) != []


@pytest.mark.parametrize("text", ["display", "untold", "campaign", "tellurium", "player_count", "mistold"])
def test_a_word_that_contains_a_retired_one_is_no_retired_word(text):
    assert found_in(text) == []


def test_no_class_of_the_product_has_the_name_of_another():
    places = defaultdict(list)
    for path in modules(*PACKAGES):
        if where(path).startswith("nodes/protocol/v2/"):
            continue  # The names are those of the public definitions, where a message is another one than in 4.x.
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(where(path))

    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def variables(tree: ast.Module) -> list[str]:
    """Names of variables and parameters, not of the fields of classes, which are columns of tables, too."""
    fields, stored, parameters = set(), [], []
    for node in ast.walk(tree):  # a class comes before what is in it
        if isinstance(node, ast.ClassDef):
            fields |= {id(part.target) for part in node.body if isinstance(part, ast.AnnAssign)}
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store) and id(node) not in fields:
                stored.append(node.id)
        elif isinstance(node, ast.arg):
            parameters.append(node.arg)
    return stored + parameters


def test_the_name_of_a_variable_says_what_it_holds():
    bad = {
        where(path): names
        for path in modules(*PACKAGES, "examples", "tests")
        if _MAY_BE_VARIABLE.search(path.read_text(encoding="utf-8"))
        if (names := [name for name in variables(parsed(path)) if name in VARIABLES])
    }

    assert bad == {}


def test_bounds_are_called_max_and_min():
    names = {
        f"{where(path)}: {name}"
        for path in modules(*PACKAGES, "examples")
        for name in re.findall(r"\b_?[A-Z][A-Z0-9_]*\b", path.read_text(encoding="utf-8"))
        if {"MOST", "LEAST"} & set(name.split("_"))
    }

    assert sorted(names) == []

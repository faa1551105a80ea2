"""Mutants: one mistake each, in code that runs, and the same ones for the same seed."""

import ast

from studies.mutants import drawn, mutants_of

SOURCE = """
LIMITS = (1, 2, 3)


def first(a: "list[int]", b: int = 7) -> bool:
    if not a and b < 5:
        return a is None or b in LIMITS
    return b == 0
"""


def test_each_mutant_is_the_file_with_one_mistake():
    found = mutants_of("x.py", SOURCE)
    texts = [mutant.applied(SOURCE) for mutant in found]

    assert len({*texts, SOURCE}) == len(found) + 1
    assert all(ast.parse(text) for text in texts)
    assert [(mutant.line, mutant.was, mutant.text) for mutant in found if mutant.line > 4] == [
        (5, "7", "8"),
        (6, "not ", ""),
        (6, "and", "or"),
        (6, "<", "<="),
        (6, "5", "6"),
        (7, "is", "is not"),
        (7, "or", "and"),
        (7, "in", "not in"),
        (8, "==", "!="),
        (8, "0", "1"),
    ]


def test_a_row_of_a_table_is_left_out():
    assert "LIMITS = (2, 3)" in [mutant.applied(SOURCE).splitlines()[1] for mutant in mutants_of("x.py", SOURCE)]


def test_a_seed_draws_the_same_mutants():
    names = [mutant.name() for mutant in drawn(63, 6, ["faults"])]

    assert names == [mutant.name() for mutant in drawn(63, 6, ["faults"])]
    assert names != [mutant.name() for mutant in drawn(64, 6, ["faults"])]

"""Questions: every difference is reported, and only what the files call unstable is overlooked."""

import json
import lzma

import pytest

from conformance.asking import ask
from conformance.families import ADAPTERS, ANSWERERS, EXCEPTED
from conformance.vectors import Case, Question, files_of_families, read_cases
from support.every_case import each_case


def requested(out, answer):
    ask(Question("made_up", "one", {"op": "guess"}, out), lambda _: answer)


def test_the_same_answer_passes_and_the_question_reaches_the_answerer():
    ask(Question("made_up", "one", {"n": 2}, {"twice": 4}), lambda given: {"twice": 2 * given["n"]})


@each_case(
    ("out", "answer", "place"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, r"out\.a\[1\]\.b: expected 2, got 3"),
        ({"a": [1]}, {"a": [1, 2]}, r"out\.a: expected \[1\], got \[1, 2\]"),
        ({"a": None}, {}, r"out\.a: expected None, got nothing"),
        ({}, {"a": None}, r"out\.a: expected nothing, got None"),
        ({"a": True}, {"a": 1}, r"out\.a: expected True, got 1"),
        ({"a": "<now>"}, {}, r"out\.a: expected '<now>', got nothing"),
        ({"error": "Mine", "message": "x"}, {"error": "Yours"}, r"out\.error: expected 'Mine', got 'Yours'"),
        ({"error": "E", "message": "x"}, {"error": "E", "message": "y"}, r"out\.message: expected 'x', got 'y'"),
        ({"error": "E", "message": "x"}, {"mqs": []}, r"out\.error: expected 'E', got nothing"),
        ({"mqs": []}, {"error": "E"}, r"out\.mqs: expected \[\], got nothing"),
    ],
)
def test_a_wrong_answer_is_reported_with_its_place(out, answer, place):
    with pytest.raises(AssertionError, match=place):
        requested(out, answer)


def test_what_no_second_run_would_give_and_a_message_that_we_do_not_report_are_not_compared():
    requested(
        {"at": "<now>", "id": ["<process counter>"], "r": [{"error": "E", "message": "theirs"}]},
        {"at": 17, "id": [3], "r": [{"error": "E"}]},
    )


def test_an_operation_that_an_answerer_does_not_know_fails():
    with pytest.raises(KeyError, match="guess"):
        ask(Question("names", "one", {"op": "guess"}, {}), ANSWERERS["names"])


def test_questions_and_sequences_are_reported_apart_line_by_line_in_any_folder(tmp_path):
    question = {"case": "q", "in": {}, "out": {}}
    sequence = {"case": "s", "releases": ["5.3.3"], "config": {}, "steps": []}
    flat, locks = tmp_path / "flat.jsonl", tmp_path / "broker" / "locks.jsonl.xz"
    flat.write_text(json.dumps(question))
    locks.parent.mkdir()
    locks.write_bytes(lzma.compress(json.dumps(sequence).encode()))

    assert files_of_families(tmp_path) == {"locks": [locks], "flat": [flat]}
    assert read_cases(locks) == [Case("locks", "s", {}, [])]
    assert read_cases(flat) == [Question("flat", "q", {}, {})]


def test_a_line_of_neither_form_is_reported_with_its_place(tmp_path):
    (tmp_path / "flat.jsonl").write_text('{"case": "x", "steps": []}')

    with pytest.raises(ValueError, match=r"flat\.jsonl, line 1: neither"):
        read_cases(tmp_path / "flat.jsonl")


def test_a_family_has_one_place_and_an_exception_belongs_to_a_family_that_is_compared():
    assert [family for family in ANSWERERS if family in ADAPTERS] == []
    assert [case for case in EXCEPTED if case[0] not in ADAPTERS and case[0] not in ANSWERERS] == []

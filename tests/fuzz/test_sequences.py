"""Sequences of steps: drawn from a seed, kept in files, and those that once did harm acted out again."""

from pathlib import Path
from random import Random

import pytest

from fuzz.requests import FRAMINGS, OTHER_CODES, frame_of_each_code
from fuzz.sequences import Session, act_out
from fuzz.steps import Act, Step, load, random_sequence, save, shortened
from nodes.protocol.codes import RequestCode
from nodes.protocol.registry import EXCHANGES

PATIENT_MS = 60_000
"""Other tests use the machine at the same time: how long a client waits there says nothing of the cluster."""
CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.sequence"))


@pytest.mark.parametrize("framing", FRAMINGS, ids=lambda framing: framing.name)
def test_every_request_code_has_a_valid_frame(framing):
    frames = list(frame_of_each_code(framing, Random(1)))
    assert len(frames) == len(EXCHANGES) + len(OTHER_CODES)
    assert {int(code) for code in RequestCode} <= {int(code) for code in (*EXCHANGES, *OTHER_CODES)}


def test_a_seed_makes_the_same_steps_again_and_a_file_holds_them(tmp_path):
    drawn = random_sequence(Random(7))
    assert random_sequence(Random(7)) == drawn
    save(tmp_path / "one.sequence", drawn)
    assert load(tmp_path / "one.sequence") == drawn


def test_all_acts_are_drawn():
    acts = {step.act for seed in range(30) for step in random_sequence(Random(seed))}
    assert acts == set(Act)


def test_a_sequence_is_shortened_to_the_steps_that_matter():
    drawn = random_sequence(Random(7))
    guilty = {drawn[3], drawn[40]}
    assert set(shortened(drawn, lambda some: guilty <= set(some))) == guilty


def test_a_sequence_that_does_no_harm_when_it_is_acted_out_again_stays_whole():
    drawn = random_sequence(Random(7))
    assert shortened(drawn, lambda _: False) == drawn


def test_sequences_that_once_did_harm_and_random_ones_do_none():
    """On one cluster, which takes longer to start than to hear them; the report of a harm says which it was."""
    session = Session(PATIENT_MS)
    drawn = [random_sequence(Random(f"in make test {number}")) for number in range(2)]
    act_out(session, [*map(load, CORPUS), *drawn], lambda: None)
    assert session.impact == []
    assert session.seen.acts["frames"] > 30
    assert isinstance(session.suspects[0][0], Step)

"""Random frames on the decoders, and the frames that once did harm."""

from pathlib import Path
from random import Random

import pytest

from fuzz.decoders import decode_everything
from fuzz.requests import FRAMINGS, random_frame
from support.every_case import each_case

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.frame"))
FRAMES = 3_000
SLICES = 2


@pytest.mark.parametrize("seed", range(SLICES))
@pytest.mark.parametrize("framing", FRAMINGS, ids=lambda framing: framing.name)
def test_a_random_frame_is_read_or_refused(framing, seed):
    chance = Random(f"{framing.name} {seed}")
    commands = 0
    for opaque in range(FRAMES // SLICES):
        frame = framing.greeting + random_frame(framing, chance, opaque, bytes_share=0.3)
        try:
            commands += decode_everything(frame)
        except Exception:
            print(frame)  # noqa: T201 - goes into the corpus
            raise
    assert commands > 0.6 * FRAMES / SLICES, "most frames are whole"


@each_case("path", CORPUS, ids=lambda path: path.stem)
def test_a_frame_that_once_did_harm_does_none(path):
    decode_everything(path.read_bytes())

"""Objects that garbage collections pass over: who freezes thaws, and what others froze stays frozen."""

import gc

import pytest

from emulator.base.process_wide import frozen_objects, is_frozen
from emulator.machine.world import run_world

pytestmark = pytest.mark.usefixtures("nothing_is_frozen")


async def frozen_inside(_world):
    return is_frozen(), gc.get_freeze_count() > 10_000


def test_objects_are_frozen_until_the_last_block_ends():
    assert not is_frozen()
    with frozen_objects():
        with frozen_objects():
            assert is_frozen()
        assert gc.get_freeze_count() > 10_000
    assert not is_frozen()
    assert gc.get_freeze_count() == 0


def test_a_world_freezes_for_itself_and_leaves_frozen_what_it_finds_so():
    assert run_world(frozen_inside) == (True, True)
    assert gc.get_freeze_count() == 0
    with frozen_objects():
        before = gc.get_freeze_count()
        assert run_world(frozen_inside) == (True, True)
        assert before / 2 < gc.get_freeze_count() <= before


def test_what_somebody_else_has_frozen_stays_frozen():
    gc.freeze()
    try:
        with frozen_objects():
            assert is_frozen()
        assert run_world(frozen_inside) == (True, True)
        assert is_frozen()
    finally:
        gc.unfreeze()
    assert not is_frozen()

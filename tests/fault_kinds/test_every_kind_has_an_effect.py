from emulator.cluster.effects import EFFECTS
from faults.catalogue import FAULTS


def test_each_kind_of_fault_has_an_effect_and_no_effect_is_of_another_kind():
    kinds = FAULTS.values()

    assert [kind.__name__ for kind in kinds if kind not in EFFECTS] == []
    assert [kind.__name__ for kind in EFFECTS if kind not in kinds] == []

"""A loss of power: what a kernel still had to repeat is gone, and who shares a machine cannot lose it alone."""

import attrs
import pytest

from emulator.spec import SpecError
from emulator.spec.refusals.violations import fitting
from fault_kinds.at_work import busy_cluster
from fault_kinds.by_script import broken
from faults.catalogue import fault_of
from faults.plan import Plan, TimedFault
from support.every_case import each_case


def test_a_loss_of_power_ends_what_the_kernel_had_to_repeat_at_its_instant():
    async def deeds(breaker):
        await breaker.stage.at_ms(20_000)
        await breaker.begin("loss", "tcp-loss 100 c1 broker-a one-way")
        await breaker.during("power-off c1", 26_500, 26_600)

    trace = broken(busy_cluster(1), deeds)

    gone = trace.select("rpc", src="c1", dst="broker-a", event="lost", detail="never acknowledged")
    assert gone != []
    assert {row.at_ms for row in gone} == {26_500}


@each_case("line", ["power-off c1", "power-off p1, c2", "power-off g+3", "power-off consumers", "power-off *"])
def test_consumers_that_share_a_machine_do_not_lose_its_power_one_by_one(line):
    scenario = busy_cluster(60_000)
    (group,) = scenario.consumers
    shared = attrs.evolve(scenario, consumers=(attrs.evolve(group, one_address=True),))

    with pytest.raises(SpecError) as error:
        fitting(attrs.evolve(shared, faults=Plan((TimedFault("it", fault_of(line), 1_000, 1_000),))))
    assert str(error.value) == "fault[0].kind: expected no loss of power where nodes share an address: use kill"

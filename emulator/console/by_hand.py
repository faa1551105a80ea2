"""The scenario that repeats a run with what was done in it interactively: faults, and acts of administrators."""

from collections.abc import Sequence

import attrs
import tomli_w

from emulator.acts.act import TimedAct
from emulator.console.guest_acts import UnrepeatedAct
from emulator.spec import Scenario, to_dict
from emulator.spec.refusals.act_checks import check_act, known_groups, known_topics
from emulator.spec.tables.bounds import ACTS_MAX, by_hand_name
from emulator.spec.tables.mistakes import SpecError
from faults.plan import Plan

_HEAD = """\
# What was done interactively, at the instants at which it was done. A run of this in `sim` or `fast` gives the same
# changes of views in the same order, with the same timers, as long as nothing was lost at random: which frame a
# loss takes depends on how many went before it, and what passes next to the network in `live` takes time of its own.
"""


@attrs.frozen
class ByHand:
    """What was done interactively in a run."""

    faults: Plan = Plan()
    acts: tuple[TimedAct, ...] = ()
    """By verbs, and by guests."""
    unrepeated: tuple[UnrepeatedAct, ...] = ()
    """What guests did that no act stands for."""

    def __bool__(self) -> bool:
        """Whether anything was done."""
        return bool(self.faults.faults or self.acts or self.unrepeated)


def scenario_by_hand(scenario: Scenario, by_hand: ByHand, end_ms: int) -> str:
    """The text of a scenario file that repeats a run with what was done interactively.

    Args:
        scenario: of the run; those of its faults and acts that have begun are included.
        by_hand: what was done interactively.
        end_ms: end of the run, in ms since it began.

    Raises:
        PlanError: two faults have one id.
    """
    planned = (timed for timed in scenario.faults.faults if timed.at_ms < end_ms)
    faults = Plan((*planned, *by_hand.faults.faults))
    acts, left = _possible(scenario, by_hand, end_ms)
    # A scenario must end after the begin of its last fault.
    instants_ms = [*(timed.at_ms for timed in faults.faults), *(timed.at_ms for timed in acts)]
    run_for_ms = max([1, end_ms, *(at_ms + 1 for at_ms in instants_ms)])
    replay = attrs.evolve(
        scenario, name=by_hand_name(scenario.name), run_for_ms=run_for_ms, faults=faults, acts=tuple(acts)
    )
    comments = "".join(f"# Not repeated: {item.describe()}\n" for item in left)
    return f"{_HEAD}{comments}\n{tomli_w.dumps(to_dict(replay))}"


def _possible(scenario: Scenario, by_hand: ByHand, end_ms: int) -> tuple[Sequence[TimedAct], Sequence[UnrepeatedAct]]:
    """The acts that a scenario may have, in order of time; and those that it may not: on a topic of a guest."""
    wanted = sorted((*(act for act in scenario.acts if act.at_ms < end_ms), *by_hand.acts), key=lambda act: act.at_ms)
    made = attrs.evolve(scenario, acts=())
    acts: list[TimedAct] = []
    left = list(by_hand.unrepeated)
    for timed in wanted:
        known = attrs.evolve(made, acts=tuple(acts))
        try:
            check_act(scenario, "", timed.act, known_topics(known), known_groups(known))
        except SpecError as error:
            left.append(UnrepeatedAct(timed.at_ms, timed.act.line(), error.problem))
        else:
            acts.append(timed)
    left += [UnrepeatedAct(timed.at_ms, timed.act.line(), "too many acts") for timed in acts[ACTS_MAX:]]
    return acts[:ACTS_MAX], sorted(left, key=lambda item: item.at_ms)

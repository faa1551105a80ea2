"""What the consumer groups of a scenario must not be: groups of one process, lite pull consumers, groups that pop."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from emulator.spec.section import SpecError, expect_known
from faults.consume_mode import ConsumeMode
from nodes.protocol.model import MessageModel

if TYPE_CHECKING:
    from emulator.spec.model import ConsumerGroupSpec

    Groups = Sequence[ConsumerGroupSpec]


def check_groups(groups: "Groups") -> None:
    """Refuse groups that cannot be.

    Raises:
        SpecError: with the key of the first.
    """
    _check_shared_processes(groups)
    _check_lite_pull(groups)
    _check_pops(groups)


def _check_shared_processes(groups: "Groups") -> None:
    with_processes: list[str] = []
    for i, consumers in enumerate(groups):
        other = consumers.share_process_with
        if other is None:
            with_processes.append(consumers.group)
            continue
        key = f"consumer[{i}].share_process_with"
        expect_known(key, "earlier group with processes of its own", other, with_processes)
        if consumers.names:
            raise SpecError(f"consumer[{i}].names", f"expected none: they run in the processes of {other}")
        if consumers.group == other or any(
            (earlier.group, earlier.share_process_with) == (consumers.group, other) for earlier in groups[:i]
        ):
            raise SpecError(f"consumer[{i}].group", "expected another group: a process consumes once for each")


def _check_lite_pull(groups: "Groups") -> None:
    sharing = [consumers.share_process_with for consumers in groups]
    for i, consumers in enumerate(groups):
        if not consumers.lite_pull:
            continue
        if consumers.fail_times:
            raise SpecError(f"consumer[{i}].fail_times", "expected 0: a lite pull consumer sends nothing back")
        if consumers.share_process_with is not None or consumers.group in sharing:
            raise SpecError(f"consumer[{i}].lite_pull", "expected false in a process that consumes for several groups")


def _check_pops(groups: "Groups") -> None:
    for i, consumers in enumerate(groups):
        if consumers.mode is not ConsumeMode.POP:
            if consumers.pop_share_queue_num:
                raise SpecError(f"consumer[{i}].pop_share_queue_num", 'expected mode = "pop" beside it')
            continue
        key, config = f"consumer[{i}].mode", consumers.config
        if consumers.lite_pull:
            raise SpecError(key, "expected pull: lite pull consumers never pop")
        if config.consume_orderly or config.message_model is MessageModel.BROADCASTING:
            raise SpecError(key, "expected pull: ordered and broadcasting consumers ask no broker for their queues")
        if config.client_rebalance:
            raise SpecError(f"consumer[{i}].options.clientRebalance", 'expected false beside mode = "pop"')

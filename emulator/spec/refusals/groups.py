"""What the consumer groups of a scenario must not be: groups of one process, pull consumers, groups that pop."""

from collections.abc import Iterator, Sequence

from emulator.spec.model.scenario import ConsumerGroupSpec
from emulator.spec.tables.mistakes import SpecError, require_known
from nodes.protocol.model import MessageModel

_POP = "pop"

Groups = Sequence[ConsumerGroupSpec]


def violations_of_groups(groups: Groups) -> Iterator[SpecError]:
    """Why groups cannot be, with the key of each mistake."""
    yield from _violations_of_shared_processes(groups)
    yield from _violations_of_pull_consumers(groups)
    yield from _violations_of_pops(groups)


def _violations_of_shared_processes(groups: Groups) -> Iterator[SpecError]:
    with_processes: list[str] = []
    for i, consumers in enumerate(groups):
        other = consumers.share_process_with
        if other is None:
            with_processes.append(consumers.group)
            continue
        key = f"consumer[{i}].share_process_with"
        try:
            require_known(key, "earlier group with processes of its own", other, with_processes, "group")
        except SpecError as unknown:
            yield unknown
            continue
        if consumers.start_after_ms:
            yield SpecError(f"consumer[{i}].start_after_ms", f"expected none: it starts with the processes of {other}")
        if consumers.names:
            yield SpecError(f"consumer[{i}].names", f"expected none: they run in the processes of {other}")
        if consumers.group == other or any(
            (earlier.group, earlier.share_process_with) == (consumers.group, other) for earlier in groups[:i]
        ):
            yield SpecError(f"consumer[{i}].group", "expected another group: a process consumes once for each")


def _violations_of_pull_consumers(groups: Groups) -> Iterator[SpecError]:
    sharing = [consumers.share_process_with for consumers in groups]
    for i, consumers in enumerate(groups):
        if consumers.has_listener:
            continue
        key, kind = ("lite_pull", "lite pull") if consumers.lite_pull else ("classic_pull", "classic pull")
        if consumers.fail_times:
            yield SpecError(f"consumer[{i}].fail_times", f"expected 0: a {kind} consumer sends nothing back")
        if consumers.share_process_with is not None or consumers.group in sharing:
            yield SpecError(f"consumer[{i}].{key}", "expected false in a process that consumes for several groups")


def _violations_of_pops(groups: Groups) -> Iterator[SpecError]:
    for i, consumers in enumerate(groups):
        if consumers.mode.value != _POP:
            if consumers.pop_share_queue_num:
                yield SpecError(f"consumer[{i}].pop_share_queue_num", 'expected mode = "pop" with it')
            continue
        key, config = f"consumer[{i}].mode", consumers.config
        if not consumers.has_listener:
            kind = "lite pull" if consumers.lite_pull else "classic pull"
            yield SpecError(key, f"expected pull: {kind} consumers never pop")
        elif config.consume_orderly or config.message_model is MessageModel.BROADCASTING:
            yield SpecError(key, "expected pull: ordered and broadcasting consumers ask no broker for their queues")
        elif config.client_rebalance:
            yield SpecError(f"consumer[{i}].options.clientRebalance", 'expected false with mode = "pop"')

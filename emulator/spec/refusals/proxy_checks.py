"""What clients of RocketMQ 5 and proxies must not be: clients without proxies, keys that other clients have."""

from collections.abc import Iterator

from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.scenario import ConsumerGroupSpec, Scenario
from emulator.spec.tables.mistakes import SpecError, require_known

_NO_PROXY = "expected a [[proxy]] in the scenario: there is none"


def violations_of_proxies(scenario: Scenario) -> Iterator[SpecError]:
    """Why proxies and their clients cannot be, with the key of each mistake."""
    known = [spec.name for spec in scenario.proxies]
    for i, group in enumerate(scenario.consumers):
        yield from _violations_of_consumers(f"consumer[{i}]", group, known)
        if group.mode.is_of_proxies and scenario.statefulset_of(group.group) is not None:
            yield SpecError(f"consumer[{i}].mode", "expected pull or pop: pods are consumers of RocketMQ 4")
    for i, producer in enumerate(scenario.producers):
        yield from _violations_of_producers(f"producer[{i}]", producer, known)


def _violations_of_consumers(key: str, group: ConsumerGroupSpec, known: list[str]) -> Iterator[SpecError]:
    if not group.mode.is_of_proxies:
        given = {"endpoints": bool(group.endpoints), "orderly": group.orderly}
        for name, is_given in given.items():
            if is_given:
                yield SpecError(f"{key}.{name}", 'expected mode = "push5" or "simple" with it')
        return
    if not known:
        yield SpecError(f"{key}.mode", _NO_PROXY)
        return
    yield from _unknown(f"{key}.endpoints", group.endpoints, known)
    others = {
        "share_process_with": group.share_process_with is not None,
        "one_address": group.one_address,
        "lite_pull": group.lite_pull,
    }
    for name, is_given in others.items():
        if is_given:
            yield SpecError(f"{key}.{name}", f"expected none with mode = {group.mode.value}")


def _violations_of_producers(key: str, producer: ProducerSpec, known: list[str]) -> Iterator[SpecError]:
    if not producer.endpoints:
        if producer.fifo:
            yield SpecError(f"{key}.fifo", "expected endpoints with it: only clients of RocketMQ 5 have message groups")
        return
    if not known:
        yield SpecError(f"{key}.endpoints", _NO_PROXY)
        return
    yield from _unknown(f"{key}.endpoints", producer.endpoints, known)
    if producer.select is not None:
        yield SpecError(f"{key}.select", "expected none with endpoints: a proxy chooses the queue")
    if producer.delay_level:
        yield SpecError(f"{key}.delay_level", "expected timer_s with endpoints: a proxy knows no levels")
    if producer.fifo and producer.keys is None:
        yield SpecError(f"{key}.fifo", "expected keys with it: the key of a message is its group")


def _unknown(key: str, names: tuple[str, ...], known: list[str]) -> Iterator[SpecError]:
    for i, name in enumerate(names):
        try:
            require_known(f"{key}[{i}]", "proxy", name, known)
        except SpecError as error:
            yield error

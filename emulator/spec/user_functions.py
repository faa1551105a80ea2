"""Functions of the user's own that a scenario names: they are imported before it is played."""

from collections.abc import Iterator

from emulator.spec.changes import changes
from emulator.spec.fit import refusals
from emulator.spec.mistakes import SpecError
from emulator.spec.model import Scenario
from nodes.config import AllocateStrategy, Config, ConsumerConfig
from nodes.config.user_functions import FunctionKind, UserFunctionError, load_user_function


def with_user_functions(scenario: Scenario) -> Scenario:
    """The scenario, when all functions that it names have been imported.

    Reading the scenario of an old run needs none of them, so this is a step of its own.

    Raises:
        SpecError: a function cannot be imported, or is none.
    """
    for mistake in misfits_of_functions(scenario):
        raise mistake
    return scenario


def misfits_of_functions(scenario: Scenario) -> Iterator[SpecError]:
    """The functions of a scenario that cannot be imported, or are none."""
    for i, consumers in enumerate(scenario.consumers):
        yield from refusals(expect_functions, f"consumer[{i}].options", consumers.config)
    try:
        in_turn = changes(scenario)
    except SpecError:
        return  # of a draft, whose restarts are refused already
    for change in in_turn:
        yield from refusals(expect_functions, f"{change.key}.options", change.after)


def expect_functions(key: str, config: Config) -> None:
    """Import the functions that options name.

    Raises:
        SpecError: at `key`, the path of the options: a function cannot be imported, or is none.
    """
    for option, kind, name in named_functions(config) if isinstance(config, ConsumerConfig) else ():
        try:
            load_user_function(kind, name)
        except UserFunctionError as error:
            raise SpecError(f"{key}.{option}", str(error)) from None


def named_functions(config: ConsumerConfig) -> tuple[tuple[str, FunctionKind, str], ...]:
    """The functions that a consumer names: option, kind and name of each."""
    strategy, hashed = config.allocate_message_queue_strategy, config.hash_function
    named = [] if isinstance(strategy, AllocateStrategy) else [("allocateMessageQueueStrategy", strategy)]
    found = [(option, FunctionKind.STRATEGY, str(name)) for option, name in named]
    return (*found, *([("hashFunction", FunctionKind.HASH_FUNCTION, str(hashed))] if hashed is not None else []))

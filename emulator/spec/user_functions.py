"""Functions of the user's own that a scenario names: they are imported before it is played."""

from emulator.spec.changes import changes
from emulator.spec.model import Scenario
from emulator.spec.section import SpecError
from nodes.config import AllocateStrategy, Config, ConsumerConfig
from nodes.config.user_functions import FunctionKind, UserFunctionError, load_user_function


def with_user_functions(scenario: Scenario) -> Scenario:
    """The scenario, when all functions that it names have been imported.

    Reading the scenario of an old run needs none of them, so this is a step of its own.

    Raises:
        SpecError: a function cannot be imported, or is none.
    """
    for i, consumers in enumerate(scenario.consumers):
        expect_functions(f"consumer[{i}].options", consumers.config)
    for change in changes(scenario):
        expect_functions(f"{change.key}.options", change.after)
    return scenario


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

"""What a scenario may contain at most, and how its parts may be called.

The emulated addresses have room for a few more nodes (`emulator.spec.model.addresses`).
"""

import re
from collections.abc import Callable

from nodes.config.options import TOPIC_QUEUES_MAX
from nodes.config.tables import MAX_QUEUES
from nodes.fields import LONG_MAX, Rule, whole_rule
from nodes.protocol.names import GROUP_MAX_LENGTH, TOPIC_MAX_LENGTH, IllegalNameError, check_group, check_topic

FILE_BYTES_MAX = 4 * 1024 * 1024
"""Size of a scenario file."""
NAMESERVERS_MAX = 250
CONTROLLERS_MAX = 9
PROXIES_MAX = 250
BROKERS_MAX = 2_000
"""Brokers, slaves included."""
CONSUMERS_MAX = 20_000
"""Processes of all consumer groups."""
PRODUCERS_MAX = 20_000
GUESTS_MAX = 250
TOPICS_MAX = 10_000
QUEUES_MAX = TOPIC_QUEUES_MAX
"""Queues of one topic in one broker group."""
QUEUES_IN_ALL_MAX = MAX_QUEUES
"""Queues of all topics in all broker groups."""
FAULTS_MAX = 10_000
"""Faults of the plan, and expected ones of the nemeses."""
ACTS_MAX = 10_000
"""Acts of the administrator."""
RATE_MAX = 100_000
"""Messages per second of one producer."""
DELAY_LEVEL_MAX = 1_000
"""Highest delay level of a message; how many there are is an option of brokers."""

_NAME_MAX = 100
_DOMAIN_MAX = 253
_SCENARIO = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{_NAME_MAX - 1}}}")
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"
_DOMAIN = re.compile(rf"(?=.*[A-Za-z]){_LABEL}(\.{_LABEL})*")
_NODE = re.compile(rf"[^\s,/]{{1,{TOPIC_MAX_LENGTH}}}")


def _is_node(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and bool(_NODE.fullmatch(value))


def _passes(check: Callable[[str], None], value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        check(value)
    except IllegalNameError:
        return False
    return True


SCENARIO_NAME = Rule(
    f"a name of up to {_NAME_MAX} letters, digits and . _ -, which begins with a letter or a digit",
    lambda value: isinstance(value, str) and bool(_SCENARIO.fullmatch(value)),
)
"""A scenario's name begins the name of its run directories."""
NODE_NAME = Rule(f"a name of up to {TOPIC_MAX_LENGTH} characters without spaces, commas and slashes", _is_node)
"""Targets of faults are lists of names, and queues are written TOPIC/BROKER/ID."""
NODE_NAMES = Rule("a list of names of nodes", lambda value: isinstance(value, tuple) and all(map(_is_node, value)))
DOMAIN_NAME = Rule(
    "a domain name of letters, digits, hyphens, underscores and dots, with a letter",
    lambda value: isinstance(value, str) and len(value) <= _DOMAIN_MAX and bool(_DOMAIN.fullmatch(value)),
)
TOPIC_NAME = Rule(
    f"a topic of up to {TOPIC_MAX_LENGTH} letters, digits and % | _ -",
    lambda value: _passes(check_topic, value),
)
"""RocketMQ's own rule."""
GROUP_NAME = Rule(
    f"a group of up to {GROUP_MAX_LENGTH} letters, digits and % | _ -",
    lambda value: _passes(check_group, value),
)
"""RocketMQ's own rule."""
SEED = whole_rule(minimum=0, limit=LONG_MAX)


def by_hand_name(name: str) -> str:
    """The name of the scenario that repeats what was done interactively in a run of another."""
    end = "-by-hand"
    return name if name.endswith(end) else f"{name[: _NAME_MAX - len(end)]}{end}"

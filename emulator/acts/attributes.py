"""The field of acts for changes of attributes, `+message.type=FIFO,-cleanup.policy`, as in the option of mqadmin."""

from typing import Any

from nodes.fields import Rule, checked


def _fit(text: object) -> bool:
    if not isinstance(text, str) or not text.isprintable():
        return False
    pairs = [entry.partition("=") for entry in text.split(",")] if text else []
    signed = all(len(key) > 1 and key[0] == ("+" if equals else "-") for key, equals, _ in pairs)
    has_values = all(value and "=" not in value for _, equals, value in pairs if equals)
    return signed and has_values and len({key[1:]: None for key, _, _ in pairs}) == len(pairs)


_RULE = Rule("attributes +KEY=VALUE or -KEY, separated by commas, each key once", _fit)


def attributes_field() -> Any:
    """The field `attributes` of an act; empty: none changes."""
    return checked(_RULE, "")

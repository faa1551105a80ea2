"""Wire names of fields: snake_case here, camelCase on the wire.

A field whose wire name is not the plain camelCase of its own (`clientID`)
carries it in its metadata; a class that shares fields with another but spells
them differently (send version 2) lists them in `WIRE_NAMES`.
"""

from typing import Any

import attrs

WIRE_NAME = "wire_name"


def wire(name: str) -> dict[str, str]:
    """Metadata of a field with an irregular wire name."""
    return {WIRE_NAME: name}


def wire_name(cls: type, field: "attrs.Attribute[Any]") -> str:
    """The wire name of a field."""
    own: dict[str, str] = getattr(cls, "WIRE_NAMES", {})
    if field.name in own:
        return own[field.name]
    if WIRE_NAME in field.metadata:
        return str(field.metadata[WIRE_NAME])
    head, *tail = field.name.split("_")
    return head + "".join(part.capitalize() for part in tail)

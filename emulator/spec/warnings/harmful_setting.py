"""One warning about a scenario."""

from collections.abc import Iterable

import attrs

from emulator.base.text import listed


@attrs.frozen
class HarmfulSetting:
    """A setting that RocketMQ accepts although it does harm."""

    name: str
    """Short name: `acting-flag-on-some-members`."""
    where: str
    """The brokerName, the nodes or the consumer group concerned."""
    consequence: str
    """What happens because of the setting."""

    def line(self) -> str:
        """The warning as one line of text."""
        return f"{self.name}: {self.where}: {self.consequence}"


def merged(found: Iterable[HarmfulSetting]) -> tuple[HarmfulSetting, ...]:
    """The same warnings; what several places have in common is one warning."""
    places: dict[tuple[str, str], dict[str, None]] = {}
    for warning in found:
        places.setdefault((warning.name, warning.consequence), {})[warning.where] = None
    return tuple(HarmfulSetting(name, listed(list(where)), words) for (name, words), where in places.items())

"""One warning about a scenario."""

import attrs


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

"""The options with which each node starts next: those of the scenario, or what a restart has changed."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from emulator.spec.model.scenario import Scenario
from emulator.spec.reading.secrets import resolved_config
from emulator.spec.reading.user_functions import require_functions
from emulator.spec.refusals.restarts import changed_configs
from faults.reconfigure import Value, options_text
from nodes.config import Config

_AnyConfig = TypeVar("_AnyConfig", bound=Config)


class NodeOptions:
    """The options of all nodes."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._configs: dict[str, dict[str, Config]] = {}
        """Node -> group -> options, of nodes whose options have changed; the group is empty where there is none."""
        self._changed: dict[str, dict[str, Value]] = {}
        """Node -> all options that have changed."""

    def of(self, node: str, config: _AnyConfig, group: str = "") -> _AnyConfig:
        """The options with which a node starts.

        Args:
            node: its name.
            config: what the scenario says.
            group: consumer group; empty for other roles.
        """
        return cast("_AnyConfig", self._configs.get(node, {}).get(group, config))

    def changed(self, node: str) -> str:
        """What restarts have changed, as people write it; empty for nothing."""
        return options_text(self._changed.get(node, {}))

    def change(self, node: str, given: Mapping[str, Value]) -> None:
        """Change options of a node, for this start and all later ones.

        Raises:
            SpecError: the node may not have them; nothing has changed.
        """
        self._configs[node] = self._after(node, given)
        self._changed[node] = {**self._changed.get(node, {}), **given}

    def require_possible(self, node: str, given: Mapping[str, Any]) -> None:
        """Refuse options that a node may not have with those that it has now.

        Raises:
            SpecError: the first of them.
        """
        self._after(node, given)

    def _after(self, node: str, given: Mapping[str, Any]) -> dict[str, Config]:
        now = tuple((group, self.of(node, config, group)) for group, config in self._scenario.configs_of(node))
        after = dict(changed_configs(now, node, given))
        for config in after.values():
            require_functions("options", config, self._scenario.code)
        return {group: resolved_config(config, "options") for group, config in after.items()}

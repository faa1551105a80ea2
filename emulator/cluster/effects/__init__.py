"""The effects of faults on a running cluster: one class for each kind of fault, which begins and ends it.

Every module of this package is imported here, so a new effect needs no line in this file. May import the rest of
`cluster` except `operator`, and what is below it.
"""

from importlib import import_module
from pkgutil import iter_modules

from emulator.cluster.effects.effect import Effect, ImpossibleError, Scene
from faults.fault import Fault

for _module in sorted(module.name for module in iter_modules(__path__)):
    import_module(f"{__name__}.{_module}")


class Effects:
    """The effect of every kind of fault on one cluster."""

    def __init__(self, scene: Scene) -> None:
        made: dict[type[Effect[Fault]], Effect[Fault]] = {}
        self._of_kind = {
            kind: made.get(effect) or made.setdefault(effect, effect(scene)) for kind, effect in Effect.registry.items()
        }

    def of(self, fault: Fault) -> Effect[Fault]:
        """The effect of a fault."""
        return self._of_kind[type(fault)]


__all__ = ["Effect", "Effects", "ImpossibleError", "Scene"]

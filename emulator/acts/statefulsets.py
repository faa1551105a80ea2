"""Acts on StatefulSets: what `kubectl rollout` does; mqadmin knows none of it."""

from typing import TYPE_CHECKING, ClassVar

import attrs

from emulator.acts.act import Act, Concerned, PlaceKind, Places
from faults.words import Wording
from nodes.fields import text

if TYPE_CHECKING:
    from nodes.tools.mq_admin_ext import MQAdminExt

_NOWHERE = PlaceKind(0)


@attrs.frozen
class _Rollout(Act):
    """Asks the API server of a StatefulSet for another template; the controller does the rest."""

    place_kind: ClassVar[PlaceKind] = _NOWHERE
    undo: ClassVar[bool]
    statefulset: str = text()
    """Name of the StatefulSet."""

    def concerns(self) -> Concerned:
        """The StatefulSet exists."""
        return Concerned(statefulset=self.statefulset)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the API server."""
        await admin.roll_out(places.statefulsets[self.statefulset], self.statefulset, undo=self.undo)


@attrs.frozen
class RolloutRestart(_Rollout):
    """Gives the pods a new revision, as `kubectl rollout restart statefulset/NAME`: they are replaced one by one."""

    kind: ClassVar[str] = "rollout_restart"
    wording: ClassVar[Wording] = Wording("rollout-restart", "STATEFULSET", "replace its pods by a new revision", 1)
    undo: ClassVar[bool] = False


@attrs.frozen
class RolloutUndo(_Rollout):
    """Goes back to the revision before, as `kubectl rollout undo statefulset/NAME`."""

    kind: ClassVar[str] = "rollout_undo"
    wording: ClassVar[Wording] = Wording("rollout-undo", "STATEFULSET", "go back to the revision before", 1)
    undo: ClassVar[bool] = True

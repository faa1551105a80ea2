"""Worlds whose guests may use less than usual."""

from emulator.guests.budget import GuestBudget
from emulator.spec.model.guest_limits import GuestLimits


def limit(stage, **limits):
    """Set limits for the guests that dial from now on."""
    stage.world.guests.budget = GuestBudget(GuestLimits(**limits))

"""What scenarios of tests may run: the functions of `own_strategies`, as a module next to the scenario."""

from pathlib import Path

from emulator.spec import UserCode

OWN_CODE = UserCode(Path(__file__).resolve().parent, is_allowed=True)
OWN = "own_strategies:"

"""`python -m emulator.cli`: the command line."""

from emulator.cli.main import app
from emulator.cli.terminal import NAME

app(prog_name=NAME)

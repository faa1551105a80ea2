"""`python -m emulator.cli`: the command line."""

from emulator.cli.command import main

main()

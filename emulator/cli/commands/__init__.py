"""The commands of `rmqemu`: a module for each, with its arguments, its options and its help.

What a command needs is imported when it is called, so that help and completion stay fast. The options that several
commands share are in `emulator.cli.arguments`.
"""

"""The command line `rmqemu`: `main.py` defines its commands and imports what a command needs when it is called.

The highest layer: may import every other package of the emulator.
"""

"""What every package of the emulator shares: errors, texts for people, named random streams, process-wide settings.

The lowest layer: imports no other package of the emulator.
"""

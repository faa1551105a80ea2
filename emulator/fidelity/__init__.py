"""The fidelity ledger: every trap of RocketMQ, and whether the emulator reproduces it.

May import `state` and what is below it; imports nothing of the emulator so far.
"""

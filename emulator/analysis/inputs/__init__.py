"""Shared inputs of oracles: who lives and sleeps, who holds which value and which queue, messages, and causes.

Oracles ask them for the state before a row (by its `seq`) or after an instant (by `t_ns`), never for the present, so an
answer is the same while a run goes on and when it is over. May import `rows`.
"""

"""Oracles: one module for each invariant of RocketMQ, named by what it judges.

An oracle is one object (`oracle.Oracle`), and `catalogue.ORACLES` lists them all. It may import `inputs` and what is
below, never another oracle, and nothing that renders.
"""

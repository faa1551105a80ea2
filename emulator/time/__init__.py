"""Emulated time: one timeline, one clock for every mode, and a deterministic scheduler."""

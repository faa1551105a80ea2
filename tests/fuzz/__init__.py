"""Fuzzers: frames from outside, and random scenarios. Everything comes from a seed."""

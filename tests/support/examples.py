"""How many examples Hypothesis draws: what needs more than others says how many times as many."""

from hypothesis import settings

DRAWN = settings().max_examples
"""Of the profile: few in `make test`, and four times as many in `make proofs`."""

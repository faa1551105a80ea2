"""For notebooks and tests: a cluster with verbs as methods in stepped time, and the frames of runs and campaigns.

May import `web`, `campaign`, `why` and what is below them.
"""

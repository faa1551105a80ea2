"""The handle of a cluster for notebooks and tests: verbs as methods, stepped time, HTML for what they return.

May import `web`, `run` and what is below them.
"""

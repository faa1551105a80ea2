"""The dashboard: a page that shows a live cluster and sends verbs to it.

May import `run`, `console` and what is below them.
"""

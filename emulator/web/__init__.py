"""The dashboard: one page that shows a live cluster, and says verbs to it."""

"""The history of a run: what its rows mean, folded once for all who read them.

Who lives (`processes`), who is there and subscribes to what (`presence`), who owns a queue (`owners`), who believes
what (`beliefs`), what waits (`progress`). `rows` reads rows; each other module is a fold over them with the contract of
`rows.feed.Watcher`. The judge, live watches, Spark's tasks, consoles, pages, notebooks, `why` and comparisons ask
these. It may import what is below `history`.
"""

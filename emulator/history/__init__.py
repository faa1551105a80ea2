"""The history of a run: what its rows mean, folded once for all who read them.

`rows` reads rows; each other module is a fold over them with the contract of `rows.feed.Watcher`. It may import `state`
and what is below it.
"""

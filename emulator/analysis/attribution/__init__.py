"""Attribution: which disturbances led to what was found, by the chain from each holder of a value to what it heard.

Why does a node hold its value at the instant at which it does harm; which frames, timers and rounds would have brought
another one; what became of them? Disturbances on that chain are causes, however long ago they began, and no others.
"""

"""A broker and the other replicas of its name (RIP-32): members, pre-online, copies of metadata.

May import `ha`, `registration` and what is below them.
"""

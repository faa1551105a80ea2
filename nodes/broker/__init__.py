"""A broker: `broker.py` assembles it, one package for each of its subjects.

Each may import those after it: `admin`, `transactions`, `messages`, `clients` and `group` (neither of which imports
the other), `ha` and `registration` (likewise), then `files.py` and `context.py`, which all parts share, and `tables`,
the rules without any I/O.
"""

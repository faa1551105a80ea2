"""A broker: `broker.py` assembles it, one package for each of its subjects.

Each may import those after it: `admin`, `transactions` and `timer`, `messages`, `clients` and `group` (pairs do not
import each other), `ha` and `registration` (likewise), then `files.py` and `context.py`, which all parts share, and
`tables`, the rules without any I/O.
"""

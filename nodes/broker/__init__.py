"""A broker: `assembly.py` makes its parts from the packages, one for each of its subjects.

Each may import those after it: `admin`, `pop`, `transactions` and `timer`, `messages`, `clients` and `group` (pairs do
not import each other), `ha` and `registration` (likewise), then `files.py`, `part.py` and `context.py`, which all parts
share, and `tables`, the rules without any I/O.
"""

"""What ends a command of mqadmin that no node has refused."""


class AdminToolError(Exception):
    """A command gives up by itself, without the answer of a node; the text says why in one line."""

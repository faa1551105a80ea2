"""What a client outside is called in the trace.

The first client of a program bears the program's name, as the links and faults have it; others that live at the same
time get a number: `shop`, `shop/2`, `shop/3`. Who comes when the one before has gone takes its place, as the next
incarnation: an application that is restarted is the same node in a new process.
"""

import attrs

_SEPARATOR = "/"


def program_of(node: str) -> str:
    """The program that a client belongs to, by which links and faults know it; any other node is its own."""
    return node.partition(_SEPARATOR)[0]


@attrs.frozen
class ClientName:
    """Node and incarnation of a client."""

    node: str
    incarnation: int


class ClientNames:
    """Names for all clients of all programs."""

    def __init__(self) -> None:
        self._taken: dict[str, None] = {}
        self._incarnations: dict[str, int] = {}
        self._before: dict[tuple[str, str], str] = {}

    def take(self, program: str, client_id: str) -> ClientName:
        """A name for a client that appears: the one it had before, or the first that nobody has now."""
        node = self._before.get((program, client_id), program)
        number = 1
        while node in self._taken:
            number += 1
            node = f"{program}{_SEPARATOR}{number}"
        self._taken[node] = None
        self._before[program, client_id] = node
        self._incarnations[node] = self._incarnations.get(node, 0) + 1
        return ClientName(node, self._incarnations[node])

    def free(self, node: str) -> None:
        """The client is gone."""
        del self._taken[node]

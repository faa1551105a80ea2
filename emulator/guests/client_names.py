"""Names of guests' clients in the trace.

The first client of a guest has the guest's name, as in links and faults; further clients at the same time get a
number: `shop`, `shop/2`, `shop/3`. A client that appears after another has ended takes its name, with the next
incarnation: a restarted application is the same node in a new process.
"""

import attrs

_SEPARATOR = "/"


def guest_of(node: str) -> str:
    """The guest to which a client belongs; the name itself for any other node."""
    return node.partition(_SEPARATOR)[0]


@attrs.frozen
class ClientName:
    """Node and incarnation of a client."""

    node: str
    incarnation: int


class ClientNames:
    """Gives names to all clients of all guests."""

    def __init__(self) -> None:
        self._taken: dict[str, None] = {}
        self._incarnations: dict[str, int] = {}
        self._before: dict[tuple[str, str], str] = {}

    def take(self, program: str, client_id: str) -> ClientName:
        """Take a name for a client that appears: the name it had before, or the first free one."""
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
        """Free the name of a client that has ended."""
        del self._taken[node]

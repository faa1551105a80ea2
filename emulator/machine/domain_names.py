"""Domain names: the IP addresses that each stands for at an instant, the same for all nodes."""

from collections.abc import Callable

from emulator.base.chance import named_stream


class DomainNames:
    """A name service without a machine of its own: it always answers, and a change is seen by the next question.

    Args:
        seed: of the run.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._draws: dict[str, Callable[[int], int]] = {}
        """Process -> what draws its addresses."""
        self.ips: dict[str, tuple[str, ...]] = {}
        """Domain name -> its IP addresses now; an administrator may change them."""

    def lookup(self, domain: str) -> tuple[str, ...]:
        """The IP addresses of a name; empty: there are none."""
        return self.ips.get(domain, ())

    def choose(self, domain: str, node: str, incarnation: int) -> str:
        """The address to which a process connects, drawn as servers of names change the order; empty: none."""
        ips = self.lookup(domain)
        if len(ips) < 2:
            return "".join(ips)
        process = f"{node} {incarnation}"
        if process not in self._draws:
            stream = named_stream(self._seed, node, str(incarnation), "addresses of domain names")
            self._draws[process] = stream.randrange
        return ips[self._draws[process](len(ips))]

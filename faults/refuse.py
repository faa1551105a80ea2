"""Refused requests: answered with one of RocketMQ's response codes, in place of the server."""

from typing import ClassVar, Self

import attrs

from faults.link import CODE, FILTERS, FrameFault, counts, filters
from faults.scope import LinkScope
from faults.target import ANY
from faults.words import Wording, Words, code, options
from nodes.fields import Rule, checked, whole, whole_rule
from nodes.protocol.codes import RequestCode, ResponseCode

_REFUSAL = Rule("a response code other than SUCCESS", whole_rule(minimum=1).holds)


def _one_way(scope: LinkScope) -> LinkScope:
    """Only requests from `src` to `dst` are hit."""
    return attrs.evolve(scope, one_way=True)


def _name(number: int, codes: type[RequestCode] | type[ResponseCode]) -> str:
    return codes(number).name if number in list(codes) else str(number)


@attrs.frozen(kw_only=True)
class Refuse(FrameFault):
    """The next requests of a code are answered with a response code, and the server never receives them.

    A one-way request is not carried out, either, and nothing is answered.
    """

    kind: ClassVar[str] = "refuse"
    wording: ClassVar[Wording] = Wording(
        "refuse",
        "CODE with RESPONSE [from A] [to B] [next N] [skip N] [group G] [topic T] [during STAGE]",
        "answer the next requests of a code with a response code, in place of the server",
        3,
    )
    scope: LinkScope = attrs.field(converter=_one_way)
    response: int = checked(_REFUSAL)
    """RocketMQ's response code."""
    next: int | None = whole(None, unit="requests", minimum=1)
    """How many are refused; None: all, as long as the fault lasts."""
    skip: int = whole(0, unit="requests", minimum=0)
    """How many pass before."""
    code: int = checked(CODE)
    """RocketMQ's request code."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`refuse CODE with RESPONSE [from A] [to B] ...`."""
        rest, answer = options(words, ("with", "from", "to", "next", "skip", *FILTERS[1:]))
        if len(rest) != 1 or "with" not in answer:
            raise cls.wording.mistake()
        response = code("response code", answer.pop("with"), ResponseCode)
        scope = LinkScope(answer.pop("from", ANY), answer.pop("to", ANY))
        following, skip = counts("requests", answer)
        return cls(scope=scope, response=response, next=following, skip=skip, **filters({"code": rest[0], **answer}))

    def describe(self) -> str:
        """For people: `refuse the next 5 SEND_MESSAGE_V2 with SYSTEM_BUSY on shop -> all nodes`."""
        which = "all" if self.next is None else f"the next {self.next}"
        after = f" after {self.skip}" if self.skip else ""
        answer = {"group": self.group, "topic": self.topic, "during": self.during}
        chosen = "".join(f", {name} {value}" for name, value in answer.items() if value is not None)
        request, response = _name(self.code, RequestCode), _name(self.response, ResponseCode)
        return f"refuse {which} {request}{after} with {response} on {self.scope.describe()}{chosen}"

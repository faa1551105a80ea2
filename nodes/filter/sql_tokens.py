"""The tokens of an SQL92 expression.

Mirrors:
    `org.apache.rocketmq.filter.parser.SelectorParser`, its tokens.
"""

import re
from collections.abc import Iterator
from enum import StrEnum

from nodes.values import frozen


class SqlError(ValueError):
    """An expression is malformed; the text says where and why."""


class TokenKind(StrEnum):
    """The kind of a token."""

    STRING = "string"
    FLOAT = "float"
    INTEGER = "integer"
    WORD = "word"
    """A keyword, in capitals."""
    NAME = "name"
    SIGN = "sign"
    END = "end"


@frozen
class Token:
    """One token."""

    kind: TokenKind
    text: str
    """Of a string: without quotes; of a keyword: in capitals."""
    at: int
    """Its position, counted from 0."""

    def __str__(self) -> str:
        return "the end" if self.kind is TokenKind.END else f"{self.text!r} at {self.at}"


KEYWORDS = (
    *("NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS"),
    *("CONTAINS", "STARTSWITH", "ENDSWITH"),
)
_TOKEN = re.compile(
    r"""(?P<space>[ \t\n\r\f]+|--[^\n\r]*(?:\r\n|\n|\r)|/\*.*?\*/)
    |(?P<string>'(?:''|[^'])*')
    |(?P<float>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<integer>0|[1-9][0-9]*[lL]?)
    |(?P<name>[a-zA-Z_$][a-zA-Z0-9_$]*)
    |(?P<sign><>|<=|>=|[=<>(),+-])""",
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str) -> Iterator[Token]:
    """The tokens of an expression; the last one is its end.

    Raises:
        SqlError: a character starts no token.
    """
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise SqlError(f"{text[at]!r} at {at} begins nothing that is known")
        kind, word = str(found.lastgroup), found.group()
        if kind == "string":
            yield Token(TokenKind.STRING, word[1:-1].replace("''", "'"), at)
        elif kind == "name" and word.upper() in KEYWORDS:
            yield Token(TokenKind.WORD, word.upper(), at)
        elif kind != "space":
            yield Token(TokenKind(kind), word, at)
        at = found.end()
    yield Token(TokenKind.END, "", at)

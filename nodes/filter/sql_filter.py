"""SQL92 over the properties of messages, for subscriptions other than by tag.

    orExpression  := and (OR and)*
    and           := equality (AND equality)*
    equality      := comparison ((= | <>) comparison | IS [NOT] NULL)*
    comparison    := unary ((< | <= | > | >=) unary | [NOT] BETWEEN unary AND unary
                            | [NOT] IN (string, ...) | [NOT] (CONTAINS | STARTSWITH | ENDSWITH) string)*
    unary         := (+ | - | NOT) unary | string | number | TRUE | FALSE | NULL | property | (orExpression)

Mirrors:
    `org.apache.rocketmq.filter.parser.SelectorParser`, `org.apache.rocketmq.filter.SqlFilter`.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache

from nodes.filter.sql_expressions import (
    ORDERS,
    Evaluate,
    EvaluationError,
    Expression,
    Kind,
    as_truth,
    between,
    both,
    constant,
    either,
    equal,
    floating,
    integer,
    joined,
    negated,
    negation,
    null_test,
    ordered,
    text_test,
    within,
)
from nodes.filter.sql_tokens import SqlError, Token, TokenKind, tokens
from nodes.values import frozen

SQL92 = "SQL92"
COMPILED_MAX = 100
SQL_CHARS_MAX = 8_192
"""Longest expression that is compiled: a hundred times as long as any of use; each message is compared with it."""
_TEXT_TESTS: Mapping[str, Callable[[str, str], bool]] = {
    "CONTAINS": lambda text, part: part in text,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
}
_CONSTANTS: Mapping[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}


@frozen
class SqlExpression:
    """An expression that was compiled."""

    text: str
    _evaluate: Evaluate

    def matches(self, properties: Mapping[str, str]) -> bool:
        """Whether a message with these properties matches; not if the result is unknown or values cannot be compared.

        Mirrors:
            `org.apache.rocketmq.broker.filter.ExpressionMessageFilter#isMatchedByCommitLog`.
        """
        try:
            return self._evaluate(properties) is True
        except EvaluationError:
            return False


@lru_cache(maxsize=COMPILED_MAX)
def compile_sql(text: str) -> SqlExpression:
    """Compile an expression.

    Raises:
        SqlError: it is malformed, or too long; the error says where and why.
    """
    if len(text) > SQL_CHARS_MAX:
        raise SqlError(f"Invalid MessageSelector. It has {len(text)} characters; at most {SQL_CHARS_MAX} are read")
    try:
        parser = _Parser(text)
        expression = as_truth(parser.or_expression())
        parser.require_end()
    except SqlError as error:
        raise SqlError(f"Invalid MessageSelector. {error}") from None
    except RecursionError:
        raise SqlError("Invalid MessageSelector. It has too many parentheses") from None
    return SqlExpression(text, expression.evaluate)


class _Parser:
    """One function for each line of the grammar."""

    def __init__(self, text: str) -> None:
        self._tokens = list(tokens(text))
        self._next = 0

    def or_expression(self) -> Expression:
        left = self._and()
        while self._takes("OR"):
            left = joined(either, left, self._and())
        return left

    def require_end(self) -> None:
        if self._token.kind is not TokenKind.END:
            raise SqlError(f"{self._token} is too much")

    def _and(self) -> Expression:
        left = self._equality()
        while self._takes("AND"):
            left = joined(both, left, self._equality())
        return left

    def _equality(self) -> Expression:
        left = self._comparison()
        while True:
            if self._takes("="):
                left = equal(left, self._comparison())
            elif self._takes("<>"):
                left = negation(equal(left, self._comparison()))
            elif self._takes("IS"):
                negate = self._takes("NOT")
                self._expect("NULL")
                is_null = null_test(left)
                left = negation(is_null) if negate else is_null
            else:
                return left

    def _comparison(self) -> Expression:
        left = self._unary()
        while True:
            token = self._token
            if token.kind is TokenKind.SIGN and token.text in ORDERS:
                self._next += 1
                left = ordered(token.text, left, self._unary())
                continue
            negate = token.text == "NOT" and token.kind is TokenKind.WORD
            self._next += negate
            following = self._worded(left, negate=negate)
            if following is None:
                self._next -= negate
                return left
            left = following

    def _worded(self, left: Expression, *, negate: bool) -> Expression | None:
        """BETWEEN, IN and the tests of texts; None: none of them follows."""
        if self._takes("BETWEEN"):
            low = self._unary()
            self._expect("AND")
            return between(left, low, self._unary(), negate=negate)
        if self._takes("IN"):
            return within(left, self._strings(), negate=negate)
        for word, test in _TEXT_TESTS.items():
            if self._takes(word):
                return text_test(left, self._string(), test, negate=negate)
        return None

    def _unary(self) -> Expression:
        if self._takes("+"):
            return self._unary()
        if self._takes("-"):
            value = self._unary()
            return Expression(Kind.NUMBER, lambda properties: negated(value.evaluate(properties)))
        if self._takes("NOT"):
            return negation(as_truth(self._unary()))
        if self._takes("("):
            inner = self.or_expression()
            self._expect(")")
            return inner
        return self._primary()

    def _primary(self) -> Expression:
        token = self._token
        self._next += 1
        match token.kind:
            case TokenKind.STRING:
                return constant(token.text)
            case TokenKind.INTEGER:
                return constant(integer(token))
            case TokenKind.FLOAT:
                return constant(floating(token))
            case TokenKind.NAME:
                name = token.text
                return Expression(Kind.PROPERTY, lambda properties: properties.get(name))
            case TokenKind.WORD if token.text in _CONSTANTS:
                return constant(_CONSTANTS[token.text])
        raise SqlError(f"a value was expected, not {token}")

    def _strings(self) -> tuple[str, ...]:
        self._expect("(")
        found = [self._string()]
        while self._takes(","):
            found.append(self._string())
        self._expect(")")
        return tuple(found)

    def _string(self) -> str:
        token = self._token
        if token.kind is not TokenKind.STRING:
            raise SqlError(f"a string was expected, not {token}")
        self._next += 1
        return token.text

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _takes(self, text: str) -> bool:
        """Consume this sign or keyword if it is next; returns whether it was."""
        token = self._token
        found = token.kind in (TokenKind.SIGN, TokenKind.WORD) and token.text == text
        self._next += found
        return found

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            raise SqlError(f"{text} was expected, not {self._token}")

"""Secrets: values that sign requests, and that nothing prints, writes or sends.

A field of `secret` holds a `Secret`, which is no text: whatever prints it has its mark, and JSON refuses it. Only
`reveal` returns the value, for the part that signs with it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from nodes.fields import Rule, checked, rule_of
from nodes.values import frozen

MASK = "***"
"""What stands for a secret; a number behind it marks which of several."""
SECRET_OPTIONS = ("secretKey", "secret_key")
"""All options and keys whose values are secrets, under both names."""
_SECRET_FIELDS = (
    *(name.lower() for name in SECRET_OPTIONS),
    *("securitytoken", "signature", "authorization", "password"),
    *("initauthenticationuser", "innerclientauthenticationcredentials"),
)
"""Fields of requests of guests and administrators, and options of RocketMQ whose texts have a password; a signature
would let one try keys out."""
_MARK = re.compile(r"\*{3}\d*")
_REFERENCE = re.compile(r"(env|file):\s*(\S.*)")
_SECRET_NAME = re.compile(
    r"(?:access|api|auth|private|signing)[_.-]?key|secret|passw(?:or)?d|passphrase|pwd|credential|token|signature"
    r"|(?<![a-z])[as]k(?![a-z])|initAuthenticationUser|GrpcExporterHeader",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rf"(?P<name>{'|'.join(SECRET_OPTIONS)})(?P<between>[\"']?+\s*+[=:]?+\s*+)"
    r"(?!env:|file:|\{|\*{3})(?P<value>\"[^\"]*\"?|'[^']*'?|[^\s}][^}\n]*?(?=\s*,\s*\w+\s*=|\}|\n|\Z))"
)
EXPECTED = 'or { env = "NAME" }, or { file = "PATH" }'


class Secret:
    """A secret: its value, where it comes from, and what stands for it.

    It is no attrs class, since `attrs.asdict` would make a mapping with the value of it.

    Args:
        value: None: it is not known.
        env: environment variable from which it comes.
        file: file from which it comes.
        mark: what is printed and written in place of the value.
    """

    __slots__ = ("_value", "env", "file", "mark")

    def __init__(self, value: str | None, *, env: str = "", file: str = "", mark: str = MASK) -> None:
        self._value = value
        self.env = env
        self.file = file
        self.mark = mark

    @staticmethod
    def of(value: Any) -> Any:
        """The secret that a value of a scenario file, or of the console, stands for; what stands for none is returned.

        A text is the secret itself, unless it is a mark, `env:NAME` or `file:PATH`.
        """
        if isinstance(value, Mapping) and len(value) == 1:
            (key, name), *_ = value.items()
            is_reference = key in ("env", "file") and isinstance(name, str) and name and name.isprintable()
            return Secret(None, **{key: name}) if is_reference else value
        if not isinstance(value, str):
            return value
        if _MARK.fullmatch(value):
            return Secret(None, mark=value)
        reference = _REFERENCE.fullmatch(value)
        return Secret(value) if reference is None else Secret(None, **{reference[1]: reference[2].strip()})

    @property
    def is_known(self) -> bool:
        """Whether its value is known."""
        return self._value is not None

    @property
    def reference(self) -> str:
        """`env:NAME` or `file:PATH`; empty: it comes from nowhere else."""
        return f"env:{self.env}" if self.env else f"file:{self.file}" if self.file else ""

    def reveal(self) -> str:
        """The value.

        Raises:
            ValueError: it is not known.
        """
        if self._value is None:
            raise ValueError(f"the secret {self.reference or self.mark} is not known")
        return self._value

    def with_value(self, value: str) -> "Secret":
        """The same secret with a value."""
        return Secret(value, env=self.env, file=self.file, mark=self.mark)

    def without_value(self) -> "Secret":
        """The same secret as it is when its value is not known."""
        return Secret(None, env=self.env, file=self.file, mark=self.mark)

    def with_mark(self, mark: str) -> "Secret":
        """The same secret with another mark."""
        return Secret(self._value, env=self.env, file=self.file, mark=mark)

    def plain(self) -> str | dict[str, str]:
        """What is written in place of it: the reference as a table, the mark, or nothing for none."""
        if self.reference:
            return {"env": self.env} if self.env else {"file": self.file}
        return self.mark if self else ""

    def __bool__(self) -> bool:
        """Whether there is a secret at all."""
        return self._value != ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._compared == other._compared

    def __hash__(self) -> int:
        return hash(self._compared)

    @property
    def _compared(self) -> tuple[str, ...]:
        return (self.reference, self._value if self._value is not None else f"unknown {self.mark}")

    def __str__(self) -> str:
        # Neither reference nor number: rows of a trace must not depend on how a secret was given.
        return MASK if self else ""

    __repr__ = __str__


NO_SECRET = Secret("")


@frozen
class _SecretRule(Rule):
    """A rule whose problem does not show the value."""

    def problem(self, _value: object) -> str:
        """What was expected."""
        return f"expected {self.expected}"


@frozen
class OptionsRule(Rule):
    """A rule for options, whose problem does not show them if a secret is among them."""

    def problem(self, value: object) -> str:
        """What is wrong with options."""
        return f"expected {self.expected}" if mentions_secret(str(value)) else super().problem(value)


def secret(*, min_chars: int = 0) -> Any:
    """A field that holds a secret.

    Args:
        min_chars: fewest characters; 0: there may be none, which is the default.
    """

    def holds(value: object) -> bool:
        found = Secret.of(value)
        if not isinstance(found, Secret):
            return False
        text = found.reveal() if found.is_known else None
        return text is None or (text.isprintable() and min_chars <= len(text) <= _CHARS_MAX)

    chars = f" of {min_chars} characters or more" if min_chars else ""
    rule = _SecretRule(f"a text{chars}, {EXPECTED}", holds)
    if min_chars:
        return checked(rule, converter=Secret.of)
    return checked(rule, NO_SECRET, converter=Secret.of)


_CHARS_MAX = 255


def is_secret(field: "attrs.Attribute[Any]") -> bool:
    """Whether a field was made by `secret`."""
    return isinstance(rule_of(field), _SecretRule)


def with_secrets(values: Any) -> Any:
    """Options with a `Secret` in place of each value that is one; what is no mapping is returned."""
    if not isinstance(values, Mapping) or not any(name in values for name in SECRET_OPTIONS):
        return values
    return {name: Secret.of(value) if name in SECRET_OPTIONS else value for name, value in values.items()}


def without_secrets(value: Any) -> Any:
    """A plain value, mappings included, in which a reference or a mark stands for each secret; for scenario files."""
    return _replaced(value, Secret.plain)


def printed(value: Any) -> Any:
    """A plain value, mappings included, in which the mask stands for each secret; for traces."""
    return _replaced(value, str)


def _replaced(value: Any, stands_for: Callable[[Secret], Any]) -> Any:
    if isinstance(value, Secret):
        return stands_for(value)
    if isinstance(value, Mapping):
        return {key: _replaced(item, stands_for) for key, item in value.items()}
    return value


def shown_field(name: str, value: Any) -> Any:
    """The value of a field of a request as a trace may have it: the mask for one that is a secret."""
    return MASK if name.lower() in _SECRET_FIELDS else value


def mentions_secret(text: str) -> bool:
    """Whether a text that somebody has typed names an option whose value is a secret."""
    return any(name in text for name in SECRET_OPTIONS)


def masked(text: str) -> str:
    """What somebody has typed, such as a verb with its words, with the mask in place of each secret in it."""
    return _NAMED.sub(lambda found: f"{found['name']}{found['between']}{MASK}", text) if mentions_secret(text) else text


def is_secret_name(name: str) -> bool:
    """Whether the value of an option of RocketMQ, or of one that it does not know, is a secret."""
    return _SECRET_NAME.search(name) is not None

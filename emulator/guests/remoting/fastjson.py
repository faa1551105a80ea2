"""JSON as RocketMQ's library reads and writes it, which is a superset of JSON.

Keys may be bare words, numbers or whole objects, texts may have single quotes, and extra commas are allowed:

    {"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:7}, 1:'one',}

Every text is read in linear time: no pattern gives back the characters that it has matched (hence `++` and `*+`, but
never behind a group, which Python 3.11.2 then matches wrongly), and a comment that does not end takes all the rest.
"""

import json
import re
from typing import Any

import orjson

_SPACE = re.compile(r"\s*+")
_BARE = re.compile(r"[^\s,:{}\[\]\"']++")
_STRINGS = {quote: re.compile(rf"{quote}([^{quote}\\]*+(?:\\.[^{quote}\\]*+)*){quote}", re.DOTALL) for quote in "\"'"}
_NUMBER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(?:\d++(?:\.\d++)?|\.\d++)(?:[eE][+-]?\d++)?")
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_WORDS = {"true": True, "false": False, "null": None}
_HALVES = ("\\ud", "\\uD")
"""How half of a surrogate pair begins."""
_MAKE_VALUES = (",", "{", "[", *_HALVES)
"""What begins a value, or takes as long as one."""
_DEPTH_MAX = 256
_SHOWN_CHARS = 80
"""Of a word in an error."""
VALUES_MAX = 50_000
"""Most values that are read of a body, or made of it: more would keep all nodes waiting."""
LENIENT_BYTES_MAX = 1024 * 1024
"""Most bytes of a text that is no standard JSON, which is read a hundred times more slowly."""
_LENIENT_VALUES = 4
"""Values of standard JSON that are read in the time of one of any other JSON."""
_DIGITS_MAX = 400
"""Most digits of a whole number: the time to read one grows with their square."""


class JsonError(ValueError):
    """A text is malformed, even as lenient JSON."""


class CostlyJsonError(JsonError):
    """A body has more values than are read of one."""


class ValuesLeft:
    """How many values may still be read of one body, or made of it."""

    __slots__ = ("_number",)

    def __init__(self) -> None:
        self._number = VALUES_MAX

    def take(self, number: int) -> None:
        """Count values that will be read, or made.

        Raises:
            CostlyJsonError: they are too many.
        """
        self._number -= number
        if self._number < 0:
            raise CostlyJsonError(f"more than {VALUES_MAX} values")


class ObjectKey(tuple[tuple[str, Any], ...]):
    """An object that is the key of a map: its fields, in their order."""

    __slots__ = ()


def read_json(text: str, left: ValuesLeft | None = None) -> Any:
    """Read a value.

    Args:
        left: of a body that has several texts, or of which more is made.

    Returns:
        Objects as dicts; a key that is an object itself is an `ObjectKey`, all others are texts.

    Raises:
        JsonError: it cannot be read.
    """
    try:
        value = _read(text, ValuesLeft() if left is None else left)
        # Only an escape can result in half of a surrogate pair, which could not be encoded again.
        return _without_halves(value) if any(half in text for half in _HALVES) else value
    except RecursionError as error:
        raise JsonError("nested too deeply") from error


def read_json_bytes(raw: bytes) -> Any:
    """Read a value as `read_json` does, in a fraction of the time if it is standard JSON.

    A whole number of more than 64 bits becomes a float.

    Raises:
        JsonError: it cannot be read.
    """
    if len(raw) > VALUES_MAX and sum(map(raw.count, (b",", b"{", b"["))) > VALUES_MAX:
        raise JsonError(f"more than {VALUES_MAX} values")
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return read_json(raw.decode("utf-8", "replace"))


def write_json_bytes(value: Any) -> bytes:
    """A value of plain Python as JSON without spaces; half of a surrogate pair becomes a question mark."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return text_of(value).encode("utf-8", "replace")


def _read(text: str, left: ValuesLeft) -> Any:
    left.take(sum(map(text.count, _MAKE_VALUES)))
    try:
        return json.loads(text, parse_int=_whole_number)
    except ValueError:
        pass
    if len(text) > LENIENT_BYTES_MAX:
        raise JsonError(f"no standard JSON, and more than {LENIENT_BYTES_MAX} bytes")
    try:
        return _JsonReader(text, left).whole()
    except CostlyJsonError:
        raise
    except ValueError as error:
        raise JsonError(str(error)) from error


def _whole_number(digits: str) -> int:
    if len(digits) > _DIGITS_MAX:
        raise JsonError(f"a number of {len(digits)} digits; at most {_DIGITS_MAX} are read")
    return int(digits)


def _without_halves(value: Any) -> Any:
    """Texts with surrogate pairs joined, and halves of pairs replaced."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, ObjectKey):
        return ObjectKey((_without_halves(key), _without_halves(item)) for key, item in value)
    if isinstance(value, dict):
        return {_without_halves(key): _without_halves(item) for key, item in value.items()}
    return [_without_halves(item) for item in value] if isinstance(value, list) else value


def text_of(value: Any) -> str:
    """The text of a value, as RocketMQ's library converts it."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _JsonReader:
    def __init__(self, text: str, left: ValuesLeft) -> None:
        self._text = text
        self._left = left
        self._at = 0
        self._depth = 0

    def whole(self) -> Any:
        value = self._value()
        if self._peek():
            raise JsonError(f"something follows the value, at character {self._at}")
        return value

    def _peek(self) -> str:
        """The next character behind blanks and comments; empty at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            if space is not None:
                self._at = space.end()
            if self._text.startswith("//", self._at):
                self._skip_to("\n")
            elif self._text.startswith("/*", self._at):
                self._at += 2
                self._skip_to("*/")
            else:
                return self._text[self._at : self._at + 1]

    def _skip_to(self, end: str) -> None:
        """Skip all characters up to an end, and the end; all that is left if there is none."""
        self._left.take(1)
        found = self._text.find(end, self._at)
        self._at = len(self._text) if found < 0 else found + len(end)

    def _value(self) -> Any:
        self._left.take(_LENIENT_VALUES)
        first = self._peek()
        if first == "{":
            return self._nested(self._object)
        if first == "[":
            return self._nested(self._list)
        if first and first in "\"'":
            return self._string(first)
        word = self._bare()
        if word in _WORDS:
            return _WORDS[word]
        if _NUMBER.fullmatch(word):
            return _whole_number(word)
        if _DECIMAL.fullmatch(word):
            return float(word)
        raise JsonError(f"expected a value, found {word[:_SHOWN_CHARS]!r} at character {self._at}")

    def _nested(self, read: Any) -> Any:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise JsonError("nested too deeply")
        value = read()
        self._depth -= 1
        return value

    def _object(self) -> dict[Any, Any]:
        self._at += 1
        entries: dict[Any, Any] = {}
        while True:
            first = self._peek()
            if first == ",":
                self._at += 1
            elif first == "}":
                self._at += 1
                return entries
            else:
                key = self._key(first)
                if self._peek() != ":":
                    raise JsonError(f"expected a colon at character {self._at}")
                self._at += 1
                try:
                    entries[key] = self._value()
                except TypeError as error:
                    raise JsonError(f"a key holds a list or an object, before character {self._at}") from error

    def _key(self, first: str) -> Any:
        if first == "{":
            return ObjectKey(self._nested(self._object).items())
        if first and first in "\"'":
            return self._string(first)
        return self._bare()

    def _list(self) -> list[Any]:
        self._at += 1
        items: list[Any] = []
        while True:
            first = self._peek()
            if first == ",":
                self._at += 1
            elif first == "]":
                self._at += 1
                return items
            else:
                items.append(self._value())

    def _string(self, quote: str) -> str:
        found = _STRINGS[quote].match(self._text, self._at)
        if found is None:
            raise JsonError(f"a text that begins at character {self._at} does not end")
        self._at = found.end()
        return _ESCAPED.sub(_unescaped, found[1])

    def _bare(self) -> str:
        word = _BARE.match(self._text, self._at)
        if word is None:
            found = self._text[self._at : self._at + 1] or "the end"
            raise JsonError(f"expected a value, found {found!r} at character {self._at}")
        self._at = word.end()
        return word[0]


def _unescaped(found: re.Match[str]) -> str:
    answer = found[1]
    if len(answer) > 1:
        return chr(int(answer[1:], 16))
    return _ESCAPES.get(answer, answer)

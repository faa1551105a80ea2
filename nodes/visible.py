"""The one place that makes texts safe for a terminal.

Client ids, groups, topics, keys and properties are what guests like. On a terminal, ESC begins a command, a line break
a line that looks like one of ours, and a bidirectional control reverses what follows. So each text is printed as one
line, in which such characters are escapes that people see, as Python writes them. What people write stays as it is, in
any script; zero-width joiners do, too, since emoji and Persian words need them.
"""

_SPACES = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_JOINERS = "\u200c\u200d"
_STAYS = frozenset(_SPACES + _JOINERS)
"""What people write, although Python prints it as an escape."""


def visible(text: str) -> str:
    """A text as one line that commands no terminal."""
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character.isprintable() or character in _STAYS:
        return character
    return character.encode("unicode_escape").decode("ascii")

"""Properties files, with the line of each pair.

Mirrors:
    `java.util.Properties#load(InputStream)`.
"""

from nodes.config.java_properties import MalformedPropertiesError, Property, read_pairs


class BadPropertiesError(ValueError):
    """A text is no properties file."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line
        """From 1."""


def read_properties(content: bytes) -> tuple[Property, ...]:
    r"""All pairs of a file in its order; of equal names the last one counts.

    Args:
        content: of the file; Java takes each byte for a character of ISO 8859-1.

    Raises:
        BadPropertiesError: Java refuses it: a `\u` has no four hexadecimal digits behind it.
    """
    try:
        return tuple(read_pairs(content.decode("iso-8859-1")))
    except MalformedPropertiesError as error:
        raise BadPropertiesError(error.line, "expected four hexadecimal digits behind \\u") from None

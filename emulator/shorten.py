"""Long values for people who look at many at once."""


def shortened(text: str, characters_max: int) -> str:
    """The text, or its beginning and an ellipsis where it has more characters."""
    return text if len(text) <= characters_max else text[: characters_max - 1] + "…"

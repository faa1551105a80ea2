"""Splitting texts as Java does, which is not as Python does."""


def java_split(text: str, separator: str) -> list[str]:
    """The parts between separators, without the empty ones at the end.

    So `a@b@` has the parts a and b, `@b` an empty one and b, `@` none at all, and the empty text itself as its one.

    Mirrors:
        `java.lang.String#split(String)`.
    """
    parts = text.split(separator)
    if len(parts) == 1:
        return parts
    while parts and not parts[-1]:
        parts.pop()
    return parts

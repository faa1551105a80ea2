"""The lines of keys in a TOML file, with what the parser finds in the same text."""

import json
import tomllib
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from emulator.spec.reading.toml_lines import key_lines
from nodes.fields import shown
from support.every_case import each_case
from support.examples import DRAWN

EXAMPLES = Path(__file__).parents[2] / "examples"


def paths(value, path=""):
    """All paths of a parsed file, as messages write them."""
    if isinstance(value, dict):
        inner = [(f"{path}.{shown(key)}" if path else shown(key), element) for key, element in value.items()]
    else:
        inner = (
            [(f"{path}[{index}]", element) for index, element in enumerate(value)] if isinstance(value, list) else []
        )
    for at, item in inner:
        yield at
        yield from paths(item, at)


FORMS = {
    "a = 1\nb = 2": {"a": 1, "b": 2},
    "[t]\na = 1\n\n# [x]\n[t.u]\nb = 2": {"t": 1, "t.a": 2, "t.u": 5, "t.u.b": 6},
    "[[t]]\na = 1\n[[t]]\na = 2": {"t": 1, "t[0]": 1, "t[0].a": 2, "t[1]": 3, "t[1].a": 4},
    "[[t]]\n[[t.u]]\na = 1\n[[t]]\n[[t.u]]\n[t.u.v]\nb=1": {
        "t": 1,
        "t[0]": 1,
        "t[0].u": 2,
        "t[0].u[0]": 2,
        "t[0].u[0].a": 3,
        "t[1]": 4,
        "t[1].u": 5,
        "t[1].u[0]": 5,
        "t[1].u[0].v": 6,
        "t[1].u[0].v.b": 7,
    },
    "o = { a = 1, b.c = 2 }": {"o": 1, "o.a": 1, "o.b": 1, "o.b.c": 1},
    "l = [\n  1, # ]\n  { a = 2 },\n  [ 3,\n 4 ],\n]\nz = 0": {
        "l": 1,
        "l[0]": 2,
        "l[1]": 3,
        "l[1].a": 3,
        "l[2]": 4,
        "l[2][0]": 4,
        "l[2][1]": 5,
        "z": 7,
    },
    'a . "b.c" . \'d\' = 1\n"e\\u0066" = 2': {"a": 1, "a.b.c": 1, "a.b.c.d": 1, "ef": 2},
    'm = """\n[x]\ny = "1"\n\\""" \'\'\' """\nn = 1': {"m": 1, "n": 5},
    "m = '''\n[x]\n\"\"\"'''\nn = 1": {"m": 1, "n": 4},
    'm = """a"""""\nn = """"""\nk = 1': {"m": 1, "n": 2, "k": 3},
    "d = 1979-05-27 07:32:00 # [x]\nt = 07:32:00\nf = -1.5e3": {"d": 1, "t": 2, "f": 3},
    "# only a remark": {},
    'a = "\\\\"\nb = "#"\nc = \'\\\'\nd = 1': {"a": 1, "b": 2, "c": 3, "d": 4},
    "a.b = 1\na.c = 2": {"a": 1, "a.b": 1, "a.c": 2},
    "  [ t . u ]  # x\n\ta=1": {"t": 1, "t.u": 1, "t.u.a": 2},
}


@each_case(("text", "lines"), FORMS.items(), ids=[json.dumps(text) for text in FORMS])
def test_every_form_of_a_key_has_its_line(text, lines):
    assert key_lines(text) == lines


@each_case("path", sorted(EXAMPLES.rglob("*.toml")), ids=lambda path: path.stem)
def test_all_keys_of_the_examples_are_found_on_lines_that_name_them(path):
    text = path.read_text()
    found = key_lines(text)

    assert set(paths(tomllib.loads(text))) <= set(found)
    for at, line in found.items():
        if not at.endswith("]"):
            assert at.rpartition(".")[2] in text.splitlines()[line - 1], at


keys = st.sampled_from(["a", "b-1", "2", "a.b", " ", "", "[x]", "#", '"', "é", "a\nb", "x = 1"])
scalars = st.sampled_from(
    ["1", "true", "-1.5e3", "1979-05-27 07:32:00", '"[a]\\n\\""', "'#\"'", '"""\nx = 1\n[y]\n\\"""""', "'''\n#''\n'''"]
)
spaces = st.sampled_from(["", " ", "\t"])
breaks = st.sampled_from(["", " ", "\n", " # ] } '\n", "\n\n"])


@st.composite
def written_keys(draw, maximum=2):
    parts = []
    for key in draw(st.lists(keys, min_size=1, max_size=maximum)):
        bare = key.isascii() and key.replace("-", "").isalnum()
        parts.append(key if bare and draw(st.booleans()) else json.dumps(key))
    return draw(spaces).join([".".join(parts)] if draw(st.booleans()) else [" . ".join(parts)])


@st.composite
def written_values(draw, depth=0):
    kind = draw(st.sampled_from(["scalar", "array", "table"] if depth < 3 else ["scalar"]))
    if kind == "scalar":
        return draw(scalars)
    if kind == "array":
        items = draw(st.lists(written_values(depth + 1), max_size=3))
        inside = ",".join(f"{draw(breaks)}{item}{draw(breaks)}" for item in items)
        return f"[{inside}{draw(breaks)}]"
    pairs = draw(st.lists(st.tuples(written_keys(), written_values(depth + 1)), max_size=3))
    return "{" + ", ".join(f"{key} = {value}" for key, value in pairs) + "}"


@st.composite
def documents(draw):
    lines = []
    for _ in range(draw(st.integers(0, 6))):
        form = draw(st.sampled_from(["pair", "pair", "pair", "[{}]", "[[{}]]"]))
        key = draw(written_keys())
        value = draw(written_values()) if form == "pair" else ""
        line = f"{key}{draw(spaces)}={draw(spaces)}{value}" if form == "pair" else form.format(key)
        lines.append(draw(spaces) + line + draw(st.sampled_from(["", "  # = [", "\n"])))
    return "\n".join(lines)


@given(documents())
@settings(max_examples=4 * DRAWN)
@example("a = [[[[[[[[[[[[[[[[[[[{b = ['}', 1]}]]]]]]]]]]]]]]]]]]]\nc = 1")
def test_the_keys_found_are_those_of_the_parser_in_the_order_of_lines(text):
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # keys that clash
    found = key_lines(text)
    lines = list(found.values())

    assert lines == sorted(lines)
    assert max(lines, default=1) <= text.count("\n") + 1
    deep = {path for path in paths(parsed) if path.count("[") > 12}
    expected = set(paths(parsed)) - deep
    assert expected <= set(found)
    assert set(found) <= set(paths(parsed))

"""Whatever a configuration file holds, it becomes a valid scenario, or is refused in one line."""

from contextlib import suppress

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.importing.files import ConfigurationFile, read_configuration, verdicts_of_cluster
from emulator.importing.property_files import BadPropertiesError, read_properties
from emulator.importing.scenario_text import scenario_text
from emulator.importing.settings import ConfigurationError
from emulator.spec import loads
from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.rocketmq.known_options import options_by_name

QUICK = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAMES = [*sorted(options_by_name(FileKind.BROKER)), "noSuchOption", "secretKey", "[x]", "a b", '"']
VALUES = st.one_of(
    st.sampled_from(
        ["true", "no", "0", "1", "-1", "29*1000", "SLAVE", "POP", "x", "", "2147483648", "0.5", "NaN", "04"]
    ),
    st.integers(-(2**40), 2**40).map(str),
    st.text(max_size=12),
)
WORDS = st.sampled_from(
    [
        "apiVersion",
        "kind",
        "spec",
        "metadata",
        "name",
        "data",
        "containers",
        "command",
        "env",
        "value",
        "replicas",
        "services",
        "image",
        "volumes",
        "StatefulSet",
        "ConfigMap",
        "Broker",
        "mqbroker",
        "v1",
        "<<",
        "x",
        "3",
        "size",
    ]
)
TREES = st.recursive(
    st.one_of(WORDS, st.integers(-3, 3).map(str), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=5)),
    max_leaves=25,
)


def imported(name, content, kind=None):
    """The cluster of a file and the scenario of it, which is valid; None for a file that is refused in one line."""
    problem = ""
    try:
        cluster = read_configuration([ConfigurationFile(name, content)], kind, lambda _source, _path: None)
    except ConfigurationError as error:
        problem = str(error)
    assert "\n" not in problem
    return None if problem else (cluster, loads(scenario_text(cluster, "imported", [name]), "imported.toml"))


@QUICK
@given(st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=30))
def test_options_with_any_values_make_a_valid_scenario(pairs):
    escaped = [(name, value.encode("unicode_escape").decode()) for name, value in pairs]
    content = "".join(f"{name}={value}\n" for name, value in escaped).encode()
    made = imported("broker.conf", content, FileKind.BROKER)

    if made is not None:
        cluster, scenario = made
        assert len(scenario.brokers) == 1
        assert len(verdicts_of_cluster(cluster)) == len(read_properties(content))


@QUICK
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_in_one_line(content):
    for name in ("a.conf", "a.yaml", "a.json"):
        imported(name, content, FileKind.BROKER)


@QUICK
@given(TREES)
def test_any_tree_of_values_is_read_or_refused_in_one_line(tree):
    imported("a.yaml", yaml.safe_dump(tree).encode())


@QUICK
@given(st.text(alphabet="ab=: \\\t\f\r\n#!u0", max_size=60))
def test_any_text_of_properties_is_read_as_pairs_on_lines_of_the_file(text):
    with suppress(BadPropertiesError):
        found = read_properties(text.encode())
        lines = text.count("\n") + text.count("\r") + 1
        assert all(1 <= item.line <= lines for item in found)
        assert [item.line for item in found] == sorted(item.line for item in found)


@pytest.mark.parametrize("kind", list(FileKind))
def test_every_option_of_a_kind_with_its_default_makes_a_valid_scenario(kind):
    given_options = {
        option.name: option.default
        for same in options_by_name(kind).values()
        for option in same
        if option.default not in ("", "null") and not option.depends_on
    }
    content = "".join(f"{name}={value}\n" for name, value in given_options.items()).encode()
    if kind is FileKind.PROXY:
        content = b"{}"

    assert imported("a.conf", content, kind) is not None

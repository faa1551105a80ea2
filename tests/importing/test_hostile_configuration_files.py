"""What is no configuration file is refused in one line, soon, and in little memory."""

import time

import pytest

from emulator.importing.files import ConfigurationFile, read_configuration
from emulator.importing.scenario_text import scenario_text
from emulator.importing.settings import ConfigurationError
from emulator.spec import loads
from support.every_case import each_case

SOON_S = 20
"""Far more than a refusal takes on a busy machine."""
LAUGHS = "apiVersion: v1\nkind: List\na: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
PODS = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nenv: &env [" + "{name: A, value: b}," * 1_000 + "]\n"
    "one: &one {image: rocketmq-broker, env: *env}\nspec: {containers: [" + "*one," * 2_000 + "]}\n"
)
MERGES = (
    "apiVersion: v1\nkind: Pod\nm0: &m0 {a: b}\n"
    + "".join(f"m{number + 1}: &m{number + 1} {{<<: [{','.join([f'*m{number}'] * 20)}]}}\n" for number in range(20))
    + "spec: *m20\nmetadata: *m20\n"
)


POD = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  containers:\n  - image: apache/rocketmq\n"
    "    command: [sh, mqbroker]\n    env:\n"
)
DOUBLES = POD + "".join(
    f"    - {{name: A{number}, value: {f'$(A{number - 1})$(A{number - 1})' if number else 'xxxxxxxxxx'}}}\n"
    for number in range(30)
)
ARGUMENTS = POD.replace("mqbroker", f"mqbroker, '{'$A' * 3_000}'") + f"    - {{name: A, value: {'x' * 10_000}}}\n"
LONG = f"    - {{name: A, value: {'x' * 60_000}}}\n"
MANY = POD + LONG + "".join(f"    - {{name: B{number}, value: $A}}\n" for number in range(5_000))
MANY_PODS = (
    "apiVersion: v1\nkind: StatefulSet\nmetadata: {name: x}\nspec:\n  replicas: 1000\n  template:\n    spec:\n"
    "      containers:\n      - image: apache/rocketmq\n        command: [sh, mqbroker]\n        env:\n"
    + "".join(f"        - {{name: V{number}, value: a}}\n" for number in range(2_000))
)


def imported(name, content):
    return read_configuration([ConfigurationFile(name, content)], None, lambda _source, _path: None)


@each_case(
    ("name", "content", "problem"),
    [
        ("a.conf", b"brokerName=\x00\n", "a.conf: expected a properties file, lines of name=value: byte 11 is 0x00"),
        ("a.conf", b"\x7fELF", "a.conf: expected a properties file, lines of name=value: byte 0 is 0x7f"),
        ("a.conf", b"brokerName=a\nbrokerId=\\u12\n", "a.conf:2: expected four hexadecimal digits behind \\u"),
        (
            "a.conf",
            b"<xml/>",
            "a.conf: expected options of RocketMQ, and none of the 1 such as <xml/> is; --kind says what it is for",
        ),
        ("a.conf", b"", "a.conf: expected options of RocketMQ, and none of the 0 is; --kind says what it is for"),
        (
            "a.conf",
            b"brokerId=0\nbrokerName={{ .Values.name }}\n",
            "a.conf:2: expected rendered text, not a template with {{ }}: import what `helm template` prints",
        ),
        (
            "a.yaml",
            b"apiVersion: v1\nkind: Pod\nspec:\n  {{- if .Values.x }}\n  a: b\n  {{- end }}\n",
            "a.yaml:4: expected rendered text, not a template with {{ }}: import what `helm template` prints",
        ),
        (
            "a.yaml",
            b"apiVersion: v1\nkind: Pod\nmetadata: { name: '{{ include \"x\" . }}' }\n",
            "a.yaml:3: expected rendered text, not a template with {{ }}: import what `helm template` prints",
        ),
        ("a.yaml", b"a: [", "a.yaml:1: not YAML: expected the node content, but found '<stream end>'"),
        ("a.yaml", b"a: b\n\tc: d\n", "a.yaml:2: not YAML: found character '\\t' that cannot start any token"),
        ("a.yaml", b"a: \x00", "a.yaml: not YAML: "),
        ("a.yaml", b"\xff\xfe", "a.yaml: expected UTF-8: byte 0 is not"),
        ("a.yaml", b"a: " + b"[" * 50_000, "a.yaml: values are nested too deep"),
        ("a.yaml", b"- 1\n", "a.yaml: expected services of docker-compose with RocketMQ, or resources of Kubernetes"),
        ("a.yaml", b"", "a.yaml: expected services of docker-compose with RocketMQ, or resources of Kubernetes"),
        ("a.yaml", b"a: *b\n", "a.yaml:1: not YAML: found undefined alias 'b'"),
        ("a.yaml", b"apiVersion: v1\nkind: Pod\n", "a.yaml: expected a node of RocketMQ, and no resource starts one"),
        ("a.yaml", b"#" * (1 << 20) + b"##", "a.yaml: expected at most 1048576 bytes of YAML"),
        (
            "a.yaml",
            LAUGHS.encode(),
            "a.yaml: expected services of docker-compose with RocketMQ, or resources of Kubernetes",
        ),
        ("a.yaml", PODS.encode(), "a.yaml: aliases and pods lead to more than 1000000 values"),
        ("a.yaml", DOUBLES.encode(), "a.yaml:22: expected at most 65536 characters with the values of its variables"),
        ("a.yaml", ARGUMENTS.encode(), "a.yaml:7: expected at most 65536 characters with the values of its variables"),
        ("a.yaml", MANY.encode(), "a.yaml: aliases and pods lead to more than 1000000 values"),
        ("a.yaml", MANY_PODS.encode(), "a.yaml: aliases and pods lead to more than 1000000 values"),
        ("a.yaml", MERGES.encode(), "a.yaml: expected a node of RocketMQ, and no resource starts one"),
        ("a.json", b"[1]", "a.json:1: expected a JSON object of options"),
        ("a.json", b"{", "a.json:1: not JSON: Expecting property name enclosed in double quotes"),
        ("a.json", b"[" * 100_000, "a.json: not JSON: "),
        ("a.json", b" " * 300_000, "a.json: expected at most 262144 bytes"),
        ("a.conf", b"a=1\n" * 10_001, "a.conf: expected at most 10000 options"),
        ("a.conf", b"a\\\n" * 1_000_000, "a.conf: expected options of RocketMQ, and none of the 1 such as aaa"),
    ],
    ids=range(31),
)
def test_a_file_that_cannot_be_imported_is_one_line(name, content, problem):
    begin = time.monotonic()
    with pytest.raises(ConfigurationError) as caught:
        imported(name, content)

    assert str(caught.value).startswith(problem)
    assert "\n" not in str(caught.value)
    assert time.monotonic() - begin < SOON_S


def test_a_mapping_that_contains_itself_ends():
    with pytest.raises(ConfigurationError):
        imported("a.yaml", b"apiVersion: v1\nkind: List\nitems: &a [*a]\n")
    with pytest.raises(ConfigurationError):
        imported("a.yaml", b"apiVersion: v1\nkind: Pod\nspec: &a {<<: *a}\n")


def test_texts_of_a_file_are_no_lines_of_the_scenario():
    evil = (
        'brokerName=a\\u000a[evil]\nregionId=x\\u000ay\nz\\u000a[[broker]]=\\u001b[31m\nbrokerClusterName=c\\"d\\\\e\n'
    )
    text = scenario_text(imported("a.conf\nb", evil.replace("a\\u000a[evil]", "a").encode()), "imported", ["a\nb"])

    assert len(loads(text, "imported").brokers) == 1
    assert loads(text, "imported").brokers[0].cluster == 'c"d\\e'
    assert all(line.isprintable() for line in text.splitlines())
    with pytest.raises(ConfigurationError, match="expected a name"):
        imported("a.conf", evil.encode())


def test_numbers_of_thousands_of_digits_are_read_as_java_reads_them():
    cluster = imported("a.conf", b"brokerName=a\nfileReservedTime=" + b"9" * 100_000 + b"\n")

    assert "at most 2147483647" in scenario_text(cluster, "imported", ["a.conf"])

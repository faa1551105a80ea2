"""Rules of the house that no tool of the trade checks."""

import ast
import builtins
import re
import tomllib
from collections.abc import Iterator

import pytest

import emulator
from project.house import PACKAGES, ROOT, modules, parsed, where

PURE_STDLIB = (
    "__future__", "abc", "array", "base64", "bisect", "collections", "contextlib", "contextvars", "copy", "dataclasses",
    "datetime", "difflib", "enum", "functools", "hashlib", "heapq", "hmac", "ipaddress", "itertools", "json", "math",
    "operator", "re", "reprlib", "string", "struct", "types", "typing", "urllib", "zlib",
)  # fmt: skip
ALLOWED = {
    "nodes": (
        *PURE_STDLIB,
        "attrs",
        "cattrs",
        "importlib",
        "google",
        "h2",
        "hpack",
        "hyperframe",
        "msgpack",
        "orjson",
        "outcome",
        "nodes",
        "structlog",
        "trio",
    ),
    "faults": (*PURE_STDLIB, "attrs", "faults", "nodes", "random", "shlex"),
}


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."


@pytest.mark.parametrize("package", list(ALLOWED))
def test_a_package_that_must_stay_pure_imports_only_what_is_listed(package):
    unlisted = [
        f"{where(path)}: {name}"
        for path in modules(package)
        for name in imported(parsed(path))
        if name.split(".")[0] not in ALLOWED[package]
    ]

    assert unlisted == []


def test_one_module_runs_the_code_that_a_scenario_names():
    running = [where(path) for path in modules(*PACKAGES) if any(map(_runs_code, ast.walk(parsed(path))))]

    assert running == ["emulator/spec/code/user_code.py"]


def test_pickles_are_read_where_a_task_of_the_same_query_has_made_them_and_else_in_one_module():
    reading = [
        where(path)
        for path in modules(*PACKAGES)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("pickle.load", "pickle.loads", "pickle.Unpickler")
    ]

    assert reading == [
        "emulator/base/own_values.py",
        "emulator/pipeline/sweep_tasks.py",
    ]


def _runs_code(node):
    """Whether a node calls what makes code of a text, or finds code by a name that a text gives."""
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func).rpartition(".")[2]
    is_literal = bool(node.args) and isinstance(node.args[0], ast.Constant | ast.JoinedStr)
    finds = name in ("import_module", "__import__", "EntryPoint", "entry_points", "run_path", "run_module")
    return ast.unparse(node.func) in ("exec", "eval", "compile") or (finds and not is_literal)


def test_no_node_touches_the_clock_of_trio():
    forbidden = ("trio.sleep", "trio.current_time", "trio.move_on_after", "trio.fail_after", "trio.sleep_until")
    guilty = [
        f"{where(path)}:{node.lineno}: {ast.unparse(node)}"
        for path in modules("nodes")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in forbidden
    ]

    assert guilty == []


def test_nothing_iterates_a_set_that_is_written_down_there():
    guilty = [
        f"{where(path)}:{node.iter.lineno}"
        for path in modules(*PACKAGES)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.For | ast.comprehension) and _makes_a_set(node.iter)
    ]

    assert guilty == []


def _makes_a_set(node: ast.expr) -> bool:
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("set", "frozenset")
    return called or isinstance(node, ast.Set | ast.SetComp)


RAISED = re.compile(r"^    (\w+(?:, \w+)*):", re.MULTILINE)
"""The names of a line of the section `Raises:`; those of other packages have a dot."""


def test_the_errors_that_docstrings_name_exist():
    classes = {
        node.name for path in modules(*PACKAGES) for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef)
    }
    missing = [
        f"{where(path)}:{node.lineno} {name}"
        for path in modules(*PACKAGES)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for names in RAISED.findall((ast.get_docstring(node) or "").partition("Raises:")[2])
        for name in names.split(", ")
        if name not in classes and not hasattr(builtins, name)
    ]

    assert missing == []


def test_the_package_lists_its_packages_as_the_borders_do():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract.get("containers") == ["emulator"])
    listed = re.findall(r"`(\w+)`", (emulator.__doc__ or "").partition("those after it: ")[2].partition(". All")[0])

    assert listed == [name for layer in layers for name in layer.split(" | ")]


def test_no_file_grows_beyond_500_lines():
    long = [where(path) for path in modules(*PACKAGES) if len(path.read_text(encoding="utf-8").splitlines()) > 500]

    assert long == []


def test_no_module_is_called_after_nothing_in_particular():
    vague = ("utils.py", "util.py", "helpers.py", "common.py", "misc.py")

    assert [where(path) for path in modules(*PACKAGES) if path.name in vague] == []


def test_test_files_have_names_of_their_own_and_folders_shadow_no_package():
    tests = ROOT / "tests"
    names = [path.name for path in sorted(tests.rglob("test_*.py"))]
    folders = [path.name for path in sorted(tests.rglob("*")) if path.is_dir()]

    assert len(dict.fromkeys(names)) == len(names)
    assert [name for name in folders if name in PACKAGES] == []
    assert sorted(tests.rglob("__init__.py")) == []


OPENERS = ("open", "read_bytes", "read_text", "write_bytes", "write_text")
OF_THE_PACKAGE_OR_THE_SYSTEM = (
    "emulator/base/commit.py",
    "emulator/base/files.py",
    "emulator/campaign/answers.py",  # in a folder of this process
    "emulator/campaign/forked.py",  # as above
    "emulator/cli/terminal.py",  # /dev/null
    "emulator/cli/up.py",  # as above
    "emulator/console/control_socket.py",  # a directory, to get a short address
    "emulator/console/line_printer.py",  # /dev/null
    "emulator/dataset/archive.py",  # in the cache of this user
    "emulator/dataset/java.py",  # in a folder of this process
    "emulator/dataset/server.py",  # in the cache of this user
    "emulator/dataset/settings.py",  # in a folder of this process
    "emulator/dataset/spark.py",  # /dev/null
    "emulator/fidelity/ledger.py",
    "emulator/guests/budget.py",  # /proc
    "emulator/guests/grpc/messages.py",
    "emulator/lake/filesystems.py",  # a directory, to sync it
    "emulator/run/log.py",
    "emulator/spec/bundled.py",
    "emulator/spec/rocketmq/known_options.py",
    "emulator/web/dashboard.py",
)
"""Modules that open files which no one else has made."""


def _opens_a_file(node: ast.AST) -> bool:
    """`open(...)`, `os.open(...)`, `path.open(...)`, `path.read_bytes()`; neither `read_bytes(path)` nor others."""
    match node:
        case ast.Call(func=ast.Name(id="open")):
            return True
        case ast.Call(func=ast.Attribute(attr="open"), args=[] | [ast.Constant()]):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="open")):
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in OPENERS and name != "open"
    return False


def test_files_that_others_may_have_made_are_opened_in_one_module():
    guilty = [
        f"{where(path)}:{node.lineno}: {ast.unparse(node)}"
        for path in modules("emulator")
        if where(path) not in OF_THE_PACKAGE_OR_THE_SYSTEM
        for node in ast.walk(parsed(path))
        if _opens_a_file(node)
    ]

    assert guilty == [], "emulator.base.files opens files: a pipe would wait for ever, and a link lead elsewhere"


PRINTERS = (
    "emulator/base/printing.py",
    "emulator/console/line_printer.py",
    "emulator/notebook/handle.py",  # a progress bar
    "emulator/run/verify.py",  # a path, for the process that waits for it
)
"""Modules that write to standard output or standard error; the first two make texts of others visible."""
OF_RICH = {"rich.text": "Text", "rich.table": "Table", "rich.console": "Console"}


def _prints(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="print")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="typer" | "click"), attr="echo" | "secho")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="stdout" | "stderr"), attr="write")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="traceback"), attr="print_exc")):
            return True
        case ast.ImportFrom(module=module, names=names):
            return any(alias.name == OF_RICH.get(module or "") for alias in names)
    return False


def test_what_reaches_a_terminal_is_printed_by_the_modules_that_make_texts_of_others_visible():
    guilty = [
        f"{where(path)}:{node.lineno}: {ast.unparse(node)}"
        for path in modules("emulator", "nodes", "faults")
        if where(path) not in (*PRINTERS, "emulator/base/rich_texts.py")
        for node in ast.walk(parsed(path))
        if _prints(node)
    ]

    assert guilty == [], "emulator.base.printing and emulator.base.rich_texts print what guests have named"

"""A scenario file that names code runs none of it, until the user allows it; then only what lies next to the file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from emulator.campaign.bindings import scenario_problems
from emulator.campaign.directory import claim, opened
from emulator.campaign.file import load_campaign
from emulator.cli.main import app
from emulator.console.verb import VerbError
from emulator.notebook.handle import launch
from emulator.run import run_scenario
from emulator.spec import SpecError, load, loads
from emulator.spec.code.permission_of_code import ALLOW_CODE
from emulator.trace.run_directory import open_run, write_manifest

SCENARIO = """
[scenario]
name = "borrowed"
run_for_s = 20
[[broker]]
name = "broker-a"
[[topic]]
name = "a|touch-ran|b"
queues = 2
[[consumer]]
group = "g"
names = ["c1", "c2"]
topics = ["a|touch-ran|b"]
"""
CAMPAIGN = '[campaign]\nname = "c"\nseeds = "1"\nbaseline = "as-it-is"\n'
NEXT_TO = """
from pathlib import Path

Path(__file__).with_name("imported").touch()

def allocate(_group, cid, queues, cids):
    Path(__file__).with_name("called").touch()
    return list(queues)[cids.index(cid)::len(cids)]

def hashed(text):
    Path(__file__).with_name("called").touch()
    return len(text)
"""
STRATEGY, HASH = "allocateMessageQueueStrategy", "hashFunction"
RING = f'{STRATEGY} = "CONSISTENT_HASH", '
HOSTILE = {
    "a strategy": (f'options = {{ {STRATEGY} = "mine:allocate" }}\n', f"consumer[0].options.{STRATEGY}"),
    "a hash function": (f'options = {{ {RING}{HASH} = "mine:hashed" }}\n', f"consumer[0].options.{HASH}"),
    "a program": (f'options = {{ {RING}{HASH} = "os:system" }}\n', f"consumer[0].options.{HASH}"),
    "a restart": (
        f'[[fault]]\ndo = "restart c1 with {{{STRATEGY} = mine:allocate}}"\nat_s = 10\n',
        f"fault[0].options.{STRATEGY}",
    ),
    "a nemesis": (
        f'[[nemesis]]\ndo = "restart random consumers with {{{HASH} = mine:hashed}}"\nevery_s = 9\nmin_s = 1\n',
        f"nemesis[0].options.{HASH}",
    ),
}
COMMANDS = {
    "run": ["run", "s.toml"],
    "run many": ["run", "s.toml", "--seeds", "1-2"],
    "campaign": ["campaign", "c.toml"],
    "campaign of a file": ["campaign", "other.toml"],
    "shrink": ["shrink", "s.toml"],
    "up": ["up", "s.toml"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(NEXT_TO)
    return tmp_path


def write(folder, more):
    (folder / "s.toml").write_text(SCENARIO + more)
    (folder / "c.toml").write_text(CAMPAIGN + SCENARIO + more)
    (folder / "other.toml").write_text(CAMPAIGN + 'scenario = "s.toml"\n')


def invoke(*words):
    return CliRunner().invoke(app, list(words))


def untouched(folder):
    return [path.name for path in folder.iterdir() if path.name in ("imported", "called", "runs", "campaigns")] == []


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("subject", HOSTILE)
def test_no_command_runs_code_that_is_not_allowed_and_one_line_says_what_and_where(folder, subject, command):
    more, key = HOSTILE[subject]
    write(folder, more)

    done = invoke(*COMMANDS[command])

    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    name = "os:system" if subject == "a program" else "mine:"
    assert [part in line for part in (key, f"names code, {name}", ALLOW_CODE, ".toml")] == [True] * 4
    assert untouched(folder)


@pytest.mark.parametrize("subject", HOSTILE)
def test_check_names_code_and_calls_nothing(folder, subject):
    more, key = HOSTILE[subject]
    write(folder, more)

    done = invoke("check", "s.toml")

    assert done.exit_code == 0
    assert f"warning: names-code: {key}: " in done.stdout
    assert untouched(folder)


@pytest.mark.parametrize("command", [*COMMANDS, "check"])
def test_a_module_of_python_is_refused_by_name_though_code_is_allowed(folder, command):
    write(folder, HOSTILE["a program"][0])

    done = invoke(*COMMANDS.get(command, ["check", "s.toml"]), ALLOW_CODE)

    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert "os is a module of Python: expected an entry point, or a module next to the file" in line


def test_a_run_that_may_runs_the_code_and_can_be_repeated_and_read_without_its_file(folder):
    write(folder, HOSTILE["a strategy"][0])
    done = invoke("run", "s.toml", ALLOW_CODE)
    run = Path(done.stdout.splitlines()[-1])
    assert (folder / "imported").exists()
    assert (folder / "called").exists()

    for path in ("s.toml", "mine.py", "imported", "called"):
        (folder / path).unlink()
    refused, verified = invoke("verify", str(run)), invoke("verify", str(run), ALLOW_CODE)

    assert refused.exit_code == 2
    assert f"{run}/manifest.json: consumer[0].options.{STRATEGY}: names code, mine:allocate" in refused.stderr
    assert (verified.exit_code, verified.stdout) == (0, "identical\n")
    (run / "imported").unlink()
    assert invoke("analyze", str(run)).exit_code == 0
    assert invoke("why", str(run)).exit_code == 0
    assert not (run / "imported").exists()


def test_a_run_directory_that_names_a_program_runs_it_in_no_command(folder):
    run = run_scenario(loads(SCENARIO, "x"), runs=folder).path
    manifest = {key: value for key, value in open_run(run).manifest.items() if key != "seal"}
    manifest["scenario"]["consumer"][0]["options"] = {STRATEGY: "CONSISTENT_HASH", HASH: "os:system"}
    write_manifest(run, manifest)

    refused, by_name = invoke("verify", str(run)), invoke("verify", str(run), ALLOW_CODE)
    assert (refused.exit_code, by_name.exit_code) == (2, 2)
    assert f"{run}/manifest.json: consumer[0].options.{HASH}: names code, os:system" in refused.stderr
    assert "os is a module of Python" in by_name.stderr
    for command in ("analyze", "why", "report", "land"):
        done = invoke(command, str(run), *(["--to", str(folder / "dataset")] if command == "land" else []))
        assert "system" not in done.output
    assert untouched(folder)


def test_a_module_next_to_the_scenarios_of_a_campaign_is_bound_to_it(folder):
    write(folder, HOSTILE["a strategy"][0])
    directory = claim(folder / "campaigns" / "c", load_campaign(Path("c.toml"), allow_code=True))
    (name,) = directory.code
    assert list(scenario_problems(directory)) == []
    module = directory.path / "scenarios" / name
    module.write_text(module.read_text() + "\n# changed\n")
    (problem,) = scenario_problems(opened(directory.path))
    assert problem.startswith(f"{module} was changed")


def test_a_campaign_directory_has_the_code_of_its_scenarios_and_asks_again(folder):
    write(folder, HOSTILE["a strategy"][0])
    directory = claim(folder / "campaigns" / "c", load_campaign(Path("c.toml"), allow_code=True))
    (case,) = directory.cases()
    (folder / "mine.py").unlink()

    command = directory.command(case).split()[1:]
    assert command[-1] == ALLOW_CODE
    assert invoke(*command).exit_code == 0
    assert invoke(*command[:-1]).exit_code == 2
    refused = invoke("shrink", "campaigns/c", "as-it-is:1")
    assert refused.exit_code == 2
    assert "names code, mine:allocate" in refused.stderr
    allowed = invoke("shrink", "campaigns/c", "as-it-is:1", ALLOW_CODE)
    assert "so there is nothing to shrink" in allowed.stderr


def test_a_program_in_python_allows_code_by_a_parameter(folder):
    write(folder, HOSTILE["a strategy"][0])

    with pytest.raises(SpecError, match="allow_code=True in Python"):
        launch("s.toml")
    assert untouched(folder)
    with launch("s.toml", allow_code=True) as cluster:
        cluster.advance(5)
    assert load("s.toml", allow_code=True).code.is_allowed


def test_a_verb_names_no_code_that_is_not_allowed(folder):
    (folder / "s.toml").write_text(SCENARIO)
    with launch("s.toml") as cluster:
        cluster.advance(15)
        for name in ("os:system", "mine:hashed"):
            with pytest.raises(VerbError, match=f"{HASH}: names code, {name}, which runs only with --allow-code"):
                cluster.restart("c1", "with", f"{{{HASH} = {name}}}")
    assert not (folder / "imported").exists()


HIJACKED = ("orjson", "json", "trio", "emulator", "attrs", "pyarrow", "pickle")
"""Modules that somebody has left in the working directory."""


def in_a_hostile_directory(folder, *words):
    """A command as it starts: its own sys.path has no working directory."""
    hijacked = folder / "working"
    hijacked.mkdir()
    for name in HIJACKED:
        (hijacked / f"{name}.py").write_text(f"open('imported', 'w')\nraise SystemExit('{name}')")
    code = f"from emulator.cli.main import app; app({list(map(str, words))!r})"
    roots = os.pathsep.join(path for path in sys.path if path and Path(path).is_dir())
    environment = {**os.environ, "PYTHONPATH": roots}
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, cwd=hijacked, env=environment, capture_output=True, text=True, check=False)
    return done, sorted({path.name for path in hijacked.iterdir()} - {f"{name}.py" for name in HIJACKED})


def test_verify_imports_nothing_from_the_working_directory(folder):
    run = run_scenario(loads(SCENARIO, "x"), runs=folder).path

    done, left = in_a_hostile_directory(folder, "verify", run)

    assert (done.returncode, done.stdout, left) == (0, "identical\n", []), done.stderr


@pytest.mark.slow
@pytest.mark.spark
def test_workers_of_spark_import_nothing_from_the_working_directory(folder):
    run = run_scenario(loads(SCENARIO, "x"), runs=folder).path

    done, left = in_a_hostile_directory(folder, "analyze", "--engine", "spark", run)

    assert done.returncode == 0, done.stderr
    assert "imported" not in left

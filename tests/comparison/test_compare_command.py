"""`rmqemu compare`: two runs from the command line."""

import shutil

import attrs
import pytest
from typer.testing import CliRunner

from emulator.cli.main import app
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.journal import frame
from support.rmqemu_process import ENGINE_OF_TESTS, SMALL


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run directories: as it is, again, with another duration of a fault, another seed, half as long."""
    folder = tmp_path_factory.mktemp("runs")
    base = loads(SMALL.replace("at_s = 40", "at_s = 40\nfor_s = 10"), "small.toml")
    longer = loads(SMALL.replace("at_s = 40", "at_s = 40\nfor_s = 20"), "small.toml")
    unused = loads(
        SMALL.replace("at_s = 40", "at_s = 40\nfor_s = 10").replace(
            'name = "broker-a"', 'name = "broker-a"\noptions = { channelExpiredTimeout = 119000 }'
        ),
        "small.toml",
    )
    scenarios = {
        "base": base,
        "again": base,
        "longer": longer,
        "unused": unused,
        "seed": attrs.evolve(base, seed=2),
        "short": attrs.evolve(base, run_for_ms=45_000),
    }
    return {name: run_scenario(scenario, runs=folder / name).path for name, scenario in scenarios.items()}


def compare(*paths):
    return CliRunner().invoke(app, ["compare", "--all", *map(str, paths)])


def lines(*paths):
    done = compare(*paths)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def section(reported, title):
    """The lines of a section, without their indentation."""
    at = reported.index(title)
    rest = reported[at + 1 :]
    end = next((i for i, line in enumerate(rest) if line and not line.startswith(" ")), len(rest))
    return [line.strip() for line in rest[:end] if line]


def test_two_runs_of_one_scenario_are_identical(runs):
    assert lines(runs["base"], runs["again"]) == ["identical"]


def test_the_answer_has_twenty_lines_and_names_the_command_for_the_rest(runs):
    done = CliRunner().invoke(app, ["compare", str(runs["base"]), str(runs["longer"])])
    answer, _, picture = done.stdout.partition("\n\npicture of both: ")
    answered = answer.splitlines()

    assert done.exit_code == 0
    assert len(answered) <= 20
    assert answered[0].startswith("Rules: ")
    assert "What can explain it: fault kill-2: for_ms 10000 in A, 20000 in B." in answered
    assert answered[-1] == f"all of it: rmqemu compare --all {runs['base'].resolve()} {runs['longer'].resolve()}"
    assert picture.strip().endswith(".html")


def test_a_change_is_reported_with_the_first_difference_its_causes_and_what_followed(runs):
    reported = lines(runs["base"], runs["longer"])
    belief = section(reported, "First belief that differs")

    # Both have one name, so the path is printed.
    assert reported[reported.index("") + 1] == f"A  {runs['base'].resolve()}  small, seed 1, sim, 70.0 s emulated"
    assert section(reported, "Scenario") == ["fault kill-2: for_ms 10000 in A, 20000 in B"]
    assert section(reported, "Traces")[0].endswith("rows are equal; the first that differs is at 50.000 s")
    assert "A: causes: seq=" in section(reported, "Traces")[1]
    assert belief[0].startswith("50.0")
    assert " about consumer_ids g, for 10.0" in belief[0]
    assert belief[1] == "A: 3 members: consumer-1 consumer-2 consumer-3"
    assert belief[2].startswith("B: 2 members: consumer-1 consumer-3, as since 40.0")
    assert "since the operator ended kill-2 (kill consumer-2)" in "\n".join(belief)
    assert any(line.startswith("what followed from it in A, ") for line in belief)
    assert belief[-1] == "in B nothing changed at that instant"
    assert "A: " in section(reported, "First queue with other owners for 1 s or longer")[1]


def test_the_two_runs_may_be_exchanged(runs):
    there, back = lines(runs["base"], runs["longer"]), lines(runs["longer"], runs["base"])

    assert section(back, "Scenario") == ["fault kill-2: for_ms 20000 in A, 10000 in B"]
    first, second = section(there, "First belief that differs"), section(back, "First belief that differs")
    assert first[0] == second[0]
    assert (first[1][3:], first[2][3:]) == (second[2][3:], second[1][3:])


def test_counts_stand_side_by_side(runs):
    counts = section(lines(runs["base"], runs["short"]), "Counts")
    faults = next(line for line in counts if line.startswith("rows of faults"))
    stored = next(line for line in counts if line.startswith("messages stored")).split()

    assert faults.split()[3:] == ["4", "4", "="]
    assert int(stored[2]) > int(stored[3])
    assert stored[4] == f"-{int(stored[2]) - int(stored[3])}"


def test_a_run_that_ends_earlier_is_compared_up_to_its_end(runs):
    reported = lines(runs["base"], runs["short"])

    assert section(reported, "Scenario") == ["run_for_ms 70000 in A, 45000 in B"]
    assert "at 45.000 s" in section(reported, "Traces")[0]
    assert section(reported, "Beliefs") == ["nodes that live in both runs believed the same at every instant"]


def test_another_seed_is_reported_and_compared_by_name(runs):
    reported = lines(runs["base"], runs["seed"])

    assert reported[reported.index("") + 1] == "A  small-sim-seed1-1  small, seed 1, sim, 70.0 s emulated"
    assert section(reported, "Scenario") == ["seed 1 in A, 2 in B"]
    assert "@" not in "".join(line for line in reported if " A: " in line or (" B: " in line and "seq=" not in line))


def test_of_long_values_the_place_where_they_differ_is_shown(tmp_path):
    """Of twelve members another one dies in each run; the beginning of the lists is the same."""
    cluster = (
        SMALL.replace("count = 3", "count = 12").replace("run_for_s = 70", "run_for_s = 10").partition("[[fault]]")[0]
    )
    paths = []
    for victim in ("consumer-8", "consumer-9"):
        kill = f'[[fault]]\nid = "kill"\ndo = "kill {victim}"\nat_s = 8\n'
        paths.append(run_scenario(loads(cluster + kill, "long.toml"), runs=tmp_path / victim).path)
    reported = lines(*paths)
    where, first, second = section(reported, "First belief that differs")[:3]

    assert section(reported, "Scenario") == ["fault kill: node consumer-8 in A, consumer-9 in B"]
    assert " about consumer_ids g, until the end" in where
    assert "consumer-9" not in first.partition("…")[0]
    assert '"consumer-9"]' in first
    assert second.endswith('"consumer-8"]')


def test_a_change_without_any_effect_is_reported(runs):
    reported = lines(runs["base"], runs["unused"])

    assert section(reported, "Scenario") == ["broker broker-a: channelExpiredTimeout 120000 in A, 119000 in B"]
    assert section(reported, "Traces") == ["identical, row by row: what differs in the scenario changed nothing"]
    assert "First belief that differs" not in reported


def test_a_run_that_was_killed_is_compared_and_that_is_said(runs, tmp_path):
    killed = shutil.copytree(runs["base"], tmp_path / "killed")
    (killed / "manifest.json").unlink()
    (killed / "trace" / "waiting.rows").write_bytes(frame(()))  # no rows wait
    done = compare(runs["longer"], killed)

    assert done.exit_code == 0
    assert "First belief that differs" in done.stdout
    killed = "rmqemu: killed: the emulator was killed or could not write on: "
    assert done.stderr.startswith(f"{ENGINE_OF_TESTS}\n{killed}")


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_no_run_is_refused_in_one_line(runs, tmp_path, place):
    paths = [runs["base"], runs["longer"]]
    paths[place] = tmp_path / "nowhere"
    done = compare(*paths)

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"rmqemu: {tmp_path}/nowhere is not a run: it has neither manifest.json nor trace/index.jsonl\n"
    )


def test_a_damaged_run_is_refused_with_the_file(runs, tmp_path):
    damaged = shutil.copytree(runs["base"], tmp_path / "damaged")
    (damaged / "trace" / "beliefs" / "seg-000000.parquet").unlink()
    done = compare(runs["base"], damaged)

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"rmqemu: {damaged}/trace/beliefs/seg-000000.parquet is missing\n"


def test_a_run_of_another_schema_is_refused(runs, tmp_path):
    old = shutil.copytree(runs["base"], tmp_path / "old")
    manifest = old / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"schema_version": ', '"schema_version": 9'))
    done = compare(old, runs["base"])

    assert (done.exit_code, done.stdout) == (2, "")
    assert "has trace schema version 9" in done.stderr
    assert done.stderr.count("\n") == 1


def test_one_directory_twice_is_refused_even_by_another_path(runs, tmp_path):
    (tmp_path / "link").symlink_to(runs["base"])
    done = compare(runs["base"], tmp_path / "link")

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"rmqemu: expected two runs, not {runs['base'].resolve()} twice\n"

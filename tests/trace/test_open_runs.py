"""What a run directory must hold, what is read without a manifest, and how damage is reported."""

import json
from contextlib import nullcontext

import pytest

from analysis.trace_rows import HandMadeTrace, killed_run, write_run
from emulator.trace.index import INDEX
from emulator.trace.journal import JOURNAL
from emulator.trace.run_directory import DamagedRunError, NotARunError, RunEnd, being_written, open_run, write_manifest
from emulator.trace.schema import LIFECYCLE, OWNERSHIP, SCHEMA_VERSION
from support.run_rows import table_rows


def a_trace():
    trace = HandMadeTrace()
    for second in range(1, 6):
        trace.at(second).life("a", "started", "g").own("a", "acquired", second)
    return trace.at(6).life("a", "crashed", "KeyError: 1")


@pytest.fixture
def finished(tmp_path):
    return write_run(a_trace(), tmp_path / "finished", 9)


@pytest.fixture
def killed(tmp_path):
    return killed_run(a_trace(), tmp_path / "killed", closed=3)


def overwrite(path, at=0):
    content = bytearray(path.read_bytes())
    at %= len(content)
    content[at : at + 4] = b"\xde\xad\xbe\xef"
    path.write_bytes(content)


def lines_of(run):
    """How the damage of a run is reported."""
    with pytest.raises(DamagedRunError) as reported:
        open_run(run)
    return [line.replace(f"{run}/", "") for line in reported.value.lines]


def test_a_run_without_a_manifest_is_read_from_its_index(killed):
    run = open_run(killed)

    assert run.ended is RunEnd.KILLED
    assert run.end_ns == 6_000_000_000
    assert run.manifest["rows"]["lifecycle"] == 6
    assert run.manifest["crashes"] == ["a: KeyError: 1"]
    assert run.broken_off() == (
        "the emulator was killed or could not write on: 11 rows up to 6.0 s are there, "
        "at most the last 1 s of wall time is missing"
    )
    wanted = ("seq", "event")
    assert [tuple(row.values()) for row in table_rows(killed, LIFECYCLE, wanted, ("seq", ">", 6))] == [
        (7, "started"), (9, "started"), (11, "crashed")
    ]  # fmt: skip


def test_a_run_that_another_process_writes_is_not_called_killed(killed):
    with being_written(killed):
        assert open_run(killed).broken_off() == "the run is still under way: 11 rows up to 6.0 s are there"
    assert open_run(killed).ended is RunEnd.KILLED


def test_a_directory_with_neither_manifest_nor_index_is_not_a_run(tmp_path):
    with pytest.raises(NotARunError, match=r"^.* is not a run: it has neither manifest\.json nor trace/index\.jsonl$"):
        open_run(tmp_path)


@pytest.mark.parametrize("kind", ["finished", "killed"])
@pytest.mark.parametrize("at", [0, 700, -4])
def test_four_overwritten_bytes_of_a_segment_are_reported(kind, at, request):
    run = request.getfixturevalue(kind)
    overwrite(run / "trace" / "ownership" / "seg-000000.parquet", at)

    assert lines_of(run) == ["trace/ownership/seg-000000.parquet is damaged: its content was changed"]


@pytest.mark.parametrize("kind", ["finished", "killed"])
def test_all_that_is_damaged_is_reported_file_by_file(kind, request):
    run = request.getfixturevalue(kind)
    (run / "trace" / "lifecycle" / "seg-000000.parquet").unlink()
    owned = run / "trace" / "ownership" / "seg-000000.parquet"
    length = owned.stat().st_size
    owned.write_bytes(owned.read_bytes()[:100])

    assert lines_of(run) == [
        f"trace/ownership/seg-000000.parquet is damaged: it has 100 bytes in place of {length}",
        "trace/lifecycle/seg-000000.parquet is missing",
    ]


def test_a_missing_or_changed_index_of_a_finished_run_is_reported(finished):
    index = finished / "trace" / INDEX
    content = index.read_bytes()
    index.write_bytes(content.replace(b"ownership", b"ownersheep", 1))
    assert lines_of(finished) == [f"trace/{INDEX} is damaged: line 2: it was changed after it was written"]
    index.write_bytes(b"".join(content.splitlines(keepends=True)[:-1]))
    assert lines_of(finished) == [f"trace/{INDEX} is damaged: it is not the one that manifest.json names"]
    index.unlink()
    assert lines_of(finished) == [f"trace/{INDEX} is missing"]


def test_a_missing_or_changed_index_or_journal_of_a_killed_run_is_reported(killed):
    index, journal = killed / "trace" / INDEX, killed / "trace" / JOURNAL
    content = index.read_bytes()
    index.write_bytes(content.replace(b'"seed": 1', b'"seed": 2'))
    assert lines_of(killed) == [f"trace/{INDEX} is damaged: line 1: it was changed after it was written"]
    index.write_bytes(content[:20])
    assert lines_of(killed) == [f"trace/{INDEX} is damaged: it has no whole line"]
    index.write_bytes(content)
    overwrite(journal, at=70)
    assert lines_of(killed) == [f"trace/{JOURNAL} is damaged: the frame at byte 17 is damaged"]
    journal.unlink()
    assert lines_of(killed) == [f"trace/{JOURNAL} is missing"]


def test_a_journal_with_rows_missing_before_those_of_a_closed_segment_is_reported(tmp_path):
    trace = HandMadeTrace().life("a", "started").own("a", "acquired").own("a", "dropped")
    run = killed_run(trace, tmp_path / "run", closed=0)
    (run / "trace" / JOURNAL).write_bytes(b"")
    assert open_run(run).manifest["rows"][OWNERSHIP.name] == 0, "as if it had been killed earlier"
    late = HandMadeTrace()
    late.seq = 7
    run = killed_run(late.own("a", "acquired"), tmp_path / "late", closed=1)
    assert lines_of(run) == [f"trace/{JOURNAL} is damaged: 7 rows before seq 8 are missing"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "it is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"),
        ("[]", "it is not a mapping"),
        ('"text"', "it is not a mapping"),
        ("{}", "it has no seal"),
        ("[" * 100_000, "it is not JSON (maximum recursion depth exceeded while decoding a JSON array from a unicode"),
    ],
)
def test_a_broken_manifest_is_reported(finished, content, problem):
    (finished / "manifest.json").write_text(content)
    (line,) = lines_of(finished)
    assert line.startswith(f"manifest.json is damaged: {problem}")
    assert "\n" not in line


def test_a_manifest_in_which_one_digit_was_changed_is_reported(finished):
    manifest = finished / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"seed": 1', '"seed": 2'))
    assert lines_of(finished) == ["manifest.json is damaged: it was changed after it was written"]


@pytest.mark.parametrize("kind", ["finished", "killed"])
def test_another_schema_version_is_refused_with_what_can_be_done(tmp_path, kind):
    if kind == "finished":
        write_run(HandMadeTrace(), tmp_path, 1)
        (tmp_path / "manifest.json").write_text(json.dumps({"schema_version": 5}))
    else:
        killed_run(HandMadeTrace(), tmp_path, 1, schema_version=5)
    with pytest.raises(NotARunError) as reported:
        open_run(tmp_path)
    assert str(reported.value) == (
        f"{tmp_path} has trace schema version 5, this program reads {SCHEMA_VERSION}: "
        "analyze it with the release that made it, or run its scenario again"
    )


def test_a_manifest_that_lacks_something_says_what(finished):
    manifest = json.loads((finished / "manifest.json").read_text())
    retained = {key: value for key, value in manifest.items() if key not in ("seed", "digest", "seal")}
    write_manifest(finished, retained)
    with pytest.raises(NotARunError, match=r"manifest\.json lacks digest, seed$"):
        open_run(finished)


def test_files_that_no_index_names_are_not_read(killed):
    stray = killed / "trace" / "ownership" / "seg-000001.parquet"
    stray.write_bytes((killed / "trace" / "ownership" / "seg-000000.parquet").read_bytes())
    (killed / "trace" / "ownership" / ".seg-000002.parquet.tmp").write_bytes(b"half a segment")
    with nullcontext(open_run(killed)) as run:
        assert run.manifest["rows"]["ownership"] == 5
        assert len(list(table_rows(killed, OWNERSHIP))) == 5

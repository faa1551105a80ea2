"""Parts: lines that are whole count, once each; what is torn or damaged never does."""

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.analysis.report import RulesVerdict
from emulator.campaign.campaign import Case
from emulator.campaign.directory import first_lines
from emulator.campaign.parts import PartsReader, PartWriter
from emulator.campaign.results import CaseResult, Outcome, line_of, read_line
from emulator.trace.files import RunFiles

IT = "1f" * 16
"""Digest of the campaign."""
FINDINGS = pa.table(
    {
        "broker_name": pa.array(["broker-a", "Ä\n"], pa.string()),
        "start_ns": pa.array([2**62, None], pa.int64()),
        "share": pa.array([0.1, -0.0], pa.float64()),
        "open": pa.array([True, False], pa.bool_()),
        "owners": pa.array([["c1", "c2"], []], pa.list_(pa.string())),
    }
)
TABLES = st.sampled_from([{}, {"overlaps": FINDINGS}, {"overlaps": FINDINGS.slice(0, 0), "holds": FINDINGS}])
CASES = st.builds(Case, st.sampled_from(["a", "b"]), st.integers(0, 3))


def unjudged(case_result):
    """The run as it is before it is judged."""
    return attrs.evolve(case_result, verdict=RulesVerdict.UNKNOWN, reasons=(), findings={})


EXECUTED = st.builds(
    CaseResult,
    case=CASES,
    outcome=st.sampled_from(Outcome),
    verdict=st.sampled_from(RulesVerdict),
    reasons=st.lists(st.text(max_size=20), max_size=2).map(tuple),
    digest=st.text("0123456789abcdef", max_size=8),
    rows=st.integers(0, 2**40),
    virtual_s=st.floats(0, 1e6),
    cpu_s=st.floats(0, 1e6),
    findings=TABLES,
).map(lambda case_result: unjudged(case_result) if case_result.outcome is Outcome.EXECUTED else case_result)


def whole(case_result):
    """Everything of a case, its findings included, which do not take part in comparisons."""
    return case_result, {name: (table.schema, table.to_pydict()) for name, table in case_result.findings.items()}


def read_all(folder):
    reader = PartsReader(folder, IT)
    return list(reader.news()), reader.damages


@given(EXECUTED)
def test_a_line_says_all_that_became_of_a_case(case_result):
    assert whole(read_line(line_of(case_result, IT).encode(), IT)) == whole(case_result)


@given(st.data())
def test_of_a_part_that_was_cut_off_all_whole_lines_are_read(tmp_path_factory, data):
    every = data.draw(st.lists(EXECUTED, min_size=1, max_size=4))
    folder = tmp_path_factory.mktemp("parts")
    content = b"".join(f"{line_of(case_result, IT)}\n".encode() for case_result in every)
    cut = data.draw(st.integers(0, len(content)))
    (folder / "one.jsonl").write_bytes(content[:cut])
    found, damages = read_all(folder)

    assert list(map(whole, found)) == list(map(whole, every[: content[:cut].count(b"\n")]))
    assert damages == []


@given(st.data())
def test_a_changed_byte_costs_its_line_and_is_reported(tmp_path_factory, data):
    every = data.draw(st.lists(EXECUTED, min_size=1, max_size=3))
    folder = tmp_path_factory.mktemp("parts")
    lines = [line_of(case_result, IT).encode() for case_result in every]
    hit = data.draw(st.integers(0, len(lines) - 1))
    at = data.draw(st.integers(0, len(lines[hit]) - 1))
    byte = data.draw(st.integers(33, 126).filter(lambda byte: byte != lines[hit][at]))
    lines[hit] = lines[hit][:at] + bytes([byte]) + lines[hit][at + 1 :]
    (folder / "one.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    found, damages = read_all(folder)

    if not damages:  # a number may be written in several ways: 1e5 and 1E5
        assert list(map(whole, found)) == list(map(whole, every))
    else:
        assert list(map(whole, found)) == list(map(whole, every[:hit] + every[hit + 1 :]))
        assert damages[0].startswith(f"{folder}/one.jsonl:{hit + 1} is damaged and was left out: ")


@given(st.lists(EXECUTED, max_size=6), st.integers(1, 3))
def test_what_is_appended_while_somebody_reads_is_read_once(tmp_path_factory, every, writers):
    folder = tmp_path_factory.mktemp("parts")
    parts = [PartWriter(folder, IT, RunFiles()) for _ in range(writers)]
    reader = PartsReader(folder, IT)
    found = []
    for number, case_result in enumerate(every):
        parts[number % writers].append(case_result)
        if number % 2:
            found += reader.news()
    found += reader.news()

    assert sorted(line_of(item, IT) for item in found) == sorted(line_of(item, IT) for item in every)


@given(st.lists(EXECUTED, max_size=8))
def test_a_case_counts_once_a_judged_run_first_and_then_one_that_ended(every):
    found = first_lines(iter(every))
    naive = {}
    judged, ended = [item for item in every if item.is_judged], [item for item in every if item.ended]
    for case_result in [*judged, *ended, *every]:
        naive.setdefault(case_result.case, case_result)

    assert found == naive


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b"\xff", b'{"variant": "a"}', b"[" * 100_000])
def test_a_line_that_is_none_is_reported(tmp_path, line):
    good = line_of(CaseResult(case=Case("a", 1), outcome=Outcome.COMPLETE), IT).encode()
    (tmp_path / "one.jsonl").write_bytes(line + b"\n" + good + b"\n")
    found, damages = read_all(tmp_path)

    assert [attrs.astuple(case_result.case) for case_result in found] == [("a", 1)]
    assert len(damages) == 1

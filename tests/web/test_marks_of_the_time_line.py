"""Marks of the time line, from the rows of a run."""

from analysis.trace_rows import HandMadeTrace
from emulator.analysis.live.storms import StormChange
from emulator.analysis.measures.traffic import StormRequest
from emulator.trace.schema import FAULTS, LIFECYCLE
from emulator.web.marks import Marks

NOTED_MS = 10_200
PULLS = StormRequest("PULL_MESSAGE", "PULL_RETRY_IMMEDIATELY", "c1", "b", overhead=True)


def noted(marks, trace):
    for table in (FAULTS, LIFECYCLE):
        for row in trace.rows[table.name]:
            marks.note(table, row)
    return list(marks.take_changed(NOTED_MS).values())


def test_a_fault_goes_on_until_it_is_healed():
    marks = Marks()
    begun = {"what": "fault", "text": "kill b", "from_ms": 4_000, "to_ms": None, "shown_ms": NOTED_MS}
    assert noted(marks, HandMadeTrace().at(4).fault("begin", "kill-1", "kill", "b")) == [begun]
    noted_before = marks.take_changed(99_999)
    assert noted_before == {}
    assert noted(marks, HandMadeTrace().at(9).fault("end", "kill-1", "kill", "b")) == [{**begun, "to_ms": 9_000}]


def test_a_storm_goes_on_until_it_is_over():
    marks = Marks()
    marks.on_storm(StormChange(60, PULLS, "500 a second"))
    marks.on_storm(StormChange(105, PULLS, "it is over", ended=True))
    ((storm,),) = [noted(marks, HandMadeTrace())]
    assert (storm["what"], storm["from_ms"], storm["to_ms"]) == ("storm", 60_000, 105_000)
    assert storm["text"] == "request storm: c1 -> b PULL_MESSAGE answered PULL_RETRY_IMMEDIATELY"


def test_what_happens_to_a_process_is_one_instant():
    found = noted(Marks(), HandMadeTrace().at(1).life("b", "started", role="broker").at(2).life("b", "powered_off"))
    assert found == [
        {"what": "process", "text": "b powered off", "from_ms": 2_000, "to_ms": 2_000, "shown_ms": NOTED_MS}
    ]


def test_events_of_processes_are_forgotten_before_faults():
    marks = Marks(marks_max=2)
    trace = HandMadeTrace().at(1).fault("begin", "cut-1", "cut", "a")
    for number in range(4):
        trace.at(number).life(f"c{number}", "ready")
    found = noted(marks, trace)
    assert [mark["text"] for mark in found if mark] == ["cut a", "c3 ready"]


def test_the_oldest_mark_is_forgotten_even_if_it_goes_on():
    marks = Marks(marks_max=2)
    trace = HandMadeTrace()
    for number in range(4):
        trace.at(number).fault("begin", f"cut-{number}", "cut", str(number))
    assert [mark and mark["text"] for mark in noted(marks, trace)] == [None, None, "cut 2", "cut 3"]
    assert noted(marks, HandMadeTrace().at(9).fault("end", "cut-0", "cut", "0")) == []

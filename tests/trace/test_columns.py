"""Arrow arrays from rows: the values that go in come out, and no second library is loaded for it."""

import subprocess
import sys

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from emulator.trace.segments import dictionary_array, int_array, text_array


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_numbers_are_come_out_as_they_went_in(values):
    made = int_array(pa, values)
    made.validate(full=True)
    assert made.type == pa.int64()
    assert made.to_pylist() == values


@given(st.lists(st.text()))
def test_texts_are_come_out_as_they_went_in(values):
    made = text_array(pa, values)
    made.validate(full=True)
    assert made.type == pa.string()
    assert made.to_pylist() == values


@given(st.lists(st.text(max_size=2)))
def test_texts_that_come_again_are_stored_once_and_come_out_as_they_went_in(values):
    made = dictionary_array(pa, values)
    made.validate(full=True)
    assert made.dictionary.to_pylist() == list(dict.fromkeys(values))
    assert made.to_pylist() == values


WRITES_A_SEGMENT = """
import sys
from pathlib import Path
from emulator.trace.batches import batch_of
from emulator.trace.schema import CAUSES
from emulator.trace.segments import SegmentWriter
writer = SegmentWriter(Path(sys.argv[1]))
writer.write(batch_of(CAUSES, [(1, 2, "broker-a", "timer")]))
writer.close_segments()
print("pandas" in sys.modules)
"""


def test_a_run_that_writes_its_trace_does_not_load_pandas(tmp_path):
    command = [sys.executable, "-c", WRITES_A_SEGMENT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

"""The cell of `emulator.watch` is updated in place while other cells run."""

import textwrap

import nbformat
import pytest

from support.rmqemu_process import write_small

CELLS = (
    """
    import time, emulator
    cluster = emulator.launch("small.toml")
    watched = emulator.watch(cluster)
    watched
    """,
    """
    cluster.advance(5_000)
    cluster.kill("consumer-1")
    cluster.close()
    while not watched.ended:
        time.sleep(0.1)
    watched.stop()
    print(sum(watched.rows.values()))
    """,
)


@pytest.mark.slow
@pytest.mark.spark
def test_the_cell_shows_the_end_of_a_run_that_another_cell_has_ended(tmp_path, own_jupyter):
    from nbclient import NotebookClient

    write_small(tmp_path)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(textwrap.dedent(cell)) for cell in CELLS])
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    first, second = client.execute().cells

    (shown,) = first.outputs
    rows = int(second.outputs[-1]["text"])
    assert shown["data"]["text/plain"].startswith(f"{rows:,} rows up to 5.000 s; ended\n")
    assert "<table" in shown["data"]["text/html"] or "nothing differs" in shown["data"]["text/html"]

"""A campaign on Spark that is ended in any of its phases: nothing is lost when the same command goes on."""

import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.campaigns import write_campaign
from support.rmqemu_process import started
from support.spark_ports import descendants
from support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.spark]
COSTS = ("cpu_s", "wall_s", "trace", "command")
PHASES = {
    "runs": lambda campaign: any(path.stat().st_size for path in campaign.glob("parts/*")),
    "landing": lambda campaign: any(campaign.glob("dataset/trace/*/part-*.parquet")),
    "judging": lambda campaign: (campaign / "dataset" / "dataset.json").exists(),
    "writing gold": lambda campaign: any(campaign.glob("dataset/gold/*/part-*.parquet")),
}


def command(folder):
    folder.mkdir()
    return ("campaign", write_campaign(folder), "--engine", "spark", "--master", "local[1]")


def whole(words, folder):
    """Run the command to its end, which takes longer than those of other tests."""
    process = started(*words, cwd=folder)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr


def tables(campaign):
    """Mapping table -> its rows as sorted texts, without what they have cost and where they are."""
    found = {}
    for path in sorted(campaign.glob("tables/*.parquet")):
        rows = pq.read_table(path)
        rows = rows.drop_columns([name for name in COSTS if name in rows.column_names])
        found[path.name] = sorted(map(repr, rows.to_pylist()))
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("campaigns") / "whole"
    words = command(folder)
    whole(words, folder)
    return tables(folder / "campaigns" / "small-campaign")


@pytest.mark.parametrize(
    ("phase", "number"),
    [
        *((phase, signal.SIGKILL) for phase in PHASES),
        *(("runs", signal.SIGHUP), ("judging", signal.SIGINT), ("writing gold", signal.SIGTERM)),
    ],
)
def test_a_campaign_that_was_ended_loses_nothing_and_leaves_no_process(tmp_path, expected, phase, number):
    folder = tmp_path / "ended"
    words, campaign = command(folder), folder / "campaigns" / "small-campaign"
    process = started(*words, cwd=folder)
    until(lambda: PHASES[phase](campaign) or process.poll() is not None, 120)
    children = [pid for pid in descendants(process.pid) if is_alive(pid)]
    process.send_signal(number)
    process.communicate(timeout=60)

    until(lambda: not any(map(is_alive, children)), 30)
    assert process.returncode == (-number if number == signal.SIGKILL else 130)
    whole(words, folder)
    assert tables(campaign) == expected


def is_alive(pid):
    """Whether a process runs, and has not only not been waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

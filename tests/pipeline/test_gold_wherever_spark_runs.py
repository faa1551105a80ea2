"""Gold is the same wherever Spark runs, with few and many partitions, with and without generated code.

In this process, on a cluster of processes, on a standalone master whose workers share nothing with the driver but an
object store, and behind Connect.
"""

import json
import os
import pickle
import subprocess
import sys

import pyarrow as pa
import pytest

from analysis.busy_traces import busy_trace
from analysis.demo_trace import END_S, demo_trace
from analysis.random_traces import END_S as RANDOM_END_S
from analysis.random_traces import random_trace
from analysis.trace_rows import write_run
from emulator.analysis.arrow_tables import RUNS, TABLES, labelled, schema_of_runs
from emulator.analysis.judge import judge_run
from emulator.dataset.settings import PACKAGE_PARENT
from emulator.lake.landing import land
from emulator.run import run_scenario
from emulator.spec import load
from emulator.spec.bundled import example
from emulator.trace.run_directory import open_run
from support.gold_in_a_process import rows_of
from support.object_store import BUCKET, object_store
from support.rmqemu_process import COMMAND
from support.standalone_spark import standalone_spark

pytestmark = [pytest.mark.slow, pytest.mark.spark]
RANDOM = 6
EXAMPLES = ("acting_slave.toml", "transactions.toml")
FEW, MANY = ("1", "off"), ("8", "on")
SETTINGS = [FEW, MANY, ("1", "on"), ("8", "off")]
"""Shuffle partitions, and whether code is generated."""
MASTERS = {"local[1]": (FEW, MANY), "local[2]": SETTINGS, "local-cluster[2,1,1024]": (FEW, MANY)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    written = [write_run(demo_trace(), folder / "demo", END_S)]
    for seed in range(RANDOM):
        written.append(write_run(random_trace(seed), folder / f"random-{seed}", RANDOM_END_S))
        written.append(write_run(busy_trace(seed), folder / f"busy-{seed}", RANDOM_END_S))
    return written + [run_scenario(load(example(name)), runs=folder).path for name in EXAMPLES]


@pytest.fixture(scope="module")
def expected(runs, tmp_path_factory):
    """A file with the rows that the local judge finds."""
    judged = [judge_run(open_run(run)) for run in runs]
    rows = {
        name: rows_of(
            pa.concat_tables([schema_of_runs(name).empty_table(), *(labelled(item, name) for item in judged)])
        )
        for name in (RUNS, *TABLES)
    }
    file = tmp_path_factory.mktemp("expected") / "rows.pickle"
    file.write_bytes(pickle.dumps(rows))
    return file


@pytest.fixture(scope="module")
def dataset(runs, tmp_path_factory):
    uri = tmp_path_factory.mktemp("lake") / "dataset"
    land(runs, uri)
    return uri


def judged(folder, *words, **variables):
    """What the process prints that judges on Spark."""
    done = subprocess.run(
        [sys.executable, "-m", "support.gold_in_a_process", *map(str, words)],
        cwd=folder,
        env={**os.environ, "RMQEMU_SPARK_ARCHIVE": "off", **variables},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def is_that_of_the_judge(found, where):
    assert found["session"].endswith(where)
    assert found["different"] == []
    assert sum(rows > 0 for rows in found["rows"].values()) > 35


@pytest.mark.parametrize(
    ("master", "partitions", "codegen"), [(master, *item) for master, every in MASTERS.items() for item in every]
)
def test_gold_of_a_master(tmp_path, dataset, expected, master, partitions, codegen):
    found = judged(tmp_path, dataset, tmp_path / "gold", expected, partitions, codegen, master)

    is_that_of_the_judge(found, master)
    assert found["settings"]["spark.sql.shuffle.partitions"] == partitions


def test_gold_of_workers_that_share_an_object_store_and_no_disk(tmp_path, runs, expected, monkeypatch):
    with object_store() as store:
        for name, value in store.items():
            monkeypatch.setenv(name, value)
        land(runs, uri := f"s3a://{BUCKET}/dataset")
        without_store = dict.fromkeys(store, "")
        with standalone_spark(tmp_path, 2, PYTHONPATH=str(PACKAGE_PARENT), **without_store) as master:
            for partitions, codegen in (FEW, MANY):
                found = judged(tmp_path, uri, f"{uri}-gold-{partitions}", expected, partitions, codegen, master)
                is_that_of_the_judge(found, master)


def test_gold_of_connect(tmp_path, dataset, expected):
    variables = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "RMQEMU_SPARK_ARCHIVE": "off"}

    def spark(*words):
        subprocess.run([*COMMAND, "spark", *words], env={**os.environ, **variables}, cwd=tmp_path, check=True)

    spark("start", "--memory", "1g")
    try:
        for partitions, codegen in SETTINGS:
            gold = tmp_path / f"gold-{partitions}-{codegen}"
            found = judged(tmp_path, dataset, gold, expected, partitions, codegen, **variables)
            assert found["session"].startswith("Spark Connect ")
            is_that_of_the_judge(found, "")
    finally:
        spark("stop")

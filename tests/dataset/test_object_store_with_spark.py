"""Datasets in an object store: the settings of sessions, and the commands that land and judge there."""

import subprocess
import sys

import pytest
from pyspark.errors import PySparkRuntimeError

from analysis.demo_trace import END_S, demo_trace
from analysis.trace_rows import write_run
from emulator.dataset.object_store import (
    NoJarsError,
    is_in_object_store,
    jars_are_fetched,
    packages,
    store_settings,
    store_variables,
)
from support.object_store import BUCKET, object_store
from support.rmqemu_process import rmqemu

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
NO_SUCH_JAR = """
import sys
from emulator.cli.terminal import one_line_errors
from emulator.dataset import object_store, sessions
object_store._SDK_VERSION = "0.0.0"
try:
    with one_line_errors():
        sessions.open_command_session("local[1]", rows=10, uri="s3a://bucket/dataset")
except Exception as ended:
    sys.exit(ended.exit_code)
"""


@pytest.mark.parametrize(
    ("uri", "is_there"),
    [
        ("s3a://b/d", True),
        ("s3://b/d", True),
        ("S3A://b/d", True),
        ("file:///s3a", False),
        ("s3", False),
        (None, False),
    ],
)
def test_the_scheme_of_a_uri_says_whether_it_is_in_an_object_store(uri, is_there):
    assert is_in_object_store(uri) is is_there


def test_a_store_without_an_endpoint_is_that_of_aws():
    assert store_settings({"AWS_REGION": "eu-west-1"}, with_keys=True) == {"fs.s3a.endpoint.region": "eu-west-1"}
    assert store_settings({}, with_keys=True) == {}


@pytest.mark.parametrize(("scheme", "is_encrypted"), [("http", "false"), ("https", "true")])
def test_a_store_with_an_endpoint_has_its_buckets_in_paths(scheme, is_encrypted):
    environment = {"AWS_ENDPOINT_URL": "http://other", "AWS_ENDPOINT_URL_S3": f"{scheme}://store:9000"}
    assert store_settings(environment, with_keys=True) == {
        "fs.s3a.endpoint": f"{scheme}://store:9000",
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": is_encrypted,
    }


def test_keys_are_set_only_where_they_are_wanted():
    assert store_settings(KEYS, with_keys=False) == {}
    assert store_settings(KEYS, with_keys=True) == {"fs.s3a.access.key": "key", "fs.s3a.secret.key": "secret"}


def test_python_workers_get_the_variables_of_the_store_and_no_others():
    environment = {**KEYS, "AWS_REGION": "", "AWS_PROFILE": "mine", "HOME": "/home"}
    assert store_variables(environment) == KEYS


def test_an_end_of_java_while_it_fetches_jars_names_them():
    with pytest.raises(NoJarsError) as refused, jars_are_fetched():
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    [line] = refused.value.lines
    assert line.startswith(
        f"s3a: Java has ended while it fetched {', '.join(packages())}: they come from Maven Central"
    )


@pytest.fixture(scope="module")
def store():
    with object_store() as environment:
        yield environment


@pytest.mark.slow
@pytest.mark.spark
def test_a_dataset_in_an_object_store_is_judged_as_that_of_a_disk(store, tmp_path):
    write_run(demo_trace(), tmp_path / "runs" / "demo", END_S)
    uri = f"s3a://{BUCKET}/judged"
    landed = rmqemu("land", "runs", "--to", uri, cwd=tmp_path, **store)
    assert (landed.returncode, landed.stdout.splitlines()[-1]) == (0, uri)
    rmqemu("land", "runs", "--to", "dataset", cwd=tmp_path)

    there = rmqemu("analyze", uri, cwd=tmp_path, **store)
    here = rmqemu("analyze", "dataset", cwd=tmp_path)

    assert (there.returncode, there.stdout) == (here.returncode, here.stdout)
    assert "1 run: 1 invalid" in there.stdout
    assert there.stderr.startswith("engine: Spark ")


@pytest.mark.slow
@pytest.mark.spark
def test_jars_that_cannot_be_fetched_get_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", NO_SUCH_JAR], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rmqemu: s3a: Java has ended while it fetched org.apache.hadoop:hadoop-aws:")
    assert done.stderr.count("\n") == 1

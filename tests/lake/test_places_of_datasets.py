"""Where a dataset lies: paths and URIs, for Spark and for pyarrow."""

import pytest
from pyarrow import fs

from emulator.lake.errors import DatasetError
from emulator.lake.filesystems import located
from emulator.lake.landing import land
from emulator.lake.snapshot import open_dataset
from lake.landed_runs import write


@pytest.mark.parametrize("uri", ["/data/set", "/data/set/", "file:/data/set", "file:///data/set", "FILE:///data/set"])
def test_a_local_place_has_one_uri(uri):
    place = located(uri)

    assert (place.uri, place.path) == ("file:///data/set", "/data/set")
    assert str(place.local) == "/data/set"


def test_a_relative_path_is_one_of_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert located("data/set").uri == f"file://{tmp_path}/data/set"
    assert located("file:data/set").uri == f"file://{tmp_path}/data/set"


@pytest.mark.parametrize("uri", ["s3://bucket/data/set", "s3a://bucket/data/set/"])
def test_an_object_store_has_the_uri_of_spark(uri):
    place = located(uri)

    assert (place.uri, place.path, place.local) == ("s3a://bucket/data/set", "bucket/data/set", None)
    assert isinstance(place.filesystem, fs.S3FileSystem)


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("gs://bucket/x", "'gs://bucket/x': expected a path, or a URI that begins with file:, hdfs:, s3: or s3a:"),
        ("s3a://bucket", "'s3a://bucket': expected s3a://BUCKET/PATH"),
        ("s3a:///path", "'s3a:///path': expected s3a://BUCKET/PATH"),
        ("/data/se*", "'/data/se*': expected a dataset without * ? [ ] { } \\ in its name"),
        ("", "'': expected a path, or a URI that begins with file:, hdfs:, s3: or s3a:"),
    ],
)
def test_what_is_no_place_is_refused_in_a_line(uri, problem):
    with pytest.raises(DatasetError) as refused:
        located(uri)
    assert str(refused.value) == problem


def test_hadoop_without_its_client_is_refused_in_a_line(monkeypatch):
    for name in ("JAVA_HOME", "HADOOP_HOME", "ARROW_LIBHDFS_DIR"):
        monkeypatch.setenv(name, "/nowhere")
    with pytest.raises(DatasetError, match=r"hdfs://host:9000/x: hdfs: needs Hadoop's client: JAVA_HOME, HADOOP_HOME"):
        located("hdfs://host:9000/x")


def test_a_name_with_blanks_and_other_characters_is_a_name(tmp_path):
    land([write(tmp_path / "runs", "a")], tmp_path / "my data %20 + ü")
    dataset = open_dataset(f"file://{tmp_path}/my data %20 + ü")

    assert dataset.runs == ("a",)
    assert dataset.table("messages").num_rows == 6


def test_a_place_that_cannot_be_written_is_refused_in_a_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DatasetError, match=f"^file://{tmp_path}/file/x: Not a directory$"):
        land([write(tmp_path / "runs", "a")], tmp_path / "file" / "x")

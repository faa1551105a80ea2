"""Where Spark runs: options, environment, warm server, and the lines about URLs that are none."""

import attrs
import pytest

from emulator.dataset.masters import MasterError
from emulator.dataset.server import Server
from emulator.dataset.spark_location import Origin, address_of, where_to_run

WARM = Server(
    pid=1,
    port=4711,
    token="secret",
    master="local[2]",
    memory="2g",
    emulator="0.2.0",
    path="/src",
    python="3.11",
    pyspark="4.3.0",
    java="17",
    began_s=0,
)
MASTERS = ["local", "local[3]", "local[*]", "local[4,2]", "local-cluster[2,1,1024]", "spark://a:7077,b:7077", "yarn"]


@pytest.mark.parametrize(
    ("given", "environment", "server", "origin", "words"),
    [
        ((None, None), {}, None, Origin.DEFAULT, "local[2]"),
        ((None, None), {}, WARM, Origin.SERVER, "sc://localhost:4711 (rmqemu spark start)"),
        ((None, None), {"RMQEMU_SPARK": "local[4]"}, WARM, Origin.ENVIRONMENT, "local[4]"),
        ((None, None), {"RMQEMU_SPARK": "sc://far:15002"}, WARM, Origin.ENVIRONMENT, "sc://far:15002"),
        ((None, None), {"SPARK_REMOTE": "sc://far/;token=t"}, WARM, Origin.ENVIRONMENT, "sc://far"),
        ((None, None), {"RMQEMU_SPARK": "local[4]", "SPARK_REMOTE": "sc://far"}, None, Origin.ENVIRONMENT, "local[4]"),
        (("local[1]", None), {"SPARK_REMOTE": "sc://far"}, WARM, Origin.OPTION, "local[1]"),
        ((None, "sc://far:1"), {"RMQEMU_SPARK": "local[4]"}, WARM, Origin.OPTION, "sc://far:1"),
    ],
)
def test_options_come_before_the_environment_and_that_before_the_warm_server(given, environment, server, origin, words):
    where = where_to_run(*given, environment, None if server is None else server.remote)

    assert (where.origin, where.words) == (origin, words)
    assert (where.master is None) != (where.remote is None)


@pytest.mark.parametrize("master", MASTERS)
def test_each_kind_of_master_is_accepted(master):
    assert where_to_run(master, None, {}).master == master


@pytest.mark.parametrize(
    ("given", "environment", "line"),
    [
        (("local[0]", None), {}, "--master 'local[0]': expected local[N], "),
        (("spark://a", None), {}, "--master 'spark://a': expected spark://HOST:PORT"),
        (("spark://a:70770", None), {}, "--master 'spark://a:70770': expected spark://HOST:PORT"),
        (("sc://a:1", None), {}, "spark://HOST:PORT; --remote takes the URL of a Connect server"),
        (("local", "sc://a"), {}, "expected only one of --master and --remote"),
        ((None, "a:15002"), {}, "--remote 'a:15002': expected sc://HOST:PORT"),
        ((None, "sc://a:70000"), {}, "--remote 'sc://a:70000': expected sc://HOST:PORT"),
        ((None, "sc://"), {}, "--remote 'sc://': expected sc://HOST:PORT"),
        ((None, None), {"RMQEMU_SPARK": "locl"}, "RMQEMU_SPARK 'locl': expected local[N], "),
        ((None, None), {"SPARK_REMOTE": "local"}, "SPARK_REMOTE 'local': expected sc://HOST:PORT"),
    ],
)
def test_what_is_no_url_gets_one_line(given, environment, line):
    with pytest.raises(MasterError) as refused:
        where_to_run(*given, environment)

    assert line in str(refused.value)


def test_a_token_is_in_no_message():
    where = where_to_run(None, None, {}, WARM.remote)
    with pytest.raises(MasterError) as refused:
        where_to_run(None, "sc://a:0/;token=secret", {})

    assert "secret" in where.remote
    assert "secret" not in f"{where} {where.words} {WARM} {refused.value}"


@pytest.mark.parametrize(
    ("url", "address"),
    [("sc://a", ("a", 15002)), ("sc://a:1/;token=t;use_ssl=true", ("a", 1)), ("sc://[::1]:5", ("::1", 5))],
)
def test_a_url_of_connect_has_a_host_and_a_port(url, address):
    assert address_of(url) == address


@pytest.mark.parametrize(
    ("origin", "master", "is_local"),
    [
        (Origin.SERVER, None, True),
        (Origin.DEFAULT, "local[2]", True),
        (Origin.OPTION, "local", True),
        (Origin.OPTION, "local-cluster[2,1,1024]", False),
        (Origin.OPTION, "spark://a:1", False),
        (Origin.OPTION, None, False),
    ],
)
def test_workers_on_this_machine_have_this_package(origin, master, is_local):
    remote = None if master else "sc://a"
    where = attrs.evolve(where_to_run("local", None, {}), origin=origin, master=master, remote=remote)

    assert where.is_local == is_local

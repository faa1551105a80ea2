"""Datasets at `s3a:` URIs: the jars and the settings with which Spark reads an object store.

The variables of the environment that name the store and its keys are those of `emulator.lake.filesystems`.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pyspark
from pyspark.errors import PySparkRuntimeError

from emulator.base.errors import UserError
from emulator.dataset.settings import LOG, cache_folder

_SCHEMES = ("s3://", "s3a://")
_VARIABLES = (
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
)
_KEYS = {
    "AWS_ACCESS_KEY_ID": "fs.s3a.access.key",
    "AWS_SECRET_ACCESS_KEY": "fs.s3a.secret.key",
    "AWS_SESSION_TOKEN": "fs.s3a.session.token",
}
_SDK, _BUNDLE = "software.amazon.awssdk", "software.amazon.awssdk:bundle"
_SDK_VERSION = "2.35.4"
"""That with which Hadoop 3.5.0 is built."""


class NoJarsError(UserError):
    """Spark did not start with the jars for object stores; the text names them."""


def is_in_object_store(uri: str | Path | None) -> bool:
    """Whether a URI names a place in an object store."""
    return str(uri).lower().startswith(_SCHEMES)


def packages() -> tuple[str, ...]:
    """The Maven coordinates of what Spark needs for `s3a:`, in the version of its own Hadoop.

    These parts of Amazon's SDK take the place of its bundle, which Hadoop names and which is many times as large.
    """
    return (
        f"org.apache.hadoop:hadoop-aws:{_hadoop_version()}",
        *(f"{_SDK}:{part}:{_SDK_VERSION}" for part in ("s3", "s3-transfer-manager", "sts")),
    )


def _hadoop_version() -> str:
    jars = Path(pyspark.__file__).parent / "jars"
    return max(jar.stem for jar in jars.glob("hadoop-client-api-*.jar")).removeprefix("hadoop-client-api-")


def start_settings() -> dict[str, str]:
    """Settings of a Spark that starts: it fetches the jars once, into the cache of this user."""
    return {
        "spark.jars.packages": ",".join(packages()),
        "spark.jars.excludes": _BUNDLE,
        "spark.jars.ivy": str(cache_folder() / "ivy"),
    }


def store_settings(environment: Mapping[str, str] = os.environ, *, with_keys: bool) -> dict[str, str]:
    """Settings of a session: where the object store is.

    Args:
        environment: of this process.
        with_keys: whether they have the keys, too; never for a session on another machine, which has its own.
    """
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or ""
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or ("us-east-1" if endpoint else "")
    settings = {"fs.s3a.endpoint.region": region} if region else {}
    if endpoint:
        settings |= {
            "fs.s3a.endpoint": endpoint,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": str(urlsplit(endpoint).scheme != "http").lower(),
        }
    if with_keys:
        settings |= {setting: environment[name] for name, setting in _KEYS.items() if environment.get(name)}
    return settings


def store_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables by which Python workers, which write gold, find the store; their machines may lack them."""
    return {name: environment[name] for name in _VARIABLES if environment.get(name)}


@contextmanager
def jars_are_fetched() -> Iterator[None]:
    """Spark starts in the `with` block and fetches the jars.

    Raises:
        NoJarsError: Java has ended.
    """
    try:
        yield
    except PySparkRuntimeError as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise NoJarsError(
            f"s3a: Java has ended while it fetched {', '.join(packages())}: they come from Maven Central, or lie in "
            f"{cache_folder() / 'ivy'} from an earlier start; {LOG}=warn shows why"
        ) from error

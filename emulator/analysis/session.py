"""A Spark session that starts fast, says little and leaves nothing in the working directory."""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import emulator
from emulator.analysis.java import ensure_java

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
}

LOG_SETTINGS = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""
"""log4j2's: `spark.log.level` would come too late for the first warnings."""


def spark_session(
    master: str = "local[2]", *, app_name: str = "rmqemu", settings: dict[str, str] | None = None
) -> SparkSession:
    """Start Spark, or return the session that runs already.

    Args:
        master: Spark's master URL: `local[n]`, or that of a cluster whose executors have this package installed.
        app_name: what Spark calls the application.
        settings: Spark settings on top of, or instead of, `QUIET`.

    Raises:
        JavaNotFoundError: there is no Java to run on.
    """
    ensure_java()
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in (QUIET | _places(master) | (settings or {})).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _places(master: str) -> dict[str, str]:
    scratch = _scratch()
    log_settings = scratch / "log4j2.properties"
    log_settings.write_text(LOG_SETTINGS)
    places = {
        # Analyses are short: the second compiler would cost more than it gives.
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={log_settings.as_uri()}",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.jars.ivy": str(scratch / "ivy"),
        "spark.local.dir": str(scratch / "local"),
    }
    if master.startswith("local"):
        # Python workers import this package from where the driver did, installed or not.
        places["spark.executorEnv.PYTHONPATH"] = str(Path(emulator.__file__).parents[1])
    return places


@functools.cache
def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="rmqemu-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder

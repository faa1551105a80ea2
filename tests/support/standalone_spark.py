"""A standalone Spark cluster: a master and workers, started from the installed pyspark."""

import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from emulator.dataset.java import ensure_java
from support.waiting import until

_SPARK = Path(pyspark.__file__).parent
_CLASSES = "org.apache.spark.deploy"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def standalone_spark(folder, workers, **variables) -> Iterator[str]:
    """Yields the URL of a master that has this many workers of one core each, with further environment variables."""
    java = ensure_java()
    environment = {
        **os.environ,
        "JAVA_HOME": str(java),
        "SPARK_HOME": str(_SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        **variables,
    }
    port, web_port = free_port(), free_port()
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as daemons:

        def start(kind, *arguments):
            log = daemons.enter_context((folder / "spark.log").open("ab"))
            command = [str(_SPARK / "bin" / "spark-class"), f"{_CLASSES}.{kind}", "--host", "127.0.0.1", *arguments]
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
            daemons.callback(process.wait)
            daemons.callback(process.terminate)

        start("master.Master", "--port", str(port), "--webui-port", str(web_port))
        until(lambda: _alive_workers(web_port) is not None, 60)
        for number in range(workers):
            work = ("--work-dir", str(folder / f"worker-{number}"))
            start("worker.Worker", "--cores", "1", "--memory", "1g", "--webui-port", "0", *work, url)
        until(lambda: _alive_workers(web_port) == workers, 60)
        yield url


def _alive_workers(web_port):
    """How many workers a master has; None: it does not answer yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{web_port}/json/", timeout=5) as answer:
            return json.load(answer)["aliveworkers"]
    except OSError:
        return None

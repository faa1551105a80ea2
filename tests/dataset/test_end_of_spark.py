"""A process that used Spark ends silently."""

import subprocess
import sys

import pytest

WITH_A_QUESTION_THAT_JAVA_NEVER_READS = """
import atexit
import signal
import threading
import time

from pyspark import SparkContext

from emulator.dataset import spark

def ask():
    asking.set()
    java.java.lang.System.nanoTime()

threading.excepthook = lambda _: print("lost")
asking = threading.Event()
thread = threading.Thread(target=ask, daemon=True)
atexit.register(thread.join, 30)  # after the end of Spark, which is registered later
spark.JVM_EXIT_S = 0.5
session = spark.spark_session("local[1]")
java = session.sparkContext._jvm
session.stop()
SparkContext._gateway.proc.send_signal(signal.SIGSTOP)
thread.start()
asking.wait()
time.sleep(0.2)
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_thread_that_waits_for_java_logs_nothing():
    command = [sys.executable, "-c", WITH_A_QUESTION_THAT_JAVA_NEVER_READS]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)

    assert (done.returncode, done.stdout) == (0, "lost\n")
    assert "Traceback" not in done.stderr


STARTS_SPARK = """
from emulator.dataset.spark import spark_session

print(spark_session("local[1]").range(3).count())
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_session_prints_no_warning_of_java():
    command = [sys.executable, "-c", STARTS_SPARK]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)

    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")

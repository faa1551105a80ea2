"""One Spark session for the whole test run."""

import pytest

FOR_TINY_FRAMES = {
    "spark.sql.shuffle.partitions": "2",
    # Compiling a query costs more than running it on a few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


@pytest.fixture(scope="session")
def spark():
    from emulator.dataset.spark import import_nothing_from_here, spark_session

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONSAFEPATH", "")  # so that what follows is undone
        import_nothing_from_here()  # as for a command: workers get what the environment has when Java starts
        session = spark_session("local[2]", app_name="rmqemu-tests", settings=FOR_TINY_FRAMES)
    yield session
    session.stop()

"""The test kit: run a cluster in virtual time, and make assertions about its trace.

A test has three parts: a scenario, a script, and assertions. Hours of a cluster
take seconds, and the same seed always gives the same trace:

    from emulator.testing import a_scenario, execute


    def test_the_queues_of_a_killed_consumer_get_another_owner():
        async def script(stage):
            await stage.at_ms(30_000)
            await stage.kill("c2")
            await stage.for_ms(30_000)

        trace = execute(a_scenario(consumers=2, queues=4), script)

        assert trace.owners(at_ms=29_999)["broker-a", 3] == ["c2"]
        assert trace.owners()["broker-a", 3] == ["c1"]
        assert len(trace.select("lifecycle", node="c2", event="killed")) == 1

`a_scenario` describes a small cluster, with `broker_groups` and `consumer_group` where
brokers and consumers have options; `emulator.spec` reads scenario files, whose faults
happen at their times here, too. A script gets a `Stage`: it waits
for emulated instants, kills and suspends nodes, cuts links, begins faults in the
words of scenario files, and inspects nodes. `execute` returns a `Trace`: all
recorded rows by table, as in the Parquet files of a run; `emulator.trace.schema`
describes the tables.

The kit also has:

- `run_at_console`, which executes verbs in a run with a run directory, as
  `rmqemu up` does.
- `execute_world`, which runs a few tiny nodes without a cluster, for tests of the
  layers below: network, machines, remote calls.
- The fixture `rocketmq_cluster`, which starts live clusters for the test suites
  of applications; see `emulator.testing.plugin`.

Times are milliseconds since the run began, here as everywhere in the kit.

May import `notebook` and what is below it.
"""

from typing import TYPE_CHECKING, Any

from emulator.base.on_demand import attribute_of

if TYPE_CHECKING:
    from emulator.testing.console import ConsoleUser as ConsoleUser
    from emulator.testing.console import run_at_console as run_at_console
    from emulator.testing.scenarios import GROUP as GROUP
    from emulator.testing.scenarios import RETRY as RETRY
    from emulator.testing.scenarios import TOPIC as TOPIC
    from emulator.testing.scenarios import a_scenario as a_scenario
    from emulator.testing.scenarios import broker_groups as broker_groups
    from emulator.testing.scenarios import consumer_group as consumer_group
    from emulator.testing.stage import Caller as Caller
    from emulator.testing.stage import Probe as Probe
    from emulator.testing.stage import Script as Script
    from emulator.testing.stage import Stage as Stage
    from emulator.testing.stage import execute as execute
    from emulator.testing.trace import RowOfTrace as RowOfTrace
    from emulator.testing.trace import Trace as Trace
    from emulator.testing.worlds import execute_world as execute_world

_MODULES = {
    "ConsoleUser": "console",
    "run_at_console": "console",
    "GROUP": "scenarios",
    "RETRY": "scenarios",
    "TOPIC": "scenarios",
    "a_scenario": "scenarios",
    "broker_groups": "scenarios",
    "consumer_group": "scenarios",
    "Caller": "stage",
    "Probe": "stage",
    "Script": "stage",
    "Stage": "stage",
    "execute": "stage",
    "RowOfTrace": "trace",
    "Trace": "trace",
    "execute_world": "worlds",
}
__all__ = sorted(_MODULES)  # noqa: PLE0605 - mypy and readers have the imports above


def __getattr__(name: str) -> Any:
    # On demand: pytest loads the plugin, and this package with it, in every suite where the wheel is installed.
    return attribute_of(__name__, _MODULES, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])

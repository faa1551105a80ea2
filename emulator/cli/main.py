"""The command line: every command of `rmqemu` with its options; what a command needs is imported when it is called.

Exit status: 0 valid, 1 an oracle was violated, 2 unknown, damaged or bad input, or no memory, 130 Ctrl-C. It follows
from the rules; with `--service` it is also 1 if the service is paging.
"""

from pathlib import Path
from typing import Annotated

import typer

from emulator.base.printing import print_line
from emulator.cli.arguments import (
    SCENARIO_HELP,
    AllowCodeOption,
    CampaignArgument,
    EngineOption,
    JsonOption,
    MasterOption,
    RemoteOption,
    RunArgument,
    RunsOption,
    ScenarioArgument,
    ServiceOption,
    SpecArgument,
    ToOption,
    TraceOption,
    VerifiedArgument,
)
from emulator.cli.command_classes import EXEC, Commands, ExecCommand
from emulator.cli.judged_runs import analyze, compare, land, report
from emulator.cli.spark import app as spark_app
from emulator.cli.terminal import (
    NAME,
    complain,
    one_line_errors,
    refuse_together,
    refuse_without,
)
from emulator.time.mode import TimeMode
from emulator.trace.schema import TraceLevel
from emulator.why.forms import FORMS
from nodes.fields import LONG_MAX

app = typer.Typer(
    name=NAME,
    cls=Commands,
    epilog="Exit status: 0 valid, 1 an oracle was violated, 2 unknown, damaged or bad input, 130 Ctrl-C.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.add_typer(spark_app, name="spark")


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        from emulator.base.commit import commit

        print_line(f"{NAME} {version('rocketmq-emulator')} (commit {commit()}), after RocketMQ 5.3.3")
        raise typer.Exit


@app.callback()
def every_command(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and the commit."),
    ] = False,
) -> None:
    """Emulate a RocketMQ cluster, inject faults, and see what every node believed."""


@app.command()
def demo(
    runs: RunsOption = Path("runs"),
    engine: EngineOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
) -> None:
    """Run the scenario of the half-seen consumer, explain what happened, and draw it."""
    with one_line_errors():
        from emulator.cli.demo import show_demo
        from emulator.cli.judging import Judging

        show_demo(runs, Judging(engine, master, remote))


@app.command(cls=ExecCommand)
def up(
    spec: Annotated[Path, typer.Argument(metavar="[SPEC]", help=SCENARIO_HELP)] = Path("guests"),
    runs: RunsOption = Path("runs"),
    trace: TraceOption = None,
    guest: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A guest with a name, for faults of its links; may be repeated."),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            EXEC,
            metavar="COMMAND...",
            help="Run a command with NAMESRV_ADDR set, and end with its exit status; must come last.",
            show_default=False,
        ),
    ] = None,
    store_max: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Most bytes of each broker's log, such as 200MB; its oldest messages make room.",
            show_default="no limit, or the scenario's storeMaxBytes",
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Where programs reach the first nameserver; the other nodes follow at the next ports of HOST. "
            "127.0.0.1:9876 stays on this machine; 0.0.0.0:9876 lets containers and other machines in.",
            show_default="a loopback address of its own for each node",
        ),
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Show the cluster in a browser, too.")] = False,
    web_port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port of --web; a free one.", show_default=False)
    ] = None,
    allow_code: AllowCodeOption = False,
) -> None:
    """Run a cluster live and print what happens, one line per event, until Ctrl-C.

    Without SPEC it is the cluster for programs of your own. In a terminal it reads verbs at a prompt (`help` lists
    them). `rmqemu ctl` sends verbs from other terminals, and with --web a page in a browser on this machine does.
    """
    with one_line_errors():
        from emulator.cli.up import run_live

        level = trace or TraceLevel.FULL
        names = tuple(guest or ())
        run_live(
            spec, runs, level, names, command, store_max, listen, web=web, web_port=web_port, allow_code=allow_code
        )


@app.command(context_settings={"ignore_unknown_options": True})
def ctl(
    words: Annotated[list[str], typer.Argument(metavar="VERB...", help="A verb and its words; `help` lists them.")],
    run: Annotated[
        Path | None, typer.Option("--run", metavar="RUN", help="Directory of the run; the newest that listens.")
    ] = None,
    runs: RunsOption = Path("runs"),
) -> None:
    """Execute a verb on a cluster that runs in another terminal (`rmqemu up`)."""
    with one_line_errors():
        from emulator.console.control_client import say
        from emulator.console.control_socket import SOCKET_FILE, newest_socket

        for line in say(newest_socket(runs) if run is None else run / SOCKET_FILE, words):
            print_line(line)


@app.command()
def run(
    scenario: ScenarioArgument,
    mode: Annotated[TimeMode, typer.Option(help="How time passes and what carries frames.")] = TimeMode.SIM,
    seed: Annotated[
        int | None, typer.Option(min=0, max=LONG_MAX, help="Instead of the scenario's.", show_default=False)
    ] = None,
    script: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Verbs to execute when all nodes are ready, a line each.", show_default=False
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="SEEDS",
            help='Many runs, kept as a campaign: "1-100", "1-10, 50"; see rmqemu campaign.',
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option("--runs", metavar="DIR", help="Directory of all runs, runs; with --seeds, campaigns."),
    ] = None,
    trace: TraceOption = None,
    *,
    service: Annotated[
        bool, typer.Option("--service", help="With --seeds: exit status 1 also if the service of a run is paging.")
    ] = False,
    allow_code: AllowCodeOption = False,
) -> None:
    """Run a scenario; the last line printed is the run directory."""
    with one_line_errors():
        from emulator.cli.run import run_file

        if seeds is None:
            refuse_without("--service", "--seeds", given=service)
            level, folder = trace or TraceLevel.FULL, runs or Path("runs")
            run_file(scenario, mode, level, seed, script, folder, allow_code=allow_code)
        else:
            refuse_together(
                "--seeds",
                {"--seed": seed, "--script": script, "--mode": mode.value if mode is not TimeMode.SIM else None},
            )
            from emulator.cli.campaign import execute_seeds

            level = trace or TraceLevel.FINDINGS
            execute_seeds(scenario, seeds, level, runs, service=service, allow_code=allow_code)


@app.command()
def campaign(
    file: CampaignArgument,
    campaigns: Annotated[Path, typer.Option("--campaigns", metavar="DIR", help="Directory of all campaigns.")] = Path(
        "campaigns"
    ),
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, max=10_000, help="Runs at the same time; those of the file, or the cores.", show_default=False
        ),
    ] = None,
    engine: EngineOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run once more what crashed or hung.")] = False,
    shrink: Annotated[
        bool, typer.Option("--shrink", help="Shrink the first failure of each kind; see rmqemu shrink.")
    ] = False,
    service: ServiceOption = False,
    to: ToOption = None,
    allow_code: AllowCodeOption = False,
) -> None:
    """Run seeds times variants of a scenario, judge each run, and keep all results in one directory.

    The same command goes on where a campaign was interrupted or killed. The last line printed is the directory.
    """
    with one_line_errors():
        from emulator.cli.campaign import execute_file
        from emulator.cli.judging import Judging

        judging = Judging(engine, master, remote)
        how = {"retry": retry, "shrink": shrink, "service": service, "allow_code": allow_code}
        execute_file(file, campaigns, judging, jobs, to=to, **how)


@app.command()
def shrink(
    subject: Annotated[
        Path,
        typer.Argument(
            metavar="CAMPAIGN | SCENARIO", help="Directory of a campaign, or a scenario file.", show_default=False
        ),
    ],
    case: Annotated[
        str | None,
        typer.Argument(metavar="[VARIANT:SEED]", help="The run of the campaign.", show_default=False),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=LONG_MAX, help="Instead of the scenario's.", show_default=False)
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="V1",
            help="The invariant that must stay broken, any that the run breaks; may be repeated.",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, max=1_000_000, help="Largest number of runs.")] = 300,
    timeout_s: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Wall time of a run; 300 s.", show_default=False)
    ] = None,
    allow_code: AllowCodeOption = False,
) -> None:
    """Find the smallest scenario that fails in the same way, and explain why it fails.

    Faults, durations, nodes, options and time are left out as long as the run breaks the same invariant (or crashes, or
    hangs). The scenario is written to the folder shrunk of the campaign, or here. Ctrl-C keeps the smallest so far.
    """
    with one_line_errors():
        from emulator.cli.shrink import shrink_command

        shrink_command(subject, case, seed, on or (), runs, timeout_s, allow_code=allow_code)


@app.command()
def check(spec: SpecArgument, allow_code: AllowCodeOption = False) -> None:
    """Warn about harmful settings that RocketMQ accepts; the emulator runs them as RocketMQ would.

    SPEC may be a campaign file, too: all its variants are checked. Code that a file names is tried only where it is
    allowed.
    """
    with one_line_errors():
        from emulator.cli.check import check_file

        check_file(spec, allow_code=allow_code)


app.command()(analyze)


app.command()(land)


app.command()(report)


@app.command()
def watch(
    run: RunArgument,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder that keeps how far the run was followed, to go on there.", show_default=False
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="A line for each queue and group, also where many change at once.")
    ] = False,
) -> None:
    """Follow a run that is under way: print a line whenever views diverge, queues have two owners or none, groups lag.

    It begins with the first row of the run, or where the checkpoint ends, and ends with the run. What happens to many
    queues within half a second is one line, with their number and an example; repeats are counted.
    """
    with one_line_errors():
        from emulator.base.extra import require_extra

        require_extra("watch")
        from emulator.cli.watch import watch_run

        watch_run(run, checkpoint, every=every)


@app.command(context_settings={"ignore_unknown_options": True})
def why(
    run: RunArgument,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORDS...]",
            help=f"{FORMS}; without words, what was most severe in the run.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Explain what happened in a run: the chain of causes up to a fault, a timer or an administrator.

    Without words: why the most severe symptoms came, and why invariants were violated.
    """
    with one_line_errors():
        from emulator.analysis.judge import judge_run
        from emulator.trace.run_directory import open_run
        from emulator.why.answer import answer_of_run
        from emulator.why.worst import worst_of_run

        opened = open_run(run)
        lines = answer_of_run(words, opened) if words else worst_of_run(judge_run(opened), opened)
        for line in lines:
            print_line(line)
        if opened.broken_off():
            complain(opened.broken_off())


app.command()(compare)


@app.command()
def verify(path: VerifiedArgument, allow_code: AllowCodeOption = False) -> None:
    """Repeat a run and compare the two traces row by row; or check that all of a campaign belongs to it."""
    with one_line_errors():
        from emulator.cli.verify import verify_command

        raise typer.Exit(verify_command(path, allow_code=allow_code))


@app.command()
def examples(as_json: JsonOption = False) -> None:
    """List the scenarios and campaigns of the package, whose names stand for their files."""
    with one_line_errors():
        from emulator.cli.examples import show_examples

        show_examples(as_json=as_json)


@app.command()
def verbs() -> None:
    """List the verbs of a running cluster, for its prompt, ctl, scripts and notebooks."""
    from emulator.console.verbs import VERBS, help_lines

    for line in help_lines(tuple(VERBS.values())):
        print_line(line)


@app.command()
def options(
    role: Annotated[
        str | None,
        typer.Argument(metavar="[ROLE]", help="broker, consumer, producer, ...; all roles.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the options of a role, with type, unit, default, and what presets and releases set.

    They are the options of scenario files, of variants of campaigns, and of restarts with other options.
    """
    with one_line_errors():
        from emulator.cli.options import show_options

        show_options(role, as_json=as_json)


@app.command()
def fidelity(
    trap: Annotated[
        str | None, typer.Argument(metavar="[TRAP]", help="Id of one trap, such as M7; all.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List RocketMQ's traps, and whether the emulator reproduces them; or describe one, with a test that shows it."""
    with one_line_errors():
        from emulator.cli.fidelity import show_ledger, show_trap

        if trap is None:
            show_ledger(as_json=as_json)
        else:
            show_trap(trap, as_json=as_json)

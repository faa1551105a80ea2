"""Arguments and options that several commands of `rmqemu` have."""

import re
from pathlib import Path
from typing import Annotated

import typer

from emulator.base.errors import UserError
from emulator.dataset.engine import EngineChoice
from emulator.spec.code.permission_of_code import ALLOW_CODE, TRUSTED_FOLDERS
from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.trace.schema import TraceLevel
from nodes.fields import quoted

RunsOption = Annotated[Path, typer.Option("--runs", metavar="DIR", help="Directory of all runs.")]
SCENARIO_HELP = "Scenario file (TOML), or the name of one of the package: rmqemu examples."
SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help=SCENARIO_HELP, show_default=False)]
ScenarioArgument = Annotated[Path, typer.Argument(metavar="SCENARIO", help=SCENARIO_HELP, show_default=False)]
_CAMPAIGN_HELP = "Campaign file (TOML), or the name of one of the package: rmqemu examples."
CampaignArgument = Annotated[Path, typer.Argument(metavar="FILE", help=_CAMPAIGN_HELP, show_default=False)]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a run.", show_default=False)]
VerifiedArgument = Annotated[
    Path, typer.Argument(metavar="RUN|CAMPAIGN", help="Directory of a run or of a campaign.", show_default=False)
]
TraceOption = Annotated[
    TraceLevel | None,
    typer.Option(
        help="full: every row; findings: what is judged, and what failed; counts: faults, processes and numbers.",
        show_default="full; of campaigns, findings",
    ),
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="KEY=VALUE",
        help="A limit of the service verdict for this call, such as lag_s=60; may be repeated.",
        show_default=False,
    ),
]
DATASET_HELP = "Dataset of Parquet files for Spark: a directory, or a URI that begins with file:, s3a: or hdfs:."
LandedPaths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH...", help="Runs, folders of runs, directories of campaigns.", show_default=False),
]
LandToOption = Annotated[str, typer.Option("--to", metavar="DATASET", help=DATASET_HELP, show_default=False)]
ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="DATASET",
        help="Land each run there; see rmqemu land.",
        show_default="on Spark, dataset in the directory of the campaign",
    ),
]
EngineOption = Annotated[
    EngineChoice | None,
    typer.Option(
        help="What executes campaigns and judges runs: tasks of Spark, or this process; auto: Spark for campaigns, "
        "datasets, and two million rows or more. RMQEMU_ENGINE names it, too.",
        show_default="auto",
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Spark's: local[4], spark://HOST:PORT, ...", show_default=False),
]
RemoteOption = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Of a server of Spark Connect: sc://HOST:PORT.", show_default=False),
]
ServiceOption = Annotated[bool, typer.Option("--service", help="Exit status 1 also if the service of a run is paging.")]
AllowCodeOption = Annotated[
    bool,
    typer.Option(
        ALLOW_CODE,
        help=f"Run code that the scenario names: entry points, and modules next to its file. {TRUSTED_FOLDERS} names "
        "folders whose files need no such option.",
    ),
]
VerifyOption = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="Repeat the run in sim without each named cause, and with it alone: is what it did gone?",
    ),
]
RemediesOption = Annotated[
    bool,
    typer.Option(
        "--remedies",
        help="Repeat the run with each option or act that may end what happened: what helps, and its price.",
    ),
]
KindOption = Annotated[
    FileKind | None,
    typer.Option(help="What configuration files are for.", show_default="as their options show"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def require_here(option: str, folder: Path) -> None:
    """Refuse a URI where a folder of this machine is expected: it would become a folder of that name.

    Args:
        option: that names it.
        folder: as it was given; Python has taken its second slash away.

    Raises:
        UserError: it is a URI.
    """
    if _URI.match(str(folder)):
        raise UserError(f"{option} {quoted(str(folder))}: expected a folder of this machine, not a URI")

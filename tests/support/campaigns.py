"""Campaigns of the small scenario, as files."""

from pathlib import Path

import attrs
import pyarrow as pa

from emulator.analysis.arrow_tables import SYMPTOMS
from emulator.analysis.report import RulesVerdict, service_of
from emulator.analysis.run_measures import MEASURES
from emulator.campaign.campaign import Case
from emulator.campaign.results import CaseResult, Outcome
from emulator.spec.model.service_limits import ServiceLimits
from emulator.trace.files import RunFiles
from support.rmqemu_process import write_small

CALM = """
[[variant]]
name = "calm"
leave_out = ["loss-1", "kill-2"]
"""
CAMPAIGN = f"""
[campaign]
name = "small-campaign"
scenario = "small.toml"
seeds = "1-4"
{CALM}"""
CONDITIONS = """
[[condition]]
name = "quiet"

[[condition]]
name = "lossy"

[[condition.fault]]
kind = "loss"
percent = 30
at_s = 2
for_s = 1
"""
FORGETFUL = """
[[variant]]
name = "forgetful"

[[variant.fault]]
id = "disk"
do = "lost-writes brokers"
at_s = 1
for_s = 8

[[variant.fault]]
id = "power"
do = "power-off brokers"
at_s = 6
for_s = 0.5
"""
"""A variant that loses messages with each seed, in runs of `LONGER`."""
SHORT = {"run_for_s = 70": "run_for_s = 5", "at_s = 20": "at_s = 1", "for_s = 10": "for_s = 1", "at_s = 40": "at_s = 3"}
"""Changes of the small scenario: a run takes a tenth of a second."""
LONGER = SHORT | {"run_for_s = 70": "run_for_s = 20"}


def write_campaign(folder, text=CAMPAIGN, small=SHORT, **changes):
    """A campaign file next to the short small scenario; `changes` replaces text of the campaign."""
    write_small(folder, **small)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path = Path(folder) / "campaign.toml"
    path.write_text(text)
    return path


def costless(table):
    """A table of outcomes without what differs from machine to machine and from folder to folder."""
    return table.drop_columns(["cpu_s", "wall_s", "trace", "command"])


def measured_run(variant, seed, *broken, **measured):
    """A run that came to its end; measures that are not named are 0."""
    row = {measure.name: float(measured.get(measure.name, 0)) for measure in MEASURES}
    table = pa.table(
        {**{name: [value] for name, value in row.items()}, "broken": pa.array([broken], pa.list_(pa.string()))}
    )
    return CaseResult(
        case=Case(variant, seed),
        outcome=Outcome.COMPLETE,
        verdict=RulesVerdict.INVALID if broken else RulesVerdict.VALID,
        reasons=tuple(f"{name} is broken" for name in broken),
        findings={"runs": table},
    )


def with_symptoms(case_result, *symptoms):
    """The run with these symptoms, the most severe first, and the service verdict that follows from them."""
    table = SYMPTOMS.arrow(symptoms, {})
    service = service_of(tuple(symptoms), ServiceLimits())
    return attrs.evolve(case_result, service=service, findings={**case_result.findings, SYMPTOMS.name: table})


def write_lines(directory, every):
    """What became of the runs of a campaign, as if they had been run."""
    part = directory.part(RunFiles())
    for case_result in every:
        part.append(case_result)

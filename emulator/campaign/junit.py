"""The results of a campaign as JUnit XML, which continuous integration reads."""

import re
from xml.etree import ElementTree as ET

from emulator.analysis.report import Verdict
from emulator.campaign.dataset import Dataset
from emulator.campaign.measured import verdicts_of
from emulator.campaign.played import Outcome, Played

JUNIT_FILE = "junit.xml"
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


def junit(dataset: Dataset) -> str:
    """A test case for each case: a failure if its run is invalid, an error if it crashed, hung or has no verdict.

    Each run that came to its end has both verdicts and its most severe symptom as `system-out`; the service verdict
    alone is no failure.
    The text of a failure has the reasons and the command that plays the run again; a case that has not been played
    is skipped.
    """
    every = dataset.played()
    suites = ET.Element("testsuites")
    for variant in dataset.directory.variants:
        mine = [played for played in every if played.case.variant == variant]
        kinds = [_kind(played) for played in mine]
        suite = ET.SubElement(
            suites,
            "testsuite",
            name=f"{dataset.directory.name}.{variant}",
            tests=str(len(mine)),
            failures=str(kinds.count("failure")),
            errors=str(kinds.count("error")),
            skipped=str(kinds.count("skipped")),
            time=_seconds(sum(played.wall_s for played in mine)),
        )
        for played, kind in zip(mine, kinds, strict=True):
            _add(suite, dataset, played, kind)
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def _kind(played: Played) -> str:
    """The element that tells of a case: `failure`, `error` or `skipped`; empty for a valid run."""
    if played.outcome is Outcome.MISSING:
        return "skipped"
    if played.verdict is Verdict.UNKNOWN:
        return "error"
    return "" if played.verdict is Verdict.VALID else "failure"


def _add(suite: ET.Element, dataset: Dataset, played: Played, kind: str) -> None:
    case = played.case
    classname = f"{dataset.directory.name}.{case.variant}"
    element = ET.SubElement(
        suite, "testcase", classname=classname, name=f"seed {case.seed}", time=_seconds(played.wall_s)
    )
    if kind:
        first = played.reasons[0] if played.reasons else played.word
        told = ET.SubElement(element, kind, message=_clean(first), type=played.word)
        told.text = _clean("\n".join((*played.reasons, dataset.directory.command(case))))
    if played.service is not None:
        ET.SubElement(element, "system-out").text = _clean(verdicts_of(played))


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"


def _clean(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)

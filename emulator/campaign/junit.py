"""The results of a campaign as JUnit XML, which continuous integration reads."""

import re
from xml.etree import ElementTree as ET

from emulator.analysis.report import RulesVerdict
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.measured import verdicts_of
from emulator.campaign.results import CaseResult, Outcome

JUNIT_FILE = "junit.xml"
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


def junit(dataset: CampaignResults) -> str:
    """A test case for each case: a failure if its run is invalid, an error if it crashed, hung or has no verdict.

    Each run that came to its end has both verdicts and its most severe symptom as `system-out`; the service verdict
    alone is no failure.
    The text of a failure has the reasons and the command that repeats the run; a case that has not been run
    is skipped.
    """
    every = dataset.case_results()
    suites = ET.Element("testsuites")
    for variant in dataset.directory.variants:
        mine = [case_result for case_result in every if case_result.case.variant == variant]
        kinds = [_kind(case_result) for case_result in mine]
        suite = ET.SubElement(
            suites,
            "testsuite",
            name=f"{dataset.directory.name}.{variant}",
            tests=str(len(mine)),
            failures=str(kinds.count("failure")),
            errors=str(kinds.count("error")),
            skipped=str(kinds.count("skipped")),
            time=_seconds(sum(case_result.wall_s for case_result in mine)),
        )
        for case_result, kind in zip(mine, kinds, strict=True):
            _add(suite, dataset, case_result, kind)
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def _kind(case_result: CaseResult) -> str:
    """The element that reports a case: `failure`, `error` or `skipped`; empty for a valid run."""
    if case_result.outcome is Outcome.MISSING:
        return "skipped"
    if case_result.verdict is RulesVerdict.UNKNOWN:
        return "error"
    return "" if case_result.verdict is RulesVerdict.VALID else "failure"


def _add(suite: ET.Element, dataset: CampaignResults, case_result: CaseResult, kind: str) -> None:
    case = case_result.case
    classname = f"{dataset.directory.name}.{case.variant}"
    element = ET.SubElement(
        suite, "testcase", classname=classname, name=f"seed {case.seed}", time=_seconds(case_result.wall_s)
    )
    if kind:
        first = case_result.reasons[0] if case_result.reasons else case_result.word
        reported = ET.SubElement(element, kind, message=_clean(first), type=case_result.word)
        reported.text = _clean("\n".join((*case_result.reasons, dataset.directory.command(case))))
    if case_result.service is not None:
        ET.SubElement(element, "system-out").text = _clean(verdicts_of(case_result))


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"


def _clean(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)

"""Acts of administrators in a healthy cluster: each request is a cause, so that what follows breaks no rule."""

import pytest

from emulator.analysis.judge import broken, judge_run
from emulator.analysis.report import Verdict
from emulator.trace.run_directory import open_run
from emulator.trace.schema import TraceLevel
from nodes.protocol.administration import ADMIN_REQUESTS
from nodes.protocol.codes import RequestCode
from support.admin_requests import EXAMPLES, READY_MS
from support.administrator import an_administrator, run_administered


def administered(example, runs):
    """Rules that a run breaks in which an administrator sends a request, its verdict, and the acts in its trace."""

    async def act(stage):
        await stage.at_ms(READY_MS)
        await example.play(await an_administrator(stage))

    path, trace = run_administered(example.scenario(), runs, act, level=TraceLevel.FINDINGS)
    report = judge_run(open_run(path))
    return report, [row.request for row in trace.select("admin")]


def test_there_is_an_example_of_every_request():
    assert {one.code for one in EXAMPLES} == set(map(RequestCode, ADMIN_REQUESTS))


@pytest.mark.parametrize("example", [pytest.param(one, id=one.code.name) for one in EXAMPLES])
def test_an_act_of_an_administrator_breaks_no_rule(example, tmp_path):
    report, acts = administered(example, tmp_path)

    assert example.code.name in acts
    assert broken(report) == ()
    assert report.verdict is Verdict.VALID

"""Hand-made runs with two consumers, and a small campaign of which one trace was retained."""

from analysis.trace_rows import HandMadeTrace, write_run
from emulator.campaign.campaign import Case, Keep
from emulator.campaign.case import execute_case
from emulator.campaign.directory import UNDER_WAY, claim
from emulator.campaign.file import load_campaign
from emulator.campaign.results import CaseResult, Outcome
from emulator.trace.files import RunFiles
from support.campaigns import write_campaign

END_S = 40
SCENARIO = {
    "scenario": {"name": "two-consumers", "run_for_ms": END_S * 1_000},
    "nameserver": [{"name": "ns-1"}],
    "broker": [{"name": "broker-a"}],
    "topic": [{"name": "t", "queues": 2}],
    "consumer": [{"group": "g", "names": ["a", "b"], "topics": ["t"]}],
}
CLIENT_ID = "127.1.10.1@1#0"
BROKER = "127.1.2.1:10911"
HUNG = Case("baseline", 2)
RETAINED = Case("calm", 1)


def two_consumers():
    """a owns queue 0; b takes it at 10 s; a frame is lost meanwhile, from 8 s to 20 s; a gives the queue up at 25 s."""
    trace = HandMadeTrace()
    for node in "ab":
        trace.at(0).life(node, "started", "g", role="consumer").subscribe(node)
    trace.at(0).life("broker-a", "started", role="broker")
    trace.at(1).believe("a", {"cids": [CLIENT_ID]}, source=BROKER).own("a", "acquired", offset=0)
    trace.at(1).own("b", "acquired", queue_id=1, offset=0)
    trace.at(2).store(0, 1).consume("a", 0)
    trace.at(8).fault("begin", "cut-1", "cut", "a -> broker-a")
    trace.at(10).believe("b", {"cids": []}, source=BROKER).own("b", "acquired", offset=1)
    trace.at(11).consume("b", 0)
    trace.at(20).fault("end", "cut-1", "cut", "a -> broker-a")
    trace.at(25).own("a", "dropped")
    return trace


def frame(trace, sent_s, src, dst, code, event="delivered"):
    """A request that came to its end at the clock of the trace."""
    row = (*trace._next(), round(sent_s * 1e9), event, 1, src, dst, "request", code, -1, 1, "", 0)
    trace.rows["rpc"].append(row)


def write(trace, path, **manifest):
    """A run of `SCENARIO`."""
    return write_run(trace, path, END_S, **{"scenario": SCENARIO, **manifest})


def small_campaign(folder):
    """Two variants times two seeds: the trace of one run was retained, another run hung."""
    campaign = load_campaign(write_campaign(folder, **{'"1-4"': '"1-2"'}))
    directory = claim(folder / "campaign", campaign)
    (directory.path / UNDER_WAY).mkdir(exist_ok=True)
    part = directory.part(RunFiles())
    for case in directory.cases():
        scratch = directory.path / UNDER_WAY / case.name
        scratch.mkdir()
        if case == HUNG:
            part.append(CaseResult(case=case, outcome=Outcome.HUNG, reasons=("it had not ended after 60 s",)))
        else:
            part.append(execute_case(case, directory, Keep.ALL if case == RETAINED else Keep.NONE, scratch))
    return directory.path

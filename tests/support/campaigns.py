"""Campaigns of the small scenario, as files."""

from pathlib import Path

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
    """A campaign file beside the short small scenario; `changes` replaces text of the campaign."""
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

"""A disk that fills up while parts are written: what was whole is retained, and running on gives the same results."""

import errno
import os
from functools import partial

import pytest

from emulator.campaign.campaign import Keep
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import CampaignError
from emulator.campaign.execution import execute_campaign
from emulator.campaign.file import load_campaign
from emulator.campaign.on_this_machine import execute_here
from emulator.trace.files import RunFiles
from support.campaigns import costless, write_campaign


class FullDisk(RunFiles):
    """Takes some appends, and half of the next one."""

    def __init__(self, appends):
        self._appends = appends

    def append(self, path, content):
        self._appends -= 1
        if self._appends < 0:
            super().append(path, content[: len(content) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        super().append(path, content)


def execute(campaign, folder, files):
    engine = partial(execute_here, jobs=2, files=files)
    return execute_campaign(campaign, folder, engine, lambda _every: lambda _executed: None, retry=False)


@pytest.mark.parametrize("appends", [pytest.param(0, marks=pytest.mark.slow), 3])
def test_what_was_whole_is_retained_and_the_rest_is_run_when_there_is_room(tmp_path, appends):
    campaign = load_campaign(write_campaign(tmp_path, **{'"1-4"': '"1-3"\nkeep = "none"'}))
    assert campaign.keep is Keep.NONE

    with pytest.raises(CampaignError) as full:
        execute(campaign, tmp_path / "full", FullDisk(appends))
    text = f": No space left on device; {appends} of 6 runs are in {tmp_path}/full/{campaign.name}; when that is"
    assert text in str(full.value)
    rest = execute(campaign, tmp_path / "full", RunFiles())
    assert costless(rest.outcomes()) == costless(execute(campaign, tmp_path / "whole", RunFiles()).outcomes())
    assert CampaignResults(tmp_path / "full" / campaign.name).damages == ()

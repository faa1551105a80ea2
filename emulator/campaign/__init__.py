"""Campaigns: seeds times variants of one scenario, executed, judged and kept as one directory.

May import `run` and what is below it.
"""

from emulator.campaign.campaign import Campaign, Case, Keep, Variant
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import CampaignError

__all__ = ["Campaign", "CampaignError", "CampaignResults", "Case", "Keep", "Variant"]

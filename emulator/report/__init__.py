"""Reports as pages: everything about a run or a campaign in one HTML file that works offline and can be mailed.

May import `campaign` and what is below it.
"""

from emulator.report.campaign_page import campaign_page
from emulator.report.run_page import run_page

__all__ = ["campaign_page", "run_page"]

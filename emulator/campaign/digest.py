"""The digest of a campaign: what decides the results of its runs, in 32 digits that all that belongs to it carries."""

import json
from collections.abc import Mapping
from typing import Any

from emulator.trace.seals import checksum

DIGEST = "digest"
"""Key of the digest in the head of a campaign."""
_DECIDES = ("campaign_version", "schema_version", "trace", "versions", "variants", "conditions", "secrets", "code")
"""Keys of the head. Seeds are added to a campaign, so they are none of these; each result names its seed."""
_SHOWN = 12


def campaign_digest(head: Mapping[str, Any]) -> str:
    """The digest of the campaign of a head."""
    return checksum(json.dumps([head.get(key) for key in _DECIDES], sort_keys=True).encode())


def origin(found: str, expected: str) -> str:
    """Where a thing of another campaign comes from: `of the campaign 1f..., expected 2e...`."""
    whose = f"of the campaign {found[:_SHOWN]}" if found else "of no campaign"
    wanted = f"the campaign {expected[:_SHOWN]}" if expected else "no digest of a campaign, as campaign.json has none"
    return f"{whose}, expected {wanted}"

"""The bits of a pull's `sysFlag`."""

from typing import Final


class PullSysFlag:
    """Plain integers, as `CommandFlag`, for the same reason.

    Mirrors:
        `org.apache.rocketmq.common.sysflag.PullSysFlag`.
    """

    COMMIT_OFFSET: Final = 1
    SUSPEND: Final = 2
    SUBSCRIPTION: Final = 4
    CLASS_FILTER: Final = 8
    LITE_PULL: Final = 16

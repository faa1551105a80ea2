"""The bits of the `sysFlag` of pulls and of messages."""

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


class MessageSysFlag:
    """Plain integers, as `CommandFlag`, for the same reason.

    Mirrors:
        `org.apache.rocketmq.common.sysflag.MessageSysFlag`.
    """

    COMPRESSED_FLAG: Final = 0x1
    TRANSACTION_NOT_TYPE: Final = 0
    TRANSACTION_PREPARED_TYPE: Final = 0x4
    TRANSACTION_COMMIT_TYPE: Final = 0x8
    TRANSACTION_ROLLBACK_TYPE: Final = 0xC

    @staticmethod
    def transaction_value(flag: int) -> int:
        """The transaction bits of a flag."""
        return flag & MessageSysFlag.TRANSACTION_ROLLBACK_TYPE

    @staticmethod
    def reset_transaction_value(flag: int, kind: int) -> int:
        """The flag with other transaction bits."""
        return flag & ~MessageSysFlag.TRANSACTION_ROLLBACK_TYPE | kind

"""The bits of a message's `sysFlag`."""

from typing import Final


class MessageSysFlag:
    """Plain integers, as `CommandFlag`, for the same reason.

    Mirrors:
        `org.apache.rocketmq.common.sysflag.MessageSysFlag`.
    """

    TRANSACTION_NOT_TYPE: Final = 0
    TRANSACTION_PREPARED_TYPE: Final = 0x4
    TRANSACTION_COMMIT_TYPE: Final = 0x8
    TRANSACTION_ROLLBACK_TYPE: Final = 0xC

    @staticmethod
    def transaction_value(flag: int) -> int:
        """What a flag says of a transaction."""
        return flag & MessageSysFlag.TRANSACTION_ROLLBACK_TYPE

    @staticmethod
    def reset_transaction_value(flag: int, kind: int) -> int:
        """The flag with another word on the transaction."""
        return flag & ~MessageSysFlag.TRANSACTION_ROLLBACK_TYPE | kind

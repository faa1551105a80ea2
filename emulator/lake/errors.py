"""What is wrong with a dataset, or with the place where it lies."""

from emulator.base.errors import UserError


class DatasetError(UserError):
    """A dataset cannot be read or written; the text is one line: which one, why, and what to do."""


class NoDatasetError(DatasetError):
    """There is no dataset."""


class DamagedDatasetError(DatasetError):
    """Files of a dataset are missing or were changed; `lines` names each."""

    def __init__(self, damages: tuple[str, ...]) -> None:
        super().__init__("; ".join(damages))
        self._damages = damages

    @property
    def lines(self) -> tuple[str, ...]:
        """One line per file."""
        return self._damages

"""The buffers into which a broker appends messages before they reach the page cache."""

from enum import Enum, auto

_PAGE_BYTES = 4_096


class Allocation(Enum):
    """What holds the messages of a file of the log until they are committed."""

    BUFFER = auto()
    """A buffer of the pool: an append waits for no disk."""
    PAGE_CACHE = auto()
    """The page cache: the pool was empty when the file was made, or the file is older than the process."""
    NONE = auto()
    """There is no file: it was refused a buffer (`CREATE_MAPPED_FILE_FAILED`)."""


class TransientStorePool:
    """Lends a buffer to each new file of the log, and gets it back when the whole file is committed.

    The first message of a file makes the next file, too. So two buffers are always lent, and a pool of two or less is
    empty from the first message on: the broker refuses all further sends, and no file ever becomes full.

    Args:
        size: buffers.
        file_bytes: size of a buffer, and of a file.
        fast_fail: make no file without a buffer.

    Mirrors:
        `org.apache.rocketmq.store.TransientStorePool`, `AllocateMappedFileService#putRequestAndReturnMappedFile`,
        `DefaultMappedFile#commit`, `DefaultMessageStore#isTransientStorePoolDeficient`.
    """

    def __init__(self, size: int, file_bytes: int, *, fast_fail: bool) -> None:
        self._file_bytes = file_bytes
        self._fast_fail = fast_fail
        self.available = size
        """Buffers that are not lent."""
        self.committed_offset = 0
        """What is before this commit log offset is in the page cache."""
        self._files: dict[int, Allocation] = {}
        """Mapping number of a file that was made and is not committed -> what holds its messages."""
        self._current: int | None = None
        """Number of the file that is written."""

    @property
    def is_deficient(self) -> bool:
        """Whether the pool is empty, so that sends are refused."""
        return self.available == 0

    def allocate(self, offset: int) -> Allocation:
        """What takes the message that begins at a commit log offset; the first one of a file makes two files."""
        number = offset // self._file_bytes
        if self._current is None:
            self.committed_offset = offset
            if offset % self._file_bytes:
                self._current, self._files[number] = number, Allocation.PAGE_CACHE
        if number != self._current and self._make_files(number):
            self._current = number
        return self._files.get(number, Allocation.NONE)

    def _make_files(self, number: int) -> bool:
        """Make a file, unless that was done before, and the next one; returns whether the first one is there."""
        places = self.available if self._fast_fail else 2
        if number not in self._files:
            if not places:
                return False
            self._make_file(number)
            places -= 1
        if places and number + 1 not in self._files:
            self._make_file(number + 1)
        return True

    def _make_file(self, number: int) -> None:
        self._files[number] = Allocation.BUFFER if self.available else Allocation.PAGE_CACHE
        self.available -= 1 if self.available else 0

    def committable_offset(self, end: int, least_pages: int) -> int:
        """How far a commit goes that begins now: not beyond the file that it is in.

        Args:
            end: of the log.
            least_pages: pages of 4 KiB that make a commit worth while; a file that is full is committed in any case.
        """
        file_end = (self.committed_offset // self._file_bytes + 1) * self._file_bytes
        if end >= file_end:
            return file_end
        pages = end // _PAGE_BYTES - self.committed_offset // _PAGE_BYTES
        return end if pages >= least_pages else self.committed_offset

    def commit(self, offset: int) -> None:
        """What is before an offset is in the page cache; a file that is committed as a whole returns its buffer."""
        self.committed_offset = offset
        for number in [number for number in self._files if (number + 1) * self._file_bytes <= offset]:
            self.available += self._files.pop(number) is Allocation.BUFFER

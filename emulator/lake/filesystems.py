"""Where a dataset lies: its URI for Spark, and the file system and path of pyarrow for the same place.

| written | Spark reads | pyarrow |
|---|---|---|
| a path, `file:` | `file:///path` | the local file system |
| `s3:`, `s3a:` | `s3a://bucket/path` | S3; endpoint, region and keys from the usual variables of the environment |
| `hdfs:` | `hdfs://host:port/path` | Hadoop's client, which must be installed |

The variables of S3 are those of its other clients: `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`,
`AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION` or `AWS_DEFAULT_REGION`.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import attrs
import pyarrow as pa
from pyarrow import fs

from emulator.base.files import (
    LISTING_BYTES_MAX,
    UnexpectedFileError,
    open_to_write,
    read_bytes,
    require_own_folder,
    require_place,
)
from emulator.lake.errors import DatasetError
from nodes.fields import quoted

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)|(file):")
_PATTERN = re.compile(r"[*?\[\]{}\\]")
"""Characters by which Spark takes a path for a pattern."""
_ERRNO = re.compile(r"\[errno \d+\] ([^;.\n]+)")
"""The reason in the texts of pyarrow about local files."""
_EXPECTED = "expected a path, or a URI that begins with file:, hdfs:, s3: or s3a:"
_CONNECT_S, _ANSWER_S = 5, 30
_S3_REASONS = (
    (
        ("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "INVALID_CLIENT_TOKEN_ID", "SIGNATURE_DOES_NOT_MATCH", "status 403"),
        "the object store refuses the keys of AWS_ACCESS_KEY_ID: they are wrong, or have no right there",
    ),
    (("NO_SUCH_BUCKET",), "there is no such bucket"),
    (("NETWORK_CONNECTION", "curlCode"), "the object store does not answer; AWS_ENDPOINT_URL may name another one"),
)
"""(what pyarrow's text has, what is wrong)."""


@attrs.frozen
class Location:
    """A directory in which a dataset lies, or may lie."""

    uri: str
    """For Spark, and for people; it ends without a slash."""
    filesystem: Any
    """That of pyarrow."""
    path: str
    """Of the directory in `filesystem`."""

    def at(self, name: str) -> str:
        """The path of a file of the directory in `filesystem`."""
        return f"{self.path}/{name}"

    def uri_of(self, name: str) -> str:
        """The URI of a file of the directory."""
        return f"{self.uri}/{name}"

    @property
    def local(self) -> Path | None:
        """The directory on this machine; None: it is elsewhere."""
        return Path(self.path) if isinstance(self.filesystem, fs.LocalFileSystem) else None

    @property
    def puts_whole_files(self) -> bool:
        """Whether a file appears as a whole when it is closed; elsewhere it is renamed into place."""
        return isinstance(self.filesystem, fs.S3FileSystem)

    def sync(self, name: str) -> None:
        """Make sure that a file of the directory survives a power failure of this machine."""
        if self.local is None:
            return
        descriptor = os.open(self.local / name, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def require_own(self, name: str) -> None:
        """Refuse the name of a file that lies elsewhere: a folder on the way to it is a link, or it names another one.

        Raises:
            UnexpectedFileError: it does.
        """
        parts = PurePosixPath(name).parts
        if ".." in parts or name.startswith("/"):
            raise UnexpectedFileError(errno.EINVAL, "expected the name of a file in the directory", self.at(name))
        if self.local is not None:
            for end in range(1, len(parts)):
                require_own_folder(self.local.joinpath(*parts[:end]))

    def create(self, name: str) -> Any:
        """A stream that writes a new file of the directory, with the folders that it needs.

        Raises:
            OSError: it cannot be made; on this machine also: it is there, or would lie elsewhere.
        """
        self.require_own(name)
        if self.local is None:
            return self.filesystem.open_output_stream(self.at(name))
        path = self.local / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.fdopen(open_to_write(path, os.O_CREAT | os.O_EXCL), "wb")

    def remove(self, name: str) -> None:
        """Remove a file of the directory; a link goes, what it leads to stays.

        Raises:
            OSError: it cannot be removed; on this machine also: it lies elsewhere.
        """
        self.require_own(name)
        if self.local is not None:
            (self.local / name).unlink()
        else:
            self.filesystem.delete_file(self.at(name))

    def listing(self, name: str = "", *, recursive: bool = False) -> list[fs.FileInfo]:
        """What a directory of the directory holds; nothing if it is not there.

        On this machine a link has the type `Unknown`, and a link to a folder is refused.

        Raises:
            OSError: it cannot be listed.
        """
        if self.local is not None:
            return list(_listed(self.local / name, is_inside=bool(name), recursive=recursive))
        path = self.at(name) if name else self.path
        selector = fs.FileSelector(path, allow_not_found=True, recursive=recursive)
        try:
            found: list[fs.FileInfo] = self.filesystem.get_file_info(selector)
        except FileNotFoundError:  # pyarrow tried to list it, then looked whether it is there: made in between
            found = self.filesystem.get_file_info(selector)
        return found

    def read(self, name: str) -> bytes:
        """The content of a document of the directory.

        Raises:
            OSError: it cannot be read; on this machine also: it is no regular file, or is too large.
        """
        if self.local is not None:
            return read_bytes(self.local / name, LISTING_BYTES_MAX)
        with self.filesystem.open_input_stream(self.at(name)) as stream:
            content: bytes = stream.read()
        return content

    def put(self, name: str, content: bytes) -> None:
        """Write or replace a file; readers see the one before or the new one.

        Raises:
            OSError: it cannot be written.
        """
        hidden = name if self.puts_whole_files else f".{name}.tmp"
        if self.local is not None:
            require_place(self.local / name)
            require_place(self.local / hidden)
        with self.filesystem.open_output_stream(self.at(hidden)) as stream:
            stream.write(content)
        if hidden != name:
            self.sync(hidden)
            self.filesystem.move(self.at(hidden), self.at(name))

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what a file system raises inside the `with` block into a `DatasetError` of one line."""
        try:
            yield
        except UnexpectedFileError as error:
            raise DatasetError(f"file://{error.filename}: {error.strerror}") from error
        except (OSError, pa.ArrowException) as error:
            raise DatasetError(f"{self.uri}: {_reason(error)}") from error


def _listed(folder: Path, *, is_inside: bool, recursive: bool) -> Iterator[fs.FileInfo]:
    if is_inside:
        require_own_folder(folder)
    try:
        found = sorted(folder.iterdir())
    except FileNotFoundError:
        return
    for path in found:
        try:
            status = path.lstat()
        except FileNotFoundError:  # removed meanwhile
            continue
        if stat.S_ISDIR(status.st_mode) or (recursive and path.is_dir()):
            yield fs.FileInfo(str(path), fs.FileType.Directory)
            if recursive:
                yield from _listed(path, is_inside=True, recursive=True)
        elif stat.S_ISREG(status.st_mode):
            yield fs.FileInfo(str(path), fs.FileType.File, mtime=status.st_mtime, size=status.st_size)
        else:
            yield fs.FileInfo(str(path), fs.FileType.Unknown)


def located(uri: str | Path) -> Location:
    """The place that a URI or a path names; nothing is read.

    Raises:
        DatasetError: it names none, or the client of its file system is missing.
    """
    text = str(uri)
    match = _SCHEME.match(text)
    scheme = (match[1] or match[2]).lower() if match else ""
    if _PATTERN.search(text) or "\0" in text:
        raise DatasetError(f"{quoted(text)}: expected a dataset without * ? [ ] {{ }} \\ in its name")
    match scheme:
        case "" | "file" if text:
            path = re.sub(r"^file:(//)?", "", text, flags=re.IGNORECASE) if scheme else text
            absolute = str(Path(path).expanduser().absolute()).rstrip("/")
            return Location(f"file://{absolute}", fs.LocalFileSystem(), absolute)
        case "s3" | "s3a":
            bucket, path = urlsplit(text).netloc, urlsplit(text).path.strip("/")
            if "@" in bucket:
                where = "expected no keys in the URI: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY have them"
                raise DatasetError(f"{scheme}://***@{bucket.rpartition('@')[2]}/{path}: {where}")
            if not bucket or not path:
                raise DatasetError(f"{quoted(text)}: expected s3a://BUCKET/PATH")
            return Location(f"s3a://{bucket}/{path}", _s3(), f"{bucket}/{path}")
        case "hdfs":
            return _hdfs(text.rstrip("/"))
        case _:
            raise DatasetError(f"{quoted(text)}: {_EXPECTED}")


def _s3() -> Any:
    environment = os.environ
    endpoint = urlsplit(environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or "")
    options: dict[str, Any] = {"connect_timeout": _CONNECT_S, "request_timeout": _ANSWER_S}
    if endpoint.netloc:
        options |= {"endpoint_override": endpoint.netloc, "scheme": endpoint.scheme}
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if region or endpoint.netloc:
        options["region"] = region or "us-east-1"
    return fs.S3FileSystem(**options)


def _hdfs(uri: str) -> Location:
    try:
        filesystem, path = fs.FileSystem.from_uri(uri)
    except (OSError, pa.ArrowException) as error:
        needs = "hdfs: needs Hadoop's client: JAVA_HOME, HADOOP_HOME and CLASSPATH name it"
        raise DatasetError(f"{uri}: {needs}: {_reason(error)}") from error
    return Location(uri, filesystem, path.rstrip("/"))


def _reason(error: Exception) -> str:
    """Why a file system failed, in a few words."""
    text = str(error)
    if "AWS Error" in text:
        for signs, reason in _S3_REASONS:
            if any(sign in text for sign in signs):
                return reason
    if match := _ERRNO.search(text):
        return match[1]
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return text.splitlines()[0] if text else type(error).__name__

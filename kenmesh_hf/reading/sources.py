"""Where citations come from: files, folders, archives and standard input, as UTF-8 blocks of bytes."""

import bz2
import codecs
import io
import itertools
import lzma
import re
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from ..errors import InputError
from .records import ReadReport

BLOCK = 1 << 20
INPUT = 1 << 17
LARGEST_RECORD = 64 << 20
PUBMED_NAME = re.compile(r"pubmed\d\dn\d+")
COMPANIONS = (".md5", ".sha256", ".html", ".dtd", "-wal", "-shm")
DECLARED = re.compile(rb"""\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)""")
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Source:
    """One stream of citations with a name for messages and the report that damage goes to.

    A file can be read again for a second pass; standard input and archive members can't until `keep` has
    copied them to a temporary file.
    """

    def __init__(
        self,
        name: str,
        opener: Callable[[], IO[bytes]],
        report: ReadReport,
        reopens: bool = True,
        path: Path | None = None,
    ):
        self.name, self.path = name, path
        self.report = report
        self._opener = opener
        self._reopens = reopens
        self._once: Iterator[bytes] = iter(())
        self._first: bytes | None = None

    def head(self) -> bytes:
        """Give the first block, decompressed and as UTF-8; empty when there is nothing."""
        return next(transcode(iter((self.raw_head(),)), self.encoding()))

    def raw_head(self) -> bytes:
        """Give the first block decompressed."""
        if self._first is None:
            # A file is opened again later, and its damage told then.
            blocks = self._open(quiet=self._reopens)
            self._first = next(blocks, b"")
            if self._reopens:
                blocks.close()
            else:
                self._once = blocks
        return self._first

    def encoding(self) -> str:
        """Tell the encoding from the first block."""
        return encoding_of(self.raw_head(), self.name)

    def raw(self, quiet: bool = False) -> Iterator[bytes]:
        """Give all blocks decompressed; `quiet` leaves damage out of the report, for a first pass."""
        if self._reopens:
            yield from self._open(quiet)
            return
        yield self.raw_head()
        yield from self._once

    def blocks(self, quiet: bool = False) -> Iterator[bytes]:
        """Give all blocks decompressed and as UTF-8 without a byte order mark."""
        return transcode(self.raw(quiet), self.encoding())

    def keep(self) -> None:
        """Make a second pass possible."""
        if self._reopens:
            return
        copy = tempfile.TemporaryFile()
        for block in self.raw():
            copy.write(block)
        copy.flush()

        def reopen() -> IO[bytes]:
            copy.seek(0)
            return open(copy.fileno(), "rb", closefd=False)

        self._opener, self._reopens = reopen, True

    def _open(self, quiet: bool) -> Generator[bytes, None, None]:
        file = self._opener()
        try:
            yield from decompress(file, self.name, ReadReport() if quiet else self.report)
        finally:
            if self._reopens:
                file.close()


def open_sources(
    paths: Iterable[str | Path], report: ReadReport, newest_first: bool = True
) -> Iterator[Source]:
    """Give every stream behind the paths: a file, "-", all files of a folder, all members of a tar archive.

    Files come as given, those of a folder by name.

    Args:
        paths: The files, folders and archives.
        report: Where damage goes.
        newest_first: Give NLM's numbered PubMed files before all others, the newest of them foremost, so
            that a reader which keeps the first record of each PMID keeps the newest.

    Raises:
        InputError: A path does not exist or may not be read.
    """
    for path in list_files(paths, newest_first):
        if str(path) == "-":
            source = Source("standard input", lambda: sys.stdin.buffer, report, reopens=False)
        else:
            opener = lambda path=path: _open(path)  # noqa: E731
            source = Source(str(path), opener, report, path=Path(path))
        if source.raw_head()[257:262] == b"ustar":
            yield from _members(source)
        else:
            yield source


def list_files(paths: Iterable[str | Path], newest_first: bool = True) -> list[str | Path]:
    """All files behind paths; those of a folder by name, without hidden ones and companions (checksums).

    Args:
        paths: Files, folders and "-".
        newest_first: Put NLM's numbered PubMed files before all others, the newest of them foremost.
    """
    files: list[str | Path] = []
    for path in paths:
        folder = Path(path)
        if str(path) == "-" or not folder.is_dir():
            files.append(path)
            continue
        found = sorted(item for item in folder.rglob("*") if item.is_file())
        files += [file for file in found if is_citation_file(file)]
    if not newest_first:
        return files
    numbered = [path for path in files if PUBMED_NAME.match(Path(path).name)]
    numbered.sort(key=lambda path: Path(path).name, reverse=True)
    return numbered + [path for path in files if path not in set(numbered)]


def is_citation_file(path: str | Path) -> bool:
    """Whether a file of a folder is meant: not a hidden one, and not a companion such as a checksum."""
    name = PurePosixPath(path).name
    return not name.startswith(".") and not name.endswith(COMPANIONS)


def _open(path: str | Path) -> IO[bytes]:
    try:
        return open(path, "rb")
    except OSError as error:
        raise InputError(
            f"Cannot read {path}: {error.strerror}. Check the path and its permissions."
        ) from error


def _members(archive: Source) -> Iterator[Source]:
    """Give the files of a tar archive one after the other; nothing is ever written under their names."""
    report = archive.report
    stream = io.BufferedReader(_BlockReader(archive.raw()), BLOCK)
    try:
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                where = f"{archive.name}: {member.name}"
                parts = PurePosixPath(member.name)
                if parts.is_absolute() or ".." in parts.parts:
                    report.skip("unsafe file name in an archive", where)
                elif member.isfile() and not parts.name.startswith("."):
                    content = cast(IO[bytes], tar.extractfile(member))
                    yield Source(where, lambda content=content: content, report, reopens=False)  # type: ignore[misc]
                elif not member.isdir():
                    report.skip("not a file (a link or device) in an archive", where)
    except (tarfile.TarError, EOFError) as error:
        report.skip(f"archive cut off or damaged ({error})", archive.name)


class _BlockReader(io.RawIOBase):
    """Blocks of bytes as the file object that tarfile wants."""

    def __init__(self, blocks: Iterator[bytes]):
        self._blocks = blocks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def, override]
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def decompress(file: IO[bytes], name: str, report: ReadReport) -> Iterator[bytes]:
    """Give a file's blocks; gzip, bzip2 and xz are known by their first bytes.

    What precedes damage is given out, then the damage is reported and the stream ends.
    """
    done = 0
    try:
        for block in _decompressed(file):
            done += len(block)
            yield block
    except (EOFError, OSError, zlib.error, lzma.LZMAError, tarfile.ReadError) as error:
        report.skip("compressed file cut off or damaged", f"{name}, after {done:,} bytes ({error})")


def _decompressed(file: IO[bytes]) -> Iterator[bytes]:
    first = file.read(INPUT)
    if first.startswith(b"\x1f\x8b"):
        yield from _gunzip(file, first)
        return
    blocks = itertools.chain([first], iter(lambda: file.read(INPUT), b""))
    for magic, kind in ((b"BZh", bz2.BZ2File), (b"\xfd7zXZ\x00", lzma.LZMAFile)):
        if first.startswith(magic):
            packed = kind(cast(IO[bytes], io.BufferedReader(_BlockReader(blocks))))
            yield from iter(lambda: packed.read(BLOCK), b"")  # noqa: B023 (used up before the next turn)
            return
    yield from blocks


def _gunzip(file: IO[bytes], data: bytes) -> Iterator[bytes]:
    # The gzip module throws away the last block of a file that is cut off; zlib itself gives every byte.
    while data:
        inflater = zlib.decompressobj(31)
        while not inflater.eof:
            if not data:
                data = file.read(INPUT)
                if not data:
                    yield inflater.flush()
                    raise EOFError("it ends too early")
            yield inflater.decompress(data, BLOCK)
            data = inflater.unconsumed_tail
        data = (inflater.unused_data + file.read(INPUT)).lstrip(b"\0")


def encoding_of(head: bytes, name: str) -> str:
    """Tell the encoding from a byte order mark, the pattern of zero bytes, or the XML declaration.

    Raises:
        InputError: The XML declaration names an encoding that Python does not know.
    """
    for mark, encoding in MARKS:
        if head.startswith(mark):
            return encoding
    if head[:2].count(0) == 1:
        return "utf-16-be" if head[0] == 0 else "utf-16-le"
    declared = DECLARED.match(head)
    encoding = declared[1].decode().lower() if declared else "utf-8"
    try:
        b"x".decode(encoding, "replace")
    except LookupError:
        raise InputError(f"{name}: unknown encoding {encoding!r}. Convert the file to UTF-8.") from None
    # A declaration that could be read byte by byte proves that UTF-16 or UTF-32 is a false claim.
    return "utf-8" if encoding == "us-ascii" or encoding.startswith(("utf-16", "utf-32")) else encoding


def transcode(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Turn blocks into UTF-8; blocks that claim to be UTF-8 pass as they are, except for the mark."""
    if encoding == "utf-8":
        yield next(blocks, b"").removeprefix(codecs.BOM_UTF8)
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    first = True
    for block in blocks:
        text = decoder.decode(block)
        yield (text.removeprefix("\ufeff") if first else text).encode("utf-8", "replace")
        first = first and not text
    yield decoder.decode(b"", True).encode("utf-8", "replace")


def lines(source: Source) -> Iterator[tuple[int, str]]:
    """Give numbered lines with their ends; one that isn't UTF-8 is read as Windows-1252 and noted."""
    rest = b""
    number = 0
    for block in source.blocks():
        whole = (rest + block).splitlines(keepends=True)
        # A carriage return at the very end may be the first half of a line end.
        rest = whole.pop() if whole and not whole[-1].endswith(b"\n") else b""
        for line in whole:
            number += 1
            yield number, decode(line, source, f"line {number:,}")
        if len(rest) > LARGEST_RECORD:
            raise InputError(f"{source.name}, line {number + 1:,}: longer than {LARGEST_RECORD:,} bytes")
    if rest:
        yield number + 1, decode(rest, source, f"line {number + 1:,}")


def decode(data: bytes, source: Source, place: str) -> str:
    """Read UTF-8, or Windows-1252 (where the bytes allow nothing else) with a note in the report."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        source.report.note("not UTF-8, read as Windows-1252", f"{source.name}, {place}")
        return data.decode("cp1252", "replace")

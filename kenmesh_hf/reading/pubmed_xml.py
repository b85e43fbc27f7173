"""PubMed XML: baseline, update and efetch files, read in constant memory."""

import re
from collections.abc import Iterator
from xml.etree.ElementTree import fromstring, tostring

from .pubmed_fields import PMID, article_of, version_of
from .records import Article, PmidSet
from .sources import Source, decode
from .xml_records import ExpatError, XmlRecord, well_formed, xml_records

TAGS = {
    "PubmedArticleSet": (b"<PubmedArticle>", b"</PubmedArticle>"),
    "PubmedArticle": (b"<PubmedArticle>", b"</PubmedArticle>"),
    "MedlineCitationSet": (b"<MedlineCitation ", b"</MedlineCitation>"),
    "MedlineCitation": (b"<MedlineCitation ", b"</MedlineCitation>"),
}
DELETED = re.compile(rb"<DeleteCitation>(.*?)(?:</DeleteCitation>|\Z)", re.DOTALL)
BOUNDARY = re.compile(
    rb"<\?xml.*?\?>|<!--.*?-->|<!DOCTYPE[^>]*>|</?(?:PubmedArticle|MedlineCitation)Set\b[^>]*>", re.DOTALL
)


def read_pubmed_xml(source: Source, root: str, seen: PmidSet | None) -> Iterator[Article]:
    """Read one PubMed file.

    A light first pass over the PMIDs finds the few that occur in several versions (the highest version wins,
    among equals the last) and those that the file deletes, so no article has to be held back.

    Args:
        source: The stream; it is copied to a temporary file if it can be read only once.
        root: Name of its root element.
        seen: PMIDs found in newer files, left out here; this file's are added. None reads every version.
    """
    opening, closing = TAGS[root]
    versions = _Versions()
    if seen is not None:
        source.keep()
        for record in xml_records(source, opening, closing, quiet=True):
            versions.look_at(record)
    for record in xml_records(source, opening, closing):
        if not record.data or not (record.gap == b"" or record.gap.isspace()):
            _read_gap(record, source, root)
        article = _read_record(record, source, opening) if record.data else None
        if article and (seen is None or versions.keeps(article, record, source, seen)):
            yield article
    if seen is not None:
        for pmid in versions.deleted:
            seen.add(pmid)


class _Versions:
    """Which record of each PMID is the newest in one file; remembers only the PMIDs that are special."""

    def __init__(self) -> None:
        self.deleted: set[str] = set()
        self._met = PmidSet()
        self._newest: dict[str, tuple[int, int]] = {}

    def look_at(self, record: XmlRecord) -> None:
        if b"<DeleteCitation>" in record.gap:
            self.deleted.update(deleted_pmids(record.gap))
        found = PMID.search(record.data)
        if not found:
            return
        pmid, version = found[2].decode(), version_of(found[1])
        known = self._newest.get(pmid)
        if known or version > 1 or pmid in self._met:
            self._newest[pmid] = max(known or (0, 0), (version, record.number))
        self._met.add(pmid)

    def keeps(self, article: Article, record: XmlRecord, source: Source, seen: PmidSet) -> bool:
        pmid = article.pmid or ""
        version, number = self._newest.get(pmid, (article.version, record.number))
        if number == record.number and pmid not in self.deleted and pmid not in seen:
            seen.add(pmid)
            return True
        where = f"{record.where(source)}: PMID {pmid}"
        if number != record.number and version == article.version:
            source.report.skip("duplicate PMID", where)
        elif number != record.number:
            source.report.note("older version of a PMID", where)
        elif pmid in self.deleted:
            source.report.note("deleted by NLM", where)
        else:
            source.report.note("replaced or deleted by a newer file", where)
        return False


def deleted_pmids(gap: bytes) -> list[str]:
    """List the PMIDs of a DeleteCitation element."""
    return [found[2].decode() for part in DELETED.findall(gap) for found in PMID.finditer(part)]


def _read_gap(record: XmlRecord, source: Source, root: str) -> None:
    """Account for what stands between two records: deletions, books, and damage."""
    report, where = source.report, record.where(source)
    for pmid in deleted_pmids(record.gap):
        report.deleted.add(pmid)
    rest = DELETED.sub(b"", record.gap)
    if b"<PubmedBookArticle>" in rest:
        report.note("book, not an article", where)
    elif TAGS[root][0] in rest:
        report.skip("record cut off", where)
    elif not record.data and root.endswith("Set") and f"</{root}>".encode() not in rest:
        report.skip("file cut off (its last tag is missing)", where)
    elif record.number > 1 and BOUNDARY.sub(b"", rest).strip():
        report.skip("something unknown between records", where)


def _read_record(record: XmlRecord, source: Source, opening: bytes) -> Article | None:
    data = record.data
    try:
        data = _checked(data, record, source)
    except ExpatError as error:
        source.report.skip("broken XML", f"{record.where(source)} ({error})")
        # A record whose end is missing swallows the next one, which may be whole.
        inner = data.rfind(opening)
        if inner <= 0:
            return None
        try:
            data = _checked(data[inner:], record, source)
        except ExpatError:
            return None
    article = article_of(data)
    if article is None:
        source.report.skip("no PMID", record.where(source))
    return article


def _checked(data: bytes, record: XmlRecord, source: Source) -> bytes:
    """Give a well-formed record that can be searched; one with comments, CDATA or odd quotes is rewritten."""
    try:
        plain = well_formed(data)
    except ExpatError:
        mended = decode(data, source, f"record {record.number:,}").encode()
        if mended == data:
            raise
        data, plain = mended, well_formed(mended)
    return data if plain and b"='" not in data else tostring(fromstring(data))

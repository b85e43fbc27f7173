"""The tables of a desk, their version, and how a desk of an earlier version becomes one of this."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from ..errors import InputError, MismatchError

# "KMsH": what tells a desk from other SQLite files.
APPLICATION = 0x4B4D7348
# Seconds that a connection waits for another one, maybe of another process, to end its transaction.
PATIENCE = 30.0

_TABLES = """
CREATE TABLE clock (now INTEGER NOT NULL);
INSERT INTO clock VALUES (0);

-- No number of a collection or an article is given twice: what is still on its way to one that was removed,
-- a tag or a decision, must not come to another.
CREATE TABLE collection (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    opened_by TEXT NOT NULL,
    opened_at TEXT NOT NULL,
    skipped INTEGER NOT NULL
);

-- `record` is the article without title and abstract, as JSONL has it; `headings` what was decided, once it
-- is done, as its "mesh" would be. `version` counts what people changed, `change` is the clock at the last
-- change of any kind. `model` is NULL until the article is tagged, `problem` says why it could not be.
CREATE TABLE article (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    collection INTEGER NOT NULL REFERENCES collection ON DELETE CASCADE,
    pmid TEXT,
    title TEXT NOT NULL,
    abstract TEXT NOT NULL,
    record TEXT NOT NULL,
    model TEXT,
    problem TEXT,
    doubt REAL NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'todo' CHECK (state IN ('todo', 'done', 'skipped')),
    version INTEGER NOT NULL DEFAULT 0,
    change INTEGER NOT NULL,
    headings TEXT
);
CREATE INDEX article_by_state ON article (collection, state, model);
CREATE INDEX article_by_doubt ON article (collection, doubt DESC, id);
CREATE INDEX article_by_change ON article (collection, change);
CREATE INDEX article_untagged ON article (id) WHERE model IS NULL;

CREATE VIRTUAL TABLE article_text USING fts5 (
    pmid, title, abstract, content='article', content_rowid='id'
);
CREATE TRIGGER article_added AFTER INSERT ON article BEGIN
    INSERT INTO article_text (rowid, pmid, title, abstract)
    VALUES (new.id, new.pmid, new.title, new.abstract);
END;
CREATE TRIGGER article_removed AFTER DELETE ON article BEGIN
    INSERT INTO article_text (article_text, rowid, pmid, title, abstract)
    VALUES ('delete', old.id, old.pmid, old.title, old.abstract);
END;

-- What the model said of a descriptor (`said`, NULL where it was not among its best) and what became of it.
-- `proposed`: the model gives it; `kept`: as things stand, it is one of the article's headings.
CREATE TABLE tag (
    article INTEGER NOT NULL REFERENCES article ON DELETE CASCADE,
    ui TEXT NOT NULL,
    name TEXT NOT NULL,
    tree_numbers TEXT NOT NULL,
    score REAL,
    said TEXT,
    proposed INTEGER NOT NULL,
    decision TEXT NOT NULL CHECK (decision IN ('', 'accepted', 'struck', 'added')),
    major INTEGER NOT NULL,
    qualifiers TEXT NOT NULL,
    kept INTEGER GENERATED ALWAYS AS (
        decision IN ('accepted', 'added') OR (proposed AND decision = '')
    ) VIRTUAL,
    PRIMARY KEY (article, ui)
) WITHOUT ROWID;
CREATE INDEX tag_by_descriptor ON tag (ui, kept, article);

-- Every decision ever made. `key` is given by who sends it, so that sending it twice makes it once.
CREATE TABLE decision (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    collection INTEGER NOT NULL REFERENCES collection ON DELETE CASCADE,
    article INTEGER NOT NULL REFERENCES article ON DELETE CASCADE,
    version INTEGER NOT NULL,
    who TEXT NOT NULL,
    at TEXT NOT NULL,
    action TEXT NOT NULL,
    ui TEXT,
    before TEXT NOT NULL,
    after TEXT NOT NULL,
    said TEXT,
    model TEXT,
    undone_at TEXT
);
CREATE INDEX decision_by_article ON decision (article, id);
CREATE INDEX decision_by_person ON decision (collection, who, id);

CREATE TABLE learning (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    model TEXT NOT NULL,
    out TEXT NOT NULL,
    report TEXT NOT NULL
);
"""


def _make_tables(connection: sqlite3.Connection) -> None:
    statement = ""
    for line in _TABLES.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


# Each takes a desk from the version that is its place in the list to the next; a new one goes to the end.
MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [_make_tables]


def connect(path: Path) -> sqlite3.Connection:
    """A connection that commits only when told to; any thread may use it, one at a time."""
    try:
        connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        # A power cut may not take what was acknowledged, so every commit waits for the disk.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.Error as error:
        raise InputError(f"{path} cannot be opened as a desk: {error}.") from error
    connection.row_factory = sqlite3.Row
    return connection


def prepare(path: Path) -> None:
    """Makes the tables of a new desk, or brings those of an earlier version to this one.

    Raises:
        InputError: The file is no desk.
        MismatchError: It was made by a later version of this package.
    """
    if not path.parent.is_dir():
        raise InputError(f"There is no folder {path.parent} to keep the desk {path.name} in. Make it first.")
    connection = connect(path)
    try:
        _check(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection)
    except sqlite3.Error as error:
        raise InputError(f"{path} cannot be used as a desk: {error}.") from error
    finally:
        connection.close()


def _check(connection: sqlite3.Connection, path: Path) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if not empty and application != APPLICATION:
        raise InputError(f"{path} is an SQLite file of another program, not a desk. Give another name.")
    if version > len(MIGRATIONS):
        raise MismatchError(
            f"{path} is a desk of version {version}; this package knows up to {len(MIGRATIONS)}. Update it."
        )


def migrate(connection: sqlite3.Connection) -> None:
    """Brings the tables from whatever version they have to the newest; all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Asked for now, since another process may have done it a moment ago.
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        for step in MIGRATIONS[version:]:
            step(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION:d}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS):d}")
        connection.commit()
    except BaseException:
        connection.rollback()
        raise

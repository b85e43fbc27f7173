"""What goes in and out of the desk's part of the REST interface."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from ..desk import FORMATS, SORTS, STATE_ACTIONS, STATES, TAG_ACTIONS

Who = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]
Key = Annotated[str, StringConstraints(min_length=8, max_length=80)]
# As large as SQLite's numbers are.
Number = Annotated[int, Field(ge=0, le=2**63 - 1)]
Ui = Annotated[str, StringConstraints(pattern=r"^[DQ]\d{1,9}$")]


def _one_of(*names: str) -> StringConstraints:
    return StringConstraints(pattern=f"^({'|'.join(names)})$")


Action = Annotated[str, _one_of(*TAG_ACTIONS, *STATE_ACTIONS)]
State = Annotated[str, _one_of("", *STATES)]
Sort = Annotated[str, _one_of(*SORTS)]
Format = Annotated[str, _one_of(*FORMATS)]


class ChosenQualifier(BaseModel):
    """A qualifier of a tag, and whether it is a major topic."""

    ui: Ui
    major: bool = False


class DecisionRequest(BaseModel):
    """One decision; `version` is that of the article as its maker saw it."""

    model_config = ConfigDict(extra="forbid")

    key: Key = Field(description="Any text no other decision has; sent again, it is not made twice.")
    who: Who
    version: Number
    action: Action
    ui: Ui | None = Field(default=None, description="The descriptor, for actions on tags.")
    major: bool = Field(default=False, description="For `major`: whether it is a major topic.")
    qualifiers: list[ChosenQualifier] = Field(default_factory=list, max_length=20)
    opened_at: str | None = Field(
        default=None, max_length=40, description="When the collection was opened; refused at another desk."
    )


class Person(BaseModel):
    """Who takes something back."""

    who: Who


class Counts(BaseModel):
    """A collection and how far it is."""

    id: int
    name: str
    opened_by: str
    opened_at: str
    unreadable: int = Field(description="Records of the file that could not be read.")
    articles: int
    tagged: int
    todo: int
    done: int
    skipped: int


class BriefArticle(BaseModel):
    """An article in a list."""

    id: int
    pmid: str | None
    title: str
    state: str
    version: int
    doubt: float = Field(description="How many tags the model expects to have wrong.")
    tagged: bool
    problem: str | None


class ArticleRows(BaseModel):
    """Some articles of a collection."""

    total: int = Field(description="Of all that fit.")
    now: int = Field(description="The desk's clock; ask for changes since then.")
    counts: Counts
    articles: list[BriefArticle]


class DeskTag(BaseModel):
    """A descriptor, what the model said of it, and what was decided."""

    ui: str
    name: str
    tree_numbers: list[str]
    score: float | None
    proposed: bool = Field(description="Whether the model gives it.")
    decision: Literal["", "accepted", "struck", "added"]
    kept: bool = Field(description="Whether it is a heading as things stand.")
    major: bool
    qualifiers: list[dict[str, Any]]
    decided: dict[str, str] | None = Field(description="Who decided last, and when.")


class DeskArticle(BaseModel):
    """An article with its tags and decisions."""

    id: int
    collection: int
    state: str
    version: int
    doubt: float
    model: str | None
    problem: str | None
    article: dict[str, Any]
    headings_in_file: list[dict[str, Any]]
    tags: list[DeskTag]
    decided: dict[str, str] | None


class ConflictProblem(BaseModel):
    """Somebody else was there first: how the article is now, and what was done since."""

    detail: str
    article: DeskArticle
    by: list[dict[str, Any]]


class DeskInfo(BaseModel):
    """The desk and its collections, the newest first."""

    name: str
    model: str
    qualifiers: bool = Field(description="Whether the model has qualifiers.")
    collections: list[Counts]


class Opened(BaseModel):
    """A collection just opened."""

    collection: int
    articles: int
    more: bool = Field(description="Whether the file has more articles than a collection may have.")
    skipped: dict[str, int]
    examples: dict[str, list[str]]

"""What goes in and out of the REST interface; the OpenAPI description is made from it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class ArticleFields(BaseModel):
    """An article as its reader sees it; title or abstract is needed, the rest helps."""

    title: str = Field(default="", examples=["Amlodipine or ramipril in older adults with hypertension"])
    abstract: str = Field(default="", examples=["We randomly assigned adults aged 65 or over …"])
    journal: str | None = Field(default=None, description="Title, abbreviation or NLM id.")
    pmid: str | None = Field(
        default=None,
        max_length=20,
        description="Keeps an article from being its own neighbour.",
    )
    year: int | None = Field(default=None, description="Only repeated in exports.")


class TagOptions(BaseModel):
    """Which tags are wanted; without any of these the model's own thresholds decide."""

    model_config = ConfigDict(extra="forbid")

    top_k: int | None = Field(default=None, ge=1, le=500, description="Most tags of an article.")
    threshold: float | None = Field(default=None, ge=0, le=1, description="Least score of a tag.")
    preset: str | None = Field(default=None, description="One of the presets that `/api/info` names.")
    include: list[str] = Field(
        default_factory=list,
        max_length=100,
        description="Only these descriptors or branches of the tree, and what is below them.",
        examples=[["C", "D006973"]],
    )
    exclude: list[str] = Field(
        default_factory=list, max_length=100, description="Never these descriptors or branches."
    )
    check_tags: bool = Field(default=True, description="Whether Humans, Male, Adult … are wanted.")
    qualifiers: bool = Field(default=True, description="Whether qualifiers are wanted, where the model can.")
    evidence: bool = Field(default=False, description="Say what each tag rests on.")


class TagRequest(ArticleFields, TagOptions):
    """One article and which tags of it are wanted."""


class TagManyRequest(TagOptions):
    """Several articles and which tags of them are wanted."""

    articles: list[ArticleFields]


class TextPlace(BaseModel):
    """Where something stands in the text, in characters."""

    field: Literal["title", "abstract"]
    start: int
    end: int


class Word(TextPlace):
    """A word, where it stands first, and what the score loses if it is taken out wherever it stands."""

    word: str
    weight: float
    also: list[TextPlace] = Field(default=[], description="Its other places.")


class Neighbour(BaseModel):
    """A similar article that has the tag, and what the score loses without it."""

    pmid: str
    similarity: float
    weight: float = 0.0


class Term(TextPlace):
    """A name of the descriptor found in the text."""

    text: str


class MajorEvidence(BaseModel):
    """What tells whether a tag is a major topic: its place, and similar articles that carry it."""

    in_title: bool = Field(description="Whether a name of the descriptor stands in the title.")
    carriers: int = Field(description="Similar articles that carry it and tell which headings are major.")
    agreeing: int = Field(description="Those in which it is a major topic.")


class AspectWord(BaseModel):
    """A word of the article that goes with a qualifier, and what it adds."""

    word: str
    weight: float


class QualifierEvidence(BaseModel):
    """What a qualifier rests on: similar articles that carry the descriptor, and words."""

    carriers: int = Field(description="Similar articles that carry the descriptor and tell qualifiers.")
    agreeing: int = Field(description="Those in which it has this qualifier.")
    words: list[AspectWord] = Field(description="Words that go with it, strongest first.")


class Qualifier(BaseModel):
    """An aspect under which the article treats the descriptor."""

    ui: str
    name: str
    score: float = Field(description="Probability that the descriptor is right and has this qualifier.")
    major: bool = Field(description="Whether this aspect is a major topic.")
    evidence: QualifierEvidence | None = None


class Evidence(BaseModel):
    """What a tag rests on. A weight is the score less what it would be without that."""

    words: list[Word] = Field(description="What speaks for the tag, strongest first.")
    against: list[Word] = Field(default=[], description="What speaks against it, strongest first.")
    neighbours: list[Neighbour]
    journal: float | None = Field(description="Share of the journal's articles that have the tag.")
    journal_weight: float = Field(default=0.0, description="What the score loses without the journal.")
    term: Term | None
    all_words: float = Field(default=0.0, description="Sum of the weights of all words.")
    without_text: float = Field(default=0.0, description="Score without any word of title and abstract.")
    major: MajorEvidence | None = Field(default=None, description="What tells whether it is a major topic.")


class Tag(BaseModel):
    """A MeSH descriptor that fits the article."""

    ui: str
    name: str
    score: float
    tree_numbers: list[str]
    threshold: float | None = Field(default=None, description="Score from which the model gives it.")
    major: bool | None = Field(default=None, description="Whether it is a major topic, if the model tells.")
    major_score: float | None = Field(default=None, description="Probability that it is one.")
    qualifiers: list[Qualifier] | None = Field(
        default=None, description="Its aspects, likeliest first, if the model tells them."
    )
    evidence: Evidence | None = None


class TagResponse(BaseModel):
    """The tags of an article, best first."""

    pmid: str | None = None
    tags: list[Tag]


class TagManyResponse(BaseModel):
    """The tags of each article, in the order of the request."""

    results: list[TagResponse]


class GivenTag(BaseModel):
    """A tag to be exported; further keys, such as evidence, pass into JSON as they are.

    Where it has `major`, `major_score` and `qualifiers`, the other forms tell them, too.
    """

    model_config = ConfigDict(extra="allow")

    ui: str
    name: str
    score: float
    tree_numbers: list[str] = Field(default_factory=list)


class TaggedArticle(ArticleFields):
    """An article with the tags that were kept."""

    tags: list[GivenTag]


class ExportRequest(BaseModel):
    """Tagged articles and the form they are wanted in."""

    format: Literal["json", "jsonl", "csv", "ris", "nbib", "pubmed", "ovid"]
    articles: list[TaggedArticle] = Field(min_length=1)


class Descriptor(BaseModel):
    """A MeSH descriptor in a list of search results."""

    ui: str
    name: str
    tree_numbers: list[str]


class Place(BaseModel):
    """One step on the way from the top of a tree to a descriptor."""

    number: str
    ui: str
    name: str


class DescriptorDetails(Descriptor):
    """Everything that is known of a descriptor."""

    entry_terms: list[str]
    scope_note: str | None
    check_tag: bool
    categories: list[str]
    paths: list[list[Place]]
    narrower: list[Descriptor]


class Journal(BaseModel):
    """A journal that the model knows."""

    name: str
    articles: int = Field(description="Articles of it in the training set.")


class LoadedFile(BaseModel):
    """The articles of a file, and what in it could not be read."""

    articles: list[ArticleFields]
    more: bool = Field(description="Whether the file holds more articles than are given here.")
    skipped: dict[str, int]
    examples: dict[str, list[str]]


class Health(BaseModel):
    """Whether articles can be tagged now."""

    status: Literal["ok"]
    waiting: int = Field(description="Articles in the queue.")


class Info(BaseModel):
    """What the model and this server are."""

    version: str
    mesh_year: int | None
    descriptors: int
    categories: dict[str, str]
    check_tags: list[str]
    threshold: float = Field(description="Score from which the model gives labels without an own threshold.")
    presets: dict[str, float] = Field(description="Other thresholds by name.")
    journals: int = Field(description="Journals that `/api/journals` can suggest.")
    title_words: int = Field(description="Words of a title that the model reads.")
    abstract_words: int = Field(description="Words of an abstract that the model reads.")
    limits: dict[str, float]


class Problem(BaseModel):
    """What was wrong and what to do, as a sentence."""

    detail: str

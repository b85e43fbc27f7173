"""What articles tell about which qualifier may go with which descriptor."""

from kenmesh_hf.indexing import learn_qualifiers
from kenmesh_hf.mesh import MeshQualifiers, MeshVocabulary
from kenmesh_hf.modeling.qualifiers_kenmesh import MeshQualifier
from kenmesh_hf.reading import Article, Heading, Qualifier

UIS = [f"D90000{number}" for number in range(8)]
PLACES = [("C01.1",), ("C01.2",), ("C01.3",), ("C01.4", "F03.1"), ("C02.1",), ("B01.1",), ("C01.5",), ()]
VOCABULARY = MeshVocabulary(UIS, UIS, [()] * 8, PLACES)


def articles(descriptor: int, *names: str, count: int = 1, ui: str = "") -> list[Article]:
    heading = Heading(UIS[descriptor], None, False, tuple(Qualifier(ui, name) for name in names))
    return [Article(headings=(heading, Heading("D999999", "Unknown", False, heading.qualifiers)))] * count


def allowed(table: MeshQualifiers, descriptor: int) -> list[str]:
    return [item.abbreviation for item in table.allowed(UIS[descriptor], PLACES[descriptor])]


SEEN = [
    *(article for descriptor in range(3) for article in articles(descriptor, "drug therapy", count=10)),
    *articles(0, "blood", count=9),
    *articles(1, "blood"),
    *articles(5, count=25),
    *articles(6, "veterinary"),
]


def test_a_descriptor_has_what_it_was_seen_with_and_what_is_usual_around_it():
    table = learn_qualifiers(iter(SEEN), VOCABULARY)
    assert allowed(table, 0) == ["BL", "DT"]
    assert allowed(table, 2) == allowed(table, 3) == ["DT"]
    assert allowed(table, 6) == ["DT", "VE"]
    # Nothing is known of its branch, so the category speaks; outside the tree nothing does.
    assert allowed(table, 4) == ["DT"] and allowed(table, 7) == []


def test_a_rare_slip_is_not_usual():
    slips = [article for descriptor in (0, 1, 2) for article in articles(descriptor, "veterinary")]
    many = [*SEEN, *articles(0, "drug therapy", count=2000), *slips]
    assert allowed(learn_qualifiers(many, VOCABULARY), 3) == ["DT"]


def test_a_descriptor_that_never_has_any_may_have_none():
    others = [article for descriptor in (0, 1, 2) for article in articles(descriptor, "drug therapy")]
    bare, few = ([*others, *articles(3, count=count)] for count in (25, 5))
    assert allowed(learn_qualifiers(bare, VOCABULARY), 3) == []
    assert allowed(learn_qualifiers(few, VOCABULARY), 3) == ["DT"]


def test_only_qualifiers_of_the_year_count():
    new = MeshQualifiers([MeshQualifier("Q900001", "new aspect", "NA")], year=2031)
    seen = [*SEEN, *articles(0, "New aspect"), *articles(1, "?", ui="Q900001"), *articles(2, "newaspect")]
    table = learn_qualifiers(seen, VOCABULARY, new)
    assert allowed(table, 0) == allowed(table, 3) == ["NA"] and table.year == 2031


def test_no_articles_allow_nothing():
    assert learn_qualifiers([], VOCABULARY) == MeshQualifiers()

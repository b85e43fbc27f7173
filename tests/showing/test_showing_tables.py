"""Figures as aligned tables."""

from kenmesh_hf.showing import table_lines


def test_tables_are_aligned():
    rows = [{"name": "MiF", "value": 0.5}, {"name": "articles", "value": 12000.0}, {"name": "none"}]
    assert table_lines(rows, ("name", "value")) == [
        "name      value",
        "MiF       0.5000",
        "articles  12,000",
        "none",
    ]
    assert table_lines(rows[:2], ("name", "value"))[1] == "MiF       0.5000"
    assert table_lines([], ("name",)) == ["name"]

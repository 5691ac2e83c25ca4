"""Tables of results in Markdown: whatever is in a name or a cell is shown as it is."""

import re
from itertools import product

from pipeline_lib.results.table import Table

PARTS = ("|", "<b>", "`x`", "line\nend", "\r\n", "*bold*", "[a](http://b)", "\x1b[2J", "&lt;", "\\|")
EVIL = [f"{first}a{second}" for first, second in product(PARTS, PARTS)]
"""Names of classes, tasks and files."""
ACTIVE = re.compile(r"(?<!\\)(?:\\\\)*[|<>`*\[\]&]")
"""A character that Markdown takes for more than itself, unless a backslash is before it."""


def test_nothing_of_a_name_is_markup() -> None:
    for name in EVIL:
        table = Table("title", ["System", name], [[name, f"{name} 0.5"]], [name])
        header, rule, row, _, caption = table.markdown()
        for line in (header, row):
            assert line.startswith("| ") and line.endswith(" |"), name
            # Two cells, whatever their content.
            cells = re.split(r"(?<!\\)(?:\\\\)*\|", line[1:-1])
            assert len(cells) == 2 == rule.count("---"), name
            assert not any(map(ACTIVE.search, cells)), name
        assert not ACTIVE.search(caption), name
        assert not re.search(r"[\x00-\x1f\x7f-\x9f]", "".join(table.markdown())), name


def test_figures_stay_as_they_are() -> None:
    table = Table("t", ["System", "Gain"], [["a_b", "+1.5 [-0.3, +3.4]"], ["c", "< 0.001"]])
    assert table.markdown()[2:] == ["| a_b | +1.5 [-0.3, +3.4] |", "| c | < 0.001 |"]

"""docs/papers.md: nothing of the papers is missing, and what it quotes is what the files say."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.main import get_command

from pipeline_lib import cli
from pipeline_lib.params import load_params
from pipeline_lib.results.published import TEACHER, Figure, read_published

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/papers.md"
PUBLISHED = read_published()
DRAWN = {
    "kd": {"figure 1", "figure 2"},
    "mkd": {
        "table 2.1",
        "figure 2.1",
        "figure 2.2",
        "figure 3.1",
        "figure 3.2",
        "figure 3.3",
        "figure 3.4",
        "figure 4.1",
        "figure 4.2",
    },
    "sra": {"figure 1", "figure 2"},
    "dse": {"figure 1"},
}
"""What the papers have beside tables of results."""
TESTED = {"agrees", "smaller", "larger", "opposite"}
NUMBER = r"[+-]?\d+(?:\.\d+)?"
NUMBERS = rf"(?:{NUMBER}|–)(?: / (?:{NUMBER}|–))*"
GAIN = re.compile(rf"({NUMBER}) \[({NUMBER}), ({NUMBER})\](\*|, p 0\.\d+)?")
NAME = re.compile(r"`([^`]+)`")
PLACE = re.compile(r"(?P<name>(?:table|figure) [\d.]*\d)(?P<part> \(\w+\))?(?P<columns>[^:]*):")


class Line(NamedTuple):
    """A line of the page: a table or figure of a paper, or a part of it."""

    paper: str
    place: str
    rows: str
    printed: str
    measured: str
    verdict: str

    @property
    def item(self) -> str:
        """Return the table or figure: ``table 3.1``."""
        match = self._match()
        return match["name"] + (match["part"] or "").replace(" (", ", ").replace(")", "")

    @property
    def columns(self) -> list[str]:
        """Return the table's columns that the line is about."""
        return NAME.findall(self._match()["columns"])

    @property
    def gains(self) -> list[float]:
        """Return the paper's gains, if the line has them, by column."""
        gains = NAME.sub("", self.printed).partition(": ")[2]
        return [float(gain) for gain in gains.split(" / ") if gain]

    def _match(self) -> re.Match[str]:
        match = PLACE.match(self.place)
        assert match, self.place
        return match


def _lines() -> list[Line]:
    papers = {f"{one.authors} {one.year}": key for key, one in PUBLISHED.papers.items()}
    lines, paper = [], ""
    for text in PAGE.read_text("utf-8").splitlines():
        if text.startswith("## "):
            paper = papers[text.removeprefix("## ")]
        if re.match(r"\| (table|figure) \d", text):
            lines.append(Line(paper, *(cell.strip() for cell in text.split("|")[1:-1])))
    return lines


LINES = _lines()


def _figures(paper: str, table: str) -> list[Figure]:
    return [one for one in PUBLISHED.figures if (one.paper, one.table) == (paper, table)]


def _column(figure: Figure) -> str:
    return " ".join(filter(None, (figure.task, figure.measure, figure.split)))


@cache
def _rows_of(profile: str) -> frozenset[str]:
    """Return the names of what a profile trains, and of its rows of similarity."""
    params = load_params(ROOT / f"profiles/{profile}.yaml")
    trained = (*params.methods, *params.encoders, *params.joint, *params.similarity)
    return frozenset((*trained, *(f"{TEACHER}{name}" for name in params.teachers)))


def _named_rows(line: Line) -> dict[str, list[str]]:
    """Return the rows that a line names, by profile."""
    named = re.findall(r"(\w+): ((?:`[^`]+`(?:, )?)+)", line.rows)
    return {profile: NAME.findall(rows) for profile, rows in named}


@pytest.mark.parametrize("paper", PUBLISHED.papers)
def test_no_table_and_no_figure_of_a_paper_is_missing(paper: str) -> None:
    tables = {f"table {one.table}" for one in PUBLISHED.figures if one.paper == paper}
    assert {line.item for line in LINES if line.paper == paper} == tables | DRAWN[paper]


@pytest.mark.parametrize(("paper", "table"), sorted({(one.paper, one.table) for one in PUBLISHED.figures}))
def test_no_column_and_no_row_of_a_table_is_missing(paper: str, table: str) -> None:
    lines = [line for line in LINES if (line.paper, line.item) == (paper, f"table {table}")]
    figures = _figures(paper, table)
    assert _union(line.columns for line in lines) == {_column(one) for one in figures}
    assert _union(NAME.findall(line.printed) for line in lines) == {one.row for one in figures}


def _union(sets: Iterable[Iterable[str]]) -> set[str]:
    return {name for names in sets for name in names}


def test_the_papers_figures_are_those_of_published_yaml() -> None:
    for line in LINES:
        figures = _figures(line.paper, line.item.removeprefix("table "))
        known = {(one.row, _column(one)): one.value for one in figures}
        printed = []
        for row, numbers in re.findall(rf"`([^`]+)`(?: ({NUMBERS}))?", line.printed):
            values = [None if one == "–" else float(one) for one in numbers.split(" / ") if one]
            wanted = [known.get((row, column)) for column in line.columns]
            assert not numbers or values == wanted, (line.place, row)
            printed.append(values)
        if line.gains:
            differences = [round(a - b, 2) for a, b in zip(*printed, strict=True)]
            assert line.gains == differences, line.place


def test_rows_exist_and_reproduce_the_papers() -> None:
    for line in LINES:
        named = _named_rows(line)
        for profile, rows in named.items():
            assert {*rows} <= _rows_of(profile), line.place
        figures = _figures(line.paper, line.item.removeprefix("table "))
        ours = {one.row: {*one.ours} for one in figures}
        for row in NAME.findall(line.printed):
            assert not ours[row] or ours[row] & _union(named.values()), (line.place, row)


def test_links_and_commands_lead_somewhere() -> None:
    known = {*get_command(cli.app).commands}  # type: ignore[attr-defined]
    for line in LINES:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", line.measured):
            assert (PAGE.parent / target).exists(), (line.place, target)
        for program, name in re.findall(r"`(distill|python) (\S+)", line.rows):
            assert (ROOT / name).exists() if program == "python" else name in known, line.place
        for row in re.findall(r"`distill study [^`]+--row (\S+)`", line.rows):
            assert row in _union(map(_rows_of, _named_rows(line))), line.place


def test_what_was_measured_stands_in_the_linked_files() -> None:
    for line in LINES:
        targets = re.findall(r"\((\.\./benchmarks/[^)#]+\.md)", line.measured)
        text = "\n".join((PAGE.parent / target).read_text("utf-8") for target in targets)
        spreads = re.findall(r"\d+\.\d+ ± \d+\.\d+", line.measured)
        gains = [match.group(0) for match in GAIN.finditer(line.measured)]
        for quoted in [*spreads, *gains]:
            assert quoted in text, (line.place, quoted)
            assert quoted in spreads or quoted.endswith("*") or f"{quoted}*" not in text
        assert not spreads or re.match("(test|dev)[ ,]", line.measured), line.place


def test_the_verdict_follows_from_the_gains() -> None:
    for line in LINES:
        assert line.verdict in _verdicts(), line.place
        # A line says why, or what was measured.
        assert line.measured, line.place
        tested = GAIN.search(line.measured)
        if line.gains and tested:
            assert line.verdict == _verdict(line.gains[0], tested), line.place
        else:
            assert line.verdict not in TESTED, line.place


def _verdicts() -> set[str]:
    """Return the verdicts that the page explains."""
    _, _, table = PAGE.read_text("utf-8").partition("| verdict | meaning |\n|---|---|\n")
    lines = table.partition("\n\n")[0].splitlines()
    return {name for line in lines for name in line.split("|")[1].strip().split(", ")}


def _verdict(printed: float, tested: re.Match[str]) -> str:
    gain, low, high = (float(tested[n]) for n in (1, 2, 3))
    mark = tested[4] or ""
    if not (mark == "*" or (mark and float(mark.removeprefix(", p ")) < 0.05)):
        return "not shown"
    if gain * printed < 0:
        return "opposite"
    if low <= printed <= high:
        return "agrees"
    return "smaller" if abs(printed) > abs(gain) else "larger"

"""Tables of retrieval and untuned similarity, from scores made up here."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params, load_params
from pipeline_lib.results.retrieval_tables import read_measured
from pipeline_lib.results.schema import RetrievalScores, SeedScores, SimilarityScores
from pipeline_lib.results.terminal import print_table
from tests.tour import TOUR


def measures(first: dict[str, float]) -> dict[str, SeedScores]:
    others = {name: SeedScores.of({"": 0.25}) for name in ("mrr@1", "ndcg@1")}
    return {"recall@1": SeedScores.of(first)} | others


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    found = Layout(tmp_path)
    systems: dict[str, Any] = {
        "f": {"judged": measures({"1": 0.5, "2": 0.6}), "teacher": measures({"1": 0.1, "2": 0.1})},
        "[red]": {"judged": measures({"": 0.4}), "teacher": measures({"": 0.2})},
    }
    sizes = {"queries": 1200, "left_out": 30, "documents": 1400, "relevant": 1300, "at": [1]}
    RetrievalScores(**sizes, teacher="minilm", teacher_pairs=12.34, systems=systems).write(found.retrieval("mine"))
    own = {"task": "qqp", "metrics": ["f1"], "split": "test", "rows": {"train": 9000, "test": 300}}
    SimilarityScores(**own, systems={"sra": {"f1": 0.7104}}).write(found.similarity("alike"))
    return found


@pytest.fixture
def params() -> Params:
    shipped = load_params(TOUR)
    # Of the rows only the names are read.
    return shipped.model_copy(update={"retrieval": {"mine": None}, "similarity": {"alike": None}})


def test_tables_hold_means_and_deviations_in_percent(params: Params, layout: Layout) -> None:
    judged, teacher, alike = read_measured(params, layout)
    assert judged.title == "Retrieval: mine"
    assert judged.header == ["System", "recall@1", "mrr@1", "ndcg@1"]
    rows = {cells[0]: cells[1:] for cells in judged.lines}
    assert rows == {"f": ["55.0 ± 7.1", "25.0", "25.0"], "[red]": ["40.0", "25.0", "25.0"]}
    assert "1,200 queries with 1,300 answers among 1,400 documents" in judged.caption[0]
    assert teacher.title == "Retrieval: mine, against the order of teacher minilm"
    assert ["f", "10.0 ± 0.0", "25.0", "25.0"] in teacher.lines
    assert "It scored 12.3 documents per query" in teacher.caption[0]
    assert (alike.header, alike.lines) == (["System", "f1"], [["sra", "71.0"]])
    assert "300 test, 9,000 train rows" in alike.caption[0]


def test_the_terminal_shows_what_is_finished(params: Params, layout: Layout) -> None:
    out = StringIO()
    more = params.model_copy(update={"retrieval": {"mine": None, "other": None}})
    for table in read_measured(more, layout, finished=True):
        print_table(Console(file=out, width=80), table)
    shown = out.getvalue()
    assert max(map(len, shown.splitlines())) <= 80
    # A name is no markup.
    assert "[red]" in shown and "55.0 ± 7.1" in shown and "71.0" in shown
    with pytest.raises(PotstillError, match="retrieval-other"):
        read_measured(more, layout)


def test_without_a_teacher_there_is_no_second_table(params: Params, layout: Layout) -> None:
    scores = RetrievalScores.read(layout.retrieval("mine"))
    systems = {n: own.model_copy(update={"teacher": None}) for n, own in scores.systems.items()}
    alone = {"teacher": None, "teacher_pairs": None, "systems": systems}
    scores.model_copy(update=alone).write(layout.retrieval("mine"))
    assert [table.title for table in read_measured(params, layout)] == ["Retrieval: mine", "Untuned similarity: alike"]

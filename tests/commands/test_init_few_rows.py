"""``distill init`` on few rows: what it adds, and where it adds nothing."""

from collections.abc import Sequence
from pathlib import Path

from pipeline_lib.params import load_params
from tests.onboarding.made_up import review, write_csv, write_pairs

from .running import distill


def write_english(path: Path, rows: int, classes: Sequence[str] = ("bad", "good")) -> None:
    values = [[f"It is what I have of {review(n)}", classes[n % len(classes)]] for n in range(rows)]
    write_csv(path, ["review", "sentiment"], values)


def test_few_rows_get_a_pool_word_pieces_and_balanced_decisions() -> None:
    write_english(Path("few.csv"), 300)
    printed = distill("init", "few.csv")
    params = load_params()
    assert params.vocabulary.pieces == 8000
    pool = params.task("few").pool
    assert pool is not None and pool.rows == 4000
    [source] = pool.sources
    assert len(source.files) == 4 and source.requirement.startswith("vaderSentiment==")
    assert params.recipe("full").unlabelled and not params.recipe("original").unlabelled
    assert {row.threshold for row in params.methods.values()} == {"likelihood"}
    # So many texts make the transfer set of usual size with fewer iterations.
    assert params.task("few").augment.n_iter == 5
    assert "180 labelled rows: 4,000 bundled texts of other kinds" in printed


def test_texts_of_ones_own_take_the_place_of_the_pool() -> None:
    write_english(Path("few.csv"), 300)
    write_csv(Path("more.csv"), ["review"], [[review(n)] for n in range(400, 700)])
    distill("init", "few.csv", "--unlabelled", "more.csv")
    params = load_params()
    assert params.task("few").pool is None and params.recipe("full").unlabelled
    assert params.vocabulary.pieces == 8000


def test_many_rows_get_none_of_these() -> None:
    write_english(Path("many.csv"), 1600)
    printed = distill("init", "many.csv")
    params = load_params()
    assert params.task("many").pool is None and not params.vocabulary.pieces
    assert {row.threshold for row in params.methods.values()} == {None}
    assert "bundled texts" not in printed
    write_pairs(Path("pairs"))
    distill("init", "pairs", "--force")
    params = load_params()
    assert {row.threshold for row in params.methods.values()} == {None} and not params.vocabulary.pieces


def test_decisions_are_moved_between_two_classes_only() -> None:
    write_english(Path("few.csv"), 300, ("bad", "fair", "good"))
    distill("init", "few.csv")
    assert {row.threshold for row in load_params().methods.values()} == {None}

"""``distill init`` on few rows: what it adds, and where it adds nothing."""

from pathlib import Path

from pipeline_lib.params import load_params
from tests.onboarding.made_up import review, write_csv, write_pairs

from .running import distill


def write_english(path: Path, rows: int) -> None:
    values = [[f"It is what I have of {review(n)}", ("bad", "good")[n % 2]] for n in range(rows)]
    write_csv(path, ["review", "sentiment"], values)


def test_few_rows_get_a_teacher_that_starts_as_a_probe() -> None:
    write_english(Path("few.csv"), 300)
    write_csv(Path("more.csv"), ["review"], [[review(n)] for n in range(400, 700)])
    for flags in ((), ("--unlabelled", "more.csv", "--force")):
        distill("init", "few.csv", *flags)
        params = load_params()
        assert params.vocabulary.pieces is None
        assert params.recipe("full").unlabelled == bool(flags) and not params.recipe("original").unlabelled
        assert params.task("few").augment.n_iter == 20
        [teacher] = params.teachers.values()
        assert (teacher.tuning.head, teacher.tuning.select, teacher.tuning.batch_size) == ("probe", "last", 16)
        chosen = {(row.select, len(row.learning_rates)) for row in params.optimisers.values() if row.name == "adam"}
        assert chosen == {("last", 1)}


def test_many_rows_and_pairs_get_none_of_these() -> None:
    write_english(Path("many.csv"), 1600)
    write_pairs(Path("pairs"))
    for flags in (("many.csv",), ("pairs", "--force")):
        distill("init", *flags)
        params = load_params()
        assert {row.select for row in params.optimisers.values()} == {"metric", "loss"}

"""``distill init --add-labels``: rows labelled later join the training set, and move no other."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.commands import add_labels
from pipeline_lib.commands.profile import profile_in_use
from pipeline_lib.corpora.tasks.fetching import fetch_data
from pipeline_lib.corpora.tasks.labelled import read_examples
from pipeline_lib.corpora.tasks.preparation import prepare_task
from pipeline_lib.onboarding.profile_writer import with_added_labels
from pipeline_lib.params import load_params
from pipeline_lib.shards.engine.local import LocalEngine
from pipeline_lib.shards.shard_sets import Manifest, ShardSet
from tests.onboarding.made_up import review, write_csv, write_pairs, write_reviews

from .running import Fails, distill

ADDED = Path("data/input/reviews/added_labels.jsonl")


@pytest.fixture
def reviews() -> None:
    """Describe a task of 60 labelled reviews and 40 more texts."""
    write_reviews(Path("reviews.csv"))
    write_csv(Path("more.csv"), ["review"], [[review(n)] for n in range(60, 100)])
    distill("init", "reviews.csv", "--unlabelled", "more.csv")


def prepared(task: str = "reviews") -> dict[str, Manifest]:
    """Prepare a task as the pipeline does."""
    params = load_params()
    settings, raw = params.task(task), Path("data/raw") / task
    added = settings.added_labels
    path = None if added is None else Path(params.inputs) / added
    fetch_data(task, settings.source, Path(params.inputs), raw, added=path)
    examples, counts = read_examples(raw, settings)
    engine = LocalEngine(1)
    return prepare_task(examples, counts, settings, params.tagger, Path("data/tasks") / task, engine)


def labels(split: str, task: str = "reviews") -> dict[str, float]:
    """Return the labels of a prepared split by the texts."""
    table = ShardSet.open(Path("data/tasks") / task / split).table()
    return dict(zip(table["text"].to_pylist(), table["label"].to_pylist(), strict=True))


def add(rows: list[tuple[Any, ...]], *flags: str, header: tuple[str, ...] = ()) -> str:
    """Give labelled rows to the command."""
    write_csv(Path("labelled.csv"), header or ("review", "sentiment"), rows)
    return distill("init", "--add-labels", "labelled.csv", *flags)


@pytest.mark.usefixtures("reviews")
def test_rows_join_the_training_set_and_no_other_row_moves() -> None:
    before = prepared()
    splits = {split: labels(split) for split in ("train", "dev", "test")}
    printed = add([(review(60), "good"), (review(61), ""), (review(62), "BAD"), (review(63), "")])
    assert "2 of 4 rows are new to the training set of reviews" in printed
    assert "skipped   2 without a label" in printed and "38 unlabelled ones are left" in printed
    after = prepared()
    assert labels("train") == splits["train"] | {review(60): 1, review(62): 0}
    assert {split: labels(split) for split in ("dev", "test")} == {split: splits[split] for split in ("dev", "test")}
    # What is made of the unlabelled texts stays: their blocks are byte for byte what they were.
    assert after["unlabelled"].shards == before["unlabelled"].shards
    assert after["unlabelled"].counts["labelled_later"] == 2
    assert after["dev"].shards == before["dev"].shards


@pytest.mark.usefixtures("reviews")
def test_rounds_add_up_and_the_profile_says_how() -> None:
    add([(review(60), "good")])
    first = Path("params.yaml").read_text()
    printed = add([(review(61), "bad"), (review(60), "good")])
    assert "1 of 2 rows are new" in printed and "1 labelled so already" in printed
    records = [json.loads(line) for line in ADDED.read_text().splitlines()]
    assert records == [{"review": review(60), "sentiment": "good"}, {"review": review(61), "sentiment": "bad"}]
    assert load_params().task("reviews").added_labels == "reviews/added_labels.jsonl"
    header = Path("profiles/reviews.yaml").read_text().partition("extends")[0]
    assert header.count("#     ") == 3
    # A profile of params.yaml that is in use, as a file on which nothing else has changed.
    assert first.partition("tasks:")[2] == Path("params.yaml").read_text().partition("tasks:")[2]
    distill("profile", "use", "default")
    distill("profile", "use", "reviews")
    assert load_params().task("reviews").added_labels is not None
    prepared()
    assert labels("train")[review(61)] == 0


@pytest.mark.usefixtures("reviews")
def test_nothing_new_writes_nothing() -> None:
    prepared()
    text, label = next(iter(labels("train").items()))
    before = Path("params.yaml").read_text()
    printed = add([(text, ("bad", "good")[label])])
    assert "Nothing is new" in printed and not ADDED.exists()
    assert Path("params.yaml").read_text() == before


@pytest.mark.usefixtures("reviews")
def test_texts_of_dev_and_test_are_left_out_and_said() -> None:
    prepared()
    held_out = [*labels("dev"), *labels("test")]
    printed = add([*((text, "good") for text in held_out), (review(60), "good")])
    assert f"skipped   {len(held_out)} whose text is in dev or test" in printed
    prepared()
    assert not {*labels("train")} & {*held_out}


@pytest.mark.usefixtures("reviews")
def test_another_label_is_an_error_unless_it_replaces(fails: Fails) -> None:
    prepared()
    text, label = next(iter(labels("train").items()))
    rows = [(text, ("good", "bad")[label]), (review(60), "good")]
    write_csv(Path("labelled.csv"), ["review", "sentiment"], rows)
    error = fails("init", "--add-labels", "labelled.csv")
    assert "labelled.csv row 2" in error and "give --replace" in error and not ADDED.exists()
    printed = add(rows, "--replace")
    assert "1 of them replace another label of their text" in printed
    counts = prepared()["train"].counts["added_labels"]
    assert labels("train")[text] == 1 - label
    assert counts == {"rows": 2, "in_a_split": 0, "repeated": 0, "replaced": 1}
    # What was added is replaced alike, and stands in the file once.
    add([(review(60), "bad")], "--replace")
    assert len(ADDED.read_text().splitlines()) == 2
    prepared()
    assert labels("train")[review(60)] == 0


@pytest.mark.usefixtures("reviews")
def test_faults_are_one_error_that_names_the_rows(fails: Fails) -> None:
    rows = [(review(60), "godo"), (review(61), "bad"), (review(61), "good"), (review(62), "x")]
    write_csv(Path("labelled.csv"), ["review", "sentiment"], rows)
    before = Path("params.yaml").read_text()
    error = fails("init", "--add-labels", "labelled.csv")
    assert "labelled.csv row 2 ('godo'), labelled.csv row 5 ('x'): not a label" in error
    assert "'bad', 'good'" in error
    assert "labelled.csv row 4 ('good'): an earlier row has this text" in error
    assert Path("params.yaml").read_text() == before and not ADDED.exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--kind", "regression"], "--kind: --add-labels adds rows to a task as it is"),
        (["--add"], "--add: --add-labels adds rows"),
        (["--name", "others"], "no 'others' in params.yaml; there are reviews"),
        (["--label", "stars"], "no column 'stars'"),
    ],
)
@pytest.mark.usefixtures("reviews")
def test_what_does_not_go_with_it_is_refused(flags: list[str], message: str, fails: Fails) -> None:
    write_csv(Path("labelled.csv"), ["review", "sentiment"], [[review(60), "good"]])
    assert message in fails("init", "--add-labels", "labelled.csv", *flags)


@pytest.mark.usefixtures("reviews")
def test_no_label_at_all_and_a_stray_flag_are_refused(fails: Fails) -> None:
    write_csv(Path("labelled.csv"), ["review", "sentiment"], [[review(60), ""]])
    error = fails("init", "--add-labels", "labelled.csv")
    assert "no row has a label in column 'sentiment'" in error
    assert "--replace: it goes with --add-labels" in fails("init", "reviews.csv", "--replace")


@pytest.mark.usefixtures("reviews")
def test_columns_of_other_names_are_guessed() -> None:
    rows = [[n, review(60 + n), ("bad", "good")[n % 2]] for n in range(6)]
    assert "6 of 6 rows are new" in add(rows, header=("id", "comment", "label"))
    prepared()
    assert labels("train")[review(63)] == 1


@pytest.mark.usefixtures("reviews")
def test_an_apostrophe_before_a_formula_is_taken_off_again() -> None:
    write_csv(Path("more.csv"), ["review"], [["=SUM of its parts, and no more than that"]])
    distill("init", "reviews.csv", "--unlabelled", "more.csv", "--force")
    printed = add([("'=SUM of its parts, and no more than that", "bad")])
    assert "0 unlabelled ones are left" in printed
    prepared()
    assert labels("train")["=SUM of its parts, and no more than that"] == 0


@pytest.mark.usefixtures("reviews")
def test_parameters_changed_by_hand_keep_every_other_line() -> None:
    path = Path("params.yaml")
    path.write_text(path.read_text().replace("seeds: [1, 2, 3]", "seeds: [1]  # mine"))
    before = path.read_text().splitlines()
    assert "seeds: [1]  # mine" in before
    add([(review(60), "good")])
    lines = path.read_text().splitlines()
    assert [line for line in lines if "added_labels" not in line] == before
    assert len(lines) == len(before) + 1 and load_params().task("reviews").added_labels


@pytest.mark.usefixtures("reviews")
def test_a_failed_check_takes_everything_back(fails: Fails) -> None:
    add([(review(60), "good")])
    kept = {path: path.read_bytes() for path in (ADDED, Path("profiles/reviews.yaml"))}
    write_csv(Path("labelled.csv"), ["review", "sentiment"], [[review(61), "good"]])
    # A file that the check asks for is gone, after what was written.
    Path("data/input/reviews/unlabelled.csv").rename("elsewhere.csv")
    assert "unlabelled" in fails("init", "--add-labels", "labelled.csv")
    assert {path: path.read_bytes() for path in kept} == kept


@pytest.mark.usefixtures("reviews")
def test_a_new_description_keeps_the_labels() -> None:
    add([(review(60), "good")])
    printed = distill("init", "reviews.csv", "--unlabelled", "more.csv", "--force")
    assert "kept       reviews/added_labels.jsonl" in printed
    assert load_params().task("reviews").added_labels == "reviews/added_labels.jsonl"
    assert "1 of 1 rows are new" in add([(review(61), "good")])


@pytest.mark.usefixtures("reviews")
def test_labels_that_another_description_forgets_are_kept(fails: Fails) -> None:
    add([(review(60), "good")])
    forget = ("init", "reviews.csv", "--unlabelled", "more.csv", "--force", "--label", "sentiment")
    path = Path("params.yaml")
    path.write_text(path.read_text().replace("label: sentiment", "label: review2"))
    assert "labels added to other columns" in distill(*forget)
    write_csv(Path("labelled.csv"), ["review", "sentiment"], [[review(61), "good"]])
    before = ADDED.read_bytes()
    error = fails("init", "--add-labels", "labelled.csv")
    assert "Write `added_labels: reviews/added_labels.jsonl` under tasks.reviews" in error
    assert ADDED.read_bytes() == before
    path = Path("params.yaml")
    text = path.read_text()
    path.write_text(with_added_labels(text, "reviews", "reviews/added_labels.jsonl", path))
    assert "1 of 1 rows are new" in add([(review(61), "good")])
    assert len(ADDED.read_text().splitlines()) == 2


def test_scores_of_pairs_among_several_tasks(fails: Fails) -> None:
    write_pairs(Path("pairs"))
    write_reviews(Path("reviews.csv"))
    distill("init", "pairs")
    distill("init", "--add", "reviews.csv")
    rows = [[review(300), review(301), 2.5], [review(302), review(303), 7]]
    write_csv(Path("labelled.csv"), ["first", "second", "score"], rows)
    assert "Name one with --name" in fails("init", "--add-labels", "labelled.csv")
    error = fails("init", "--add-labels", "labelled.csv", "--name", "pairs")
    assert "row 3 ('7'): not a label of the task, whose labels are numbers from 0 to 5" in error
    reviews = load_params().task("reviews")
    rows = [*rows[:1], [review(304), review(305), 2.3]]
    write_csv(Path("labelled.csv"), ["first", "second", "score"], rows)
    command = ("init", "--add-labels", "labelled.csv", "--name", "pairs")
    assert "2 of 2 rows are new" in distill(*command)
    assert "2 labelled so already" in distill(*command)
    prepared("pairs")
    assert labels("train", "pairs")[review(300)] == 2.5
    assert load_params().task("reviews") == reviews


def test_classes_of_ranges_can_be_named() -> None:
    rows = [[review(n), n % 9 - 4] for n in range(90)]
    write_csv(Path("reviews.csv"), ["review", "score"], rows)
    distill("init", "reviews.csv", "--labels", "bad=-4..-1;good=1..4")
    new = [(review(100), "good"), (review(101), "-2"), (review(102), 0)]
    printed = add(new, header=("review", "score"))
    assert "2 of 3 rows are new" in printed and "1 outside the label ranges" in printed
    prepared()
    assert labels("train")[review(100)] == 1 and labels("train")[review(101)] == 0


@pytest.mark.usefixtures("reviews")
def test_the_profile_that_describes_the_task_is_extended_below_another() -> None:
    Path("profiles/quick.yaml").write_text("# Quick.\nextends: reviews.yaml\n\nseeds: [1]\n")
    distill("profile", "use", "quick")
    add([(review(60), "good")])
    assert load_params().seeds == [1] and load_params().task("reviews").added_labels
    assert "added_labels: reviews/added" in Path("profiles/reviews.yaml").read_text()
    assert "added_labels" not in Path("profiles/quick.yaml").read_text()


def test_a_task_of_the_default_gets_a_profile_of_its_own() -> None:
    distill("profile", "use", "default")
    before = load_params()
    profile, write = add_labels._edit(Path("params.yaml"), "movies")
    assert profile == Path("profiles/movies.yaml")
    write()
    assert profile_in_use(Path("params.yaml")) == profile
    movies = before.task("movies").model_copy(update={"added_labels": "movies/added_labels.jsonl"})
    assert load_params() == before.model_copy(update={"tasks": {"movies": movies}})


def test_comments_of_a_parameter_file_stay() -> None:
    distill("profile", "use", "default")
    path, default = Path("params.yaml"), Path("params.yaml").read_text()
    edited = with_added_labels(default, "movies", "movies/added_labels.jsonl", path)
    lines = [line for line in edited.splitlines() if not line.startswith("    added_labels:")]
    assert lines == default.splitlines()
    # Written twice, it is replaced.
    again = with_added_labels(edited, "movies", "other.csv", path)
    assert again.count("\n    added_labels:") == 1 and "added_labels: other.csv\n" in again
    with pytest.raises(PotstillError, match=r"in braces\. Add `added_labels: a\.csv` to it"):
        with_added_labels("tasks:\n  movies: {text: [text]}\n", "movies", "a.csv", path)

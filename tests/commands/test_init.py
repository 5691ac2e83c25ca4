"""``distill init``: from files to parameters that are sound."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from pipeline_lib.commands import init
from pipeline_lib.corpora.tasks.fetching import fetch_data
from pipeline_lib.corpora.tasks.labelled import read_examples
from pipeline_lib.onboarding.questions import Question
from pipeline_lib.outputs.files.keyed_table import content_keys
from pipeline_lib.params import load_params
from tests.kit.pretrained import write_model
from tests.onboarding.made_up import review, write_answers, write_csv, write_pairs, write_reviews
from tests.outputs.provider_lines import chat, responses

from .running import Fails, distill


def task_of(name: str) -> dict[str, Any]:
    return YAML(typ="safe").load(Path(f"profiles/{name}.yaml").read_text())["tasks"][name]


def test_a_file_of_reviews(fails: Fails) -> None:
    write_reviews(Path("reviews.csv"))
    printed = distill("init", "reviews.csv")
    assert "sentiment: classification, 2 classes: bad, good" in printed
    assert "(drawn: dev 20%, test 20%; identical texts stay together)" in printed
    assert "params.yaml is valid." in printed and "data/exports/reviews" in printed
    params = load_params()
    assert list(params.tasks) == ["reviews"] and params.wikipedia is None
    rows = ["regression_kd_ts", "bilstm", "bilstm_kd", "bilstm_kd_ts", "tfidf", "regression"]
    assert params.methods["regression_kd_ts"].objective.temperature == 1.0
    assert [*params.methods] == rows and params.students["bilstm"].embeddings == "static"
    assert Path("data/input/reviews/all.csv").read_bytes() == Path("reviews.csv").read_bytes()
    # Again is the same; parameters that were changed by hand are kept, unless they are given up.
    own = Path("params.yaml").read_text() + "# mine\n"
    Path("params.yaml").write_text(own)
    write_csv(Path("others.csv"), ["review", "sentiment"], [[review(n), ":)?1"[n % 4]] for n in range(60)])
    assert "was changed by hand" in fails("init", "others.csv")
    assert Path("params.yaml").read_text() == own and not Path("data/input/others").exists()
    distill("init", "others.csv", "--force")
    # Classes that YAML would read otherwise.
    assert task_of("others")["labels"] == {name: [name] for name in ":)?1"}


def test_odd_rows_are_refused_or_left_out(fails: Fails) -> None:
    write_reviews(Path("reviews.csv"), odd=True)
    error = fails("init", "reviews.csv")
    assert "without a label: reviews.csv row 4" in error and "--leave-out" in error
    assert not Path("profiles/reviews.yaml").exists()
    printed = distill("init", "reviews.csv", "--leave-out")
    assert "1 row with empty text (left out): reviews.csv row 6" in printed
    assert "1 row alone in their class (kept, unless --labels names the other classes): reviews.csv row 9" in printed
    printed = distill("init", "reviews.csv", "--leave-out", "--labels", "bad;good", "--force")
    assert "1 row with a label that belongs to no class (left out): reviews.csv row 9" in printed
    assert task_of("reviews")["labels"] == {"bad": ["bad"], "good": ["good"]}
    assert task_of("reviews")["source"]["files"] == {"all": "reviews/all.parquet"}


def test_a_class_too_rare_to_be_scored_is_named() -> None:
    rows = [[review(number), "good" if number % 10 else "bad"] for number in range(250)]
    write_csv(Path("reviews.csv"), ["review", "sentiment"], rows)
    printed = distill("init", "reviews.csv")
    assert "metrics    f1 (of bad), accuracy" in printed
    for split in ("dev", "test"):
        assert f"{split}: classes with too few rows to be scored well: bad (" in printed
    # One without a row there, too.
    write_csv(Path("lone.csv"), ["review", "sentiment"], [*rows, [review(300), "odd"], [review(301), "odd"]])
    printed = distill("init", "lone.csv", "--force")
    assert any(
        f"{split}: classes with too few rows to be scored well: " in line and "odd (0)" in line
        for split in ("dev", "test")
        for line in printed.splitlines()
    )
    plenty = [[text, ("bad", "good")[number % 2]] for number, (text, _) in enumerate(rows)]
    write_csv(Path("plenty.csv"), ["review", "sentiment"], plenty)
    flags = ("--metrics", "accuracy,f1", "--positive", "bad", "--force")
    printed = distill("init", "plenty.csv", *flags)
    assert "too few rows" not in printed and "metrics    accuracy, f1 (of bad)" in printed
    assert task_of("plenty")["positive"] == "bad"


def test_pairs_get_students_that_start_from_an_encoder() -> None:
    write_pairs(Path("mine/closeness"))
    fitted = "regression_of_pairs"
    for students, names in (("speed", [fitted]), ("accuracy", [fitted, "transformer"])):
        distill("init", "mine/closeness", "--students", students, "--force")
        params = load_params()
        assert [*params.students] == names and not params.encoders
        assert {name: row.baseline for name, row in params.methods.items() if row.baseline} == {
            f"{n}_kd_ts": n for n in names
        }
    printed = distill("init", "mine/closeness", "--force")
    assert "first, second (a pair)" in printed and "score: regression, 0 to 5" in printed
    assert "dev: 1 also in train" in printed and "mine/closeness/dev.csv row 2" in printed
    params = load_params()
    assert params.wikipedia.sentences == 6000
    encoder = params.encoders["sra"]
    assert encoder.tasks == {"closeness": "original"} and encoder.student == "bilstm_sra"
    rows = {name: row for name, row in params.methods.items() if row.start == "sra"}
    # Of scores it learns from labels alone; the untuned cosine stands beside it.
    assert [*rows] == ["bilstm_sra"]
    assert params.similarity["closeness"].model == "minilm"


def test_training_rows_that_end_early_as_some_of_qqps(fails: Fails) -> None:
    header, short = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "0\t1\t2"
    folder = Path("QQP")
    folder.mkdir()
    for split, start in (("train", 0), ("dev", 60)):
        rows = [f"{n}\t1\t2\t{review(n)}\t{review(n + 500)}\t{n % 2}" for n in range(start, start + 60)]
        lines = [header, *rows[:3], *([short] if split == "train" else []), *rows[3:]]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    printed = distill("init", "QQP")
    assert "question1, question2 (a pair)" in printed and "is_duplicate: classification" in printed
    assert "train: 1 row with empty text (left out): QQP/train.tsv row 5" in printed
    task = load_params().tasks["qqp"]
    fetch_data("qqp", task.source, Path("data/input"), Path("raw"))
    examples, counts = read_examples(Path("raw"), task)
    assert len(examples["train"]) == 60 and counts["train"]["empty_text"] == 1
    # What is scored must be whole.
    (folder / "dev.tsv").write_text(f"{header}\n{short}\n")
    assert "dev.tsv: row 2 has 3 columns" in fails("init", "QQP", "--force")


def test_unlabelled_texts_and_answers_in_a_file() -> None:
    texts = [[review(number)] for number in range(60)]
    write_csv(Path("texts.csv"), ["comment"], texts)
    Path("more.txt").write_text("\n".join(review(number) for number in range(100, 120)) + "\n")
    write_answers(Path("answers.jsonl"))
    printed = distill("init", "texts.csv", "--teacher", "answers.jsonl", "--unlabelled", "more.txt", "--name", "mine")
    assert "none: classification, 2 classes: bad, good" in printed
    assert "more.txt: 20, answered by the teacher" in printed
    params = load_params()
    assert task_of("mine")["source"]["files"] == {"all": "mine/all.parquet", "unlabelled": "mine/unlabelled.parquet"}
    assert params.transfer["extended"].unlabelled and not params.transfer["original"].unlabelled
    assert params.methods["bilstm_kd_ts"].baseline is None
    assert params.reads_outputs(params.methods["bilstm_kd_ts"], "mine")


def test_answers_named_like_a_split_do_not_replace_it() -> None:
    for split, start, rows in (("train", 0, 40), ("dev", 40, 10), ("test", 50, 10)):
        values = [[review(n), ("bad", "good")[n % 2]] for n in range(start, start + rows)]
        write_csv(Path(f"{split}.csv"), ["text", "label"], values)
    answers = [[review(n), ("bad", "good")[n % 3 == 0]] for n in range(60)]
    write_csv(Path("llm/train.csv"), ["text", "label"], answers)
    splits = ("train.csv", "dev.csv", "test.csv")
    distill("init", *splits, "--teacher", "llm/train.csv", "--name", "mine")
    inputs = Path("data/input")
    [place] = load_params().teachers["answers"].tuning.files
    assert (inputs / place).read_bytes() == Path("llm/train.csv").read_bytes()
    for split, file in task_of("mine")["source"]["files"].items():
        assert (inputs / file).read_bytes() == Path(f"{split}.csv").read_bytes()


def write_jsonl(path: str, answers: list[dict[str, Any]]) -> None:
    rows = [{"text": review(n)} | answers[n % len(answers)] for n in range(60)]
    Path(path).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_answers_that_do_not_say_which_class_is_which(fails: Fails) -> None:
    write_reviews(Path("reviews.csv"))
    write_jsonl("lists.jsonl", [{"probs": [0.8, 0.2]}, {"probs": [0.1, 0.9]}])
    write_jsonl("numbers.jsonl", [{"label": 0}, {"label": 1}])
    for file in ("lists.jsonl", "numbers.jsonl"):
        flags = ("init", "reviews.csv", "--name", "mine", "--teacher", file)
        assert "for `distill init`, --labels" in fails(*flags)
        assert not Path("profiles/mine.yaml").exists() and not Path("data/input").exists()
    distill(*flags, "--labels", "bad;good")
    assert load_params().teachers["answers"].tuning.classes == ["bad", "good"]


def write_batch(path: str, keys: Sequence[str]) -> None:
    """Write a batch whose replies are the reviews' labels as they take turns, in JSON."""
    replies = (json.dumps({"label": ("good", "bad")[n % 2]}) for n in range(len(keys)))
    rows = map(responses, keys, replies)
    Path(path).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_a_batch_is_matched_with_the_texts_before_anything_is_written(fails: Fails) -> None:
    write_reviews(Path("reviews.csv"))
    texts = [review(number) for number in range(60)]
    known = [f"{key:016x}" for key in content_keys([texts])]
    for keys, message in (
        ([f"{n}" for n in range(60)], "row 1: id '0' is not a content key"),
        ([f"request-{n}" for n in range(60)], "row 1: id 'request-0' is not a content key"),
        ([f"{n:016x}" for n in range(60)], "none of the task's 60 texts is answered"),
    ):
        write_batch("batch.jsonl", keys)
        error = fails("init", "reviews.csv", "--teacher", "batch.jsonl")
        assert message in error and len(error.strip().splitlines()) == 1
        assert not any(map(Path.exists, map(Path, ("profiles", "data/input", "dvc.yaml"))))
    write_batch("batch.jsonl", known[:30])
    with Path("batch.jsonl").open("a") as file:
        file.write(f"{json.dumps(chat(known[30], 'bad or good?'))}\n")
    printed = distill("init", "reviews.csv", "--teacher", "batch.jsonl")
    assert "answers   answers to reviews: 30 of 60 texts answered; 1 rows without" in printed
    assert ": neither JSON nor a class, as `distill teacher requests --format` asks for: 'bad or good?'; 30 " in printed
    file = "data/input/reviews/answers/batch.jsonl"
    checked = distill("teacher", "check", file, "--task", "reviews")
    assert "the task's own files: 30 of 60 rows answered (" in checked
    # Later the file is another.
    write_batch(file, [f"{n:016x}" for n in range(60)])
    assert "texts is answered" in fails("check")
    for arguments in (("--task", "reviews"), ()):
        error = fails("teacher", "check", file, *arguments)
        assert "none of the task's" in error and "distill teacher requests" in error


def test_labels_and_more_texts_under_a_model() -> None:
    write_reviews(Path("reviews.csv"))
    write_csv(Path("more.csv"), ["review"], [[review(number)] for number in range(100, 120)])
    distill("init", "reviews.csv", "--unlabelled", "more.csv", "--dev", "0.3", "--test", "0")
    params, own = load_params(), task_of("reviews")
    assert own["source"]["files"]["unlabelled"] == "reviews/unlabelled.csv"
    assert own["split"] == {"dev": 0.3, "test": 0.0}
    assert params.transfer["full"].unlabelled
    # Of rows that learn from labels there are none without.
    assert not params.reads_outputs(params.methods["bilstm"], "reviews")


def test_many_files_of_more_texts(fails: Fails) -> None:
    write_reviews(Path("reviews.csv"), odd=True)
    for name, start in (("one", 100), ("two", 110)):
        rows = [[review(number)] for number in range(start, start + 20)]
        write_csv(Path(f"more/{name}.csv"), ["comment"], rows)
    Path("more/notes.docx").touch()
    error = fails("init", "reviews.csv")
    assert "to use just their texts, --leave-out --unlabelled FILE too" in error
    flags = ("--unlabelled", "more", "--unlabelled", "reviews.csv", "--labels", "bad;good")
    printed = distill("init", "reviews.csv", *flags, "--leave-out")
    # The texts of the rows that have no label, or one that belongs to no class, are among them.
    files = "more/one.csv, more/two.csv, reviews.csv"
    left_out = "57 among the rows above, 10 repeated, 1 empty"
    assert f"{files}: 32, answered by the teacher (left out: {left_out})" in printed
    assert "more/notes.docx: unknown file suffixes" in printed
    assert task_of("reviews")["source"]["files"]["unlabelled"] == "reviews/unlabelled.parquet"


def test_a_terminal_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init.sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())
    answers = iter([3, 2])
    monkeypatch.setattr(init.typer, "prompt", lambda *_, **__: next(answers))
    assert init._ask(Question("Which is it?", ["one", "two"], "--it")) == "two"


def test_texts_that_are_cut_are_counted() -> None:
    long = [[f"{review(n)} " + "very " * (300 if n % 10 == 0 else 0), n % 2] for n in range(60)]
    write_csv(Path("long.csv"), ["text", "label"], long)
    printed = distill("init", "long.csv")
    assert "students read 256 words of a sentence: 6 of 60 rows (10.0%) are longer" in printed
    assert "teacher reads" not in printed  # its tokenizer is not here yet
    # A model's folder has its tokenizer; this one has 32 positions.
    write_model(Path("small"), "bert")
    printed = distill("init", "long.csv", "--teacher", "small", "--force")
    assert "teacher reads 32 word pieces of a sentence: 6 of 60 rows (10.0%)" in printed
    write_pairs(Path("pairs"))
    printed = distill("init", "pairs", "--teacher", "small", "--force")
    assert "teacher reads 32 word pieces of a pair: 60 of 60 rows" not in printed
    assert "word pieces of a pair:" in printed and "students read 64 words of a" in printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("这部电影非常好看我们都喜欢", "100% of the letters are Chinese or Japanese, which has no spaces"),
        ("หนังเรื่องนี้สนุกมากจริงๆ", "of the letters are Thai, which has no spaces"),
        ("очень хороший фильм", "100% of the letters are Cyrillic, and the teacher minilm was"),
    ],
)
def test_texts_of_another_script_are_named(text: str, message: str) -> None:
    rows = [[text + " ".join(text[n % 7 :: 2]) * (n % 5 + 1), n % 2] for n in range(120)]
    write_csv(Path("other.csv"), ["text", "label"], rows)
    assert message in distill("init", "other.csv")


def test_a_teacher_of_another_language_is_named() -> None:
    write_reviews(Path("reviews.csv"))
    write_model(Path("small"), "bert")
    printed = distill("init", "reviews.csv", "--teacher", "small")
    assert "the teacher small hardly knows the language of the texts" in printed
    assert "letters" not in distill("init", "reviews.csv", "--force")


def test_without_a_file_the_workspace_is_of_the_bundled_data(fails: Fails) -> None:
    """What is there stays; --force replaces a dvc.yaml of another version, and nothing else."""
    Path("params.yaml").unlink()
    printed = distill("init", "--no-scm")
    assert "written   dvc.yaml" in printed and "params.yaml, from the profile default" in printed
    assert "movies" in load_params().tasks
    Path("params.yaml").write_text(Path("params.yaml").read_text() + "# mine\n")
    Path("dvc.yaml").write_text("stages: {}\n")
    assert "replace it with `distill init --force`" in fails("init")
    assert distill("init", "--force").startswith("written   dvc.yaml\n\nNext:")
    assert Path("params.yaml").read_text().endswith("# mine\n")
    assert "--leave-out: it describes a file" in fails("init", "--leave-out")


def test_rows_without_a_label_become_texts_for_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[f"2026-01-02 10:{n % 60:02d}", review(n), ("bad", "good")[n % 2] if n < 100 else ""] for n in range(1200)]
    write_csv(Path("tickets.csv"), ["created", "message", "queue"], rows)
    asked: list[Question] = []

    def answer(question: Question) -> str:
        asked.append(question)
        return question.choices[0]

    monkeypatch.setattr(init, "_ask", answer)
    printed = distill("init", "tickets.csv")
    # Each question once, and the dates are no answer to any.
    assert [question.choices[0] for question in asked] == ["queue", init.AS_TEXTS]
    assert not any("created" in question.choices for question in asked)
    # A fifth each, as of a file of the 100 labelled rows alone.
    assert "train 59, dev 20, test 21 (drawn: dev 20%, test 20%" in printed
    assert "more texts 1,100, answered by the teacher" in printed
    assert "unlabelled" in load_params().tasks["tickets"].source.files

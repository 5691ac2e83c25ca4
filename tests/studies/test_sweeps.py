"""Sweeps are sound parameters whose points exist; tables and plots show their figures."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.workspace import shipped
from pipeline_lib.commands.studies.study_tables import read_figures, table, write_study
from pipeline_lib.commands.studies.sweeps import SWEEPS, Rows, Study
from pipeline_lib.params import check_params
from pipeline_lib.params.profiles import read_values
from tests.kit.made_up import made_up_training
from tests.params.variants import changed


def raw() -> dict[str, Any]:
    """Return the shipped parameters, with rows that start from an encoder for every task."""
    params = changed({})
    encoded = params["methods"]["bilstm_sra"] | {"baseline": "bilstm", "tasks": None}
    params["methods"] |= {
        "bilstm_sra": encoded,
        "bilstm_sra_kd_ts": encoded | {"data": "full", "objective": {"logits": 1.0}},
    }
    params["methods"]["bilstm"]["tasks"] = None
    params["encoders"]["sra"]["tasks"] = {"tweets": "original", "neighbours": None}
    return params


# As the comments above the papers' profiles say.
COMMAND = re.compile(r"^#     distill study (\w+)(?: --task (\w+))? --row (\w+)$", re.MULTILINE)


@pytest.mark.parametrize(("profile", "count"), [("thesis", 2), ("sra", 3)])
def test_the_studies_that_a_profile_names_are_sound(profile: str, count: int) -> None:
    path = shipped("profiles") / f"{profile}.yaml"
    named = COMMAND.findall(path.read_text())
    assert len(named) == count
    for name, task, row in named:
        values = read_values(path)
        study = SWEEPS[name](Rows.of(values, task or next(iter(values["tasks"])), row))
        params = check_params(study.params)
        assert all(point.method in params.methods_of(point.task) for point in study.points)


def sweep(name: str) -> Study:
    row = "bilstm_sra" if name == "wikipedia" else "bilstm_kd_ts"
    return SWEEPS[name](Rows.of(raw(), "movies", row))


@pytest.mark.parametrize("name", SWEEPS)
def test_points_are_rows_of_sound_parameters(name: str) -> None:
    study = sweep(name)
    params = check_params(study.params)
    assert set(params.tasks) == {point.task for point in study.points}
    assert set(params.methods) == {point.method for point in study.points}
    for point in study.points:
        assert point.method in params.methods_of(point.task)


def test_the_ablation_adds_one_thing_at_a_time() -> None:
    params = check_params(sweep("ablation").params)
    recipes = [params.transfer[row.data] for row in params.methods.values()]
    steps = [(r.p_mask > 0, r.p_pos > 0, r.p_ngram > 0) for r in recipes]
    assert [sum(step) for step in steps] == [0, 0, 1, 2, 3]
    rows = list(params.methods.values())
    assert rows[0].objective.labels == 1.0 and rows[1].objective.logits == 1.0
    assert rows[0].optimiser == rows[1].optimiser


def test_size_takes_prefixes_of_one_transfer_set() -> None:
    study = sweep("size")
    params = check_params(study.params)
    rows = [row for row in params.methods.values() if row.baseline]
    assert [row.iterations for row in rows] == [0, 1, 4, 9, 19]
    assert len({row.data for row in rows}) == 1
    assert params.tasks["movies"].augment.n_iter == 19


def test_hidden_pairs_each_size_with_its_own_baseline() -> None:
    params = check_params(sweep("hidden").params)
    for name, row in params.methods.items():
        units = int(name.rsplit("_", 1)[1])
        assert params.students[row.student].hidden == units
        assert row.baseline in (None, f"bilstm_{units}")


def test_fractions_differ_in_nothing_else() -> None:
    params = check_params(sweep("fractions").params)
    shares = [task.train_fraction for task in params.tasks.values()]
    assert shares == [0.2, 0.3, 0.5, 1.0]
    others = [task.model_dump(exclude={"train_fraction"}) for task in params.tasks.values()]
    assert all(other == others[0] for other in others)


def test_fractions_add_the_rows_that_start_from_an_encoder() -> None:
    study = SWEEPS["fractions"](Rows.of(raw(), "tweets", "bilstm_kd_ts"))
    params = check_params(study.params)
    assert {"bilstm_sra", "bilstm_sra_kd_ts"} < {point.series for point in study.points}
    # The encoder reads no labels, and the whole set's text.
    assert params.encoders["sra"].tasks == {"tweets_100": "original"}


def test_fractions_of_a_row_that_starts_from_an_encoder() -> None:
    study = SWEEPS["fractions"](Rows.of(raw(), "tweets", "bilstm_sra"))
    params = check_params(study.params)
    assert list(params.methods) == ["bilstm", "bilstm_sra", "bilstm_sra_kd_ts"]
    assert {p.series: p.method for p in study.points} == {
        "labels alone": "bilstm",
        "bilstm_sra": "bilstm_sra",
        "bilstm_sra_kd_ts": "bilstm_sra_kd_ts",
    }


def test_wikipedia_differs_in_the_encoders_sentences() -> None:
    params = check_params(sweep("wikipedia").params)
    whole = params.wikipedia.sentences
    counts = [encoder.wikipedia for encoder in params.encoders.values()]
    assert counts == [whole // 8, whole // 4, whole // 2, whole]
    starts = [row.start for row in params.methods.values()]
    assert starts == ["vectors", *params.encoders]
    with pytest.raises(PotstillError, match="vectors is not an encoder"):
        SWEEPS["wikipedia"](Rows.of(raw(), "movies", "bilstm_kd_ts"))


def test_curves_have_a_look_after_each_epoch(tmp_path: Path) -> None:
    study = SWEEPS["curves"](Rows.of(raw(), "tweets", "bilstm_sra"))
    params = check_params(study.params)
    assert [task.train_fraction for task in params.tasks.values()] == [0.3, 1.0]
    rows = params.methods.values()
    assert {params.optimisers[row.optimiser].evaluate_every for row in rows} == {None}
    metrics = fake_metrics(study, tmp_path)
    teachers = dict(zip(metrics, (0.8, 0.9), strict=True))
    metrics = {t: {"teachers": {"minilm": {"dev": {"pearson": own}}}} for t, own in teachers.items()}
    lines = table(study, read_figures(study, metrics, Layout(tmp_path)), metrics).splitlines()
    names = "bilstm, 30% | bilstm_sra, 30% | bilstm, 100% | bilstm_sra, 100%"
    assert lines[4] == f"epoch | {names} | teacher, tweets_30 | teacher, tweets_100"
    assert lines[7] == "2 | " + " | ".join(["72.0 ± 1.0"] * 4) + " | 80.0 | 90.0"
    # With a number of steps, the smaller share ends at a later epoch, amid one.
    figures = read_figures(study, metrics, Layout(tmp_path))
    late = [replace(f, point=replace(f.point, place=7.41)) for f in figures if f.point.place == 2]
    late = [figure for figure in late if figure.point.task == "tweets_30"]
    lines = table(study, [*late, *figures], metrics).splitlines()
    assert lines[-1] == "7.41 | 72.0 ± 1.0 | 72.0 ± 1.0 |  |  | 80.0 | "


@pytest.mark.parametrize("name", SWEEPS)
def test_teachers_of_some_tasks_and_sets_are_kept_if_a_row_names_them(name: str) -> None:
    params, row = raw(), "bilstm_sra" if name == "wikipedia" else "bilstm_kd_ts"
    minilm = params["teachers"]["minilm"]
    mine = {"kind": "finished", "checkpoint": "mine/{task}"}
    params["teachers"] |= {
        "other": minilm | {"tasks": ["neighbours"], "data": ["original"]},
        "mine": minilm | {"model": None, "tuning": mine, "tasks": ["tweets"], "data": ["full"]},
    }
    params["methods"] = {n: own | {"teacher": "minilm"} for n, own in params["methods"].items()}
    params["methods"][row]["teacher"] = "mine"
    found = check_params(SWEEPS[name](Rows.of(params, "tweets", row)).params).teachers
    assert set(found) <= {"minilm", "mine"}
    assert found["mine"].tuning.path("tweets_30") == "mine/tweets"
    assert all(teacher.tasks is teacher.data is None for teacher in found.values())


def test_hidden_needs_rows_without_an_encoder() -> None:
    with pytest.raises(PotstillError, match="sra is an encoder of one size"):
        SWEEPS["hidden"](Rows.of(raw(), "tweets", "bilstm_sra"))


def test_a_study_runs_no_encoder_that_it_does_not_need() -> None:
    params = check_params(sweep("hidden").params)
    assert (params.encoders, params.wikipedia) == ({}, None)


@pytest.mark.parametrize(
    ("task", "row", "message"),
    [
        ("films", "bilstm_kd_ts", "tasks: no 'films'"),
        ("movies", "lstm", "methods: no 'lstm'"),
        ("movies", "bilstm", "methods.bilstm.baseline: null"),
    ],
)
def test_what_a_study_cannot_start_from(task: str, row: str, message: str) -> None:
    with pytest.raises(PotstillError, match=message):
        Rows.of(raw(), task, row)


def test_hidden_units_are_an_lstms() -> None:
    values = raw()
    values["students"]["bilstm"] = {"architecture": "static"}
    with pytest.raises(PotstillError, match=r"students\.bilstm: has no hidden units"):
        SWEEPS["hidden"](Rows.of(values, "movies", "bilstm_kd_ts"))


def fake_metrics(study: Study, data: Path) -> dict[str, Any]:
    """Return a metrics.json in which point number i has the mean 0.5 + i / 100.

    Its encoder, if it has one, has the loss i / 10.
    """
    found: dict[str, Any] = {}
    for number, point in enumerate(study.points):
        teacher = {split: {"accuracy": 0.9} for split in ("dev", "test")}
        task = found.setdefault(point.task, {"teachers": {"minilm": teacher}, "methods": {}})
        scores = {"mean": 0.5 + number / 100, "std": 0.01}
        task["methods"][point.method] = {"test": {"accuracy": scores}}
        student = data / "students" / point.task / point.method
        for seed in study.params["seeds"]:
            looks = [{"step": n, "loss": 0.5, "epoch": 1.0 + n, "dev": 0.6 + n / 10 + seed / 100} for n in range(3)]
            record = made_up_training(history=looks)
            write_json(student / str(seed) / "training.json", record)
        if point.encoder:
            record = made_up_training(loss=number / 10, sentences=9, held_back_sentences=3)
            write_json(data / "encoders" / point.encoder / "training.json", record)
    return found


def test_the_table_by_hand(tmp_path: Path) -> None:
    study = sweep("ablation")
    metrics = fake_metrics(study, tmp_path)
    lines = table(study, read_figures(study, metrics, Layout(tmp_path)), metrics).splitlines()
    assert lines[0] == "# What each step adds: movies (thesis, table 3.3)"
    assert lines[2].startswith("accuracy on test, in percent") and "seeds 1, 2" in lines[2]
    assert lines[4] == "training | student | teacher"
    assert lines[6] == "labels | 50.0 ± 1.0 | 90.0"
    assert lines[10] == "+ n-grams | 54.0 ± 1.0 | 90.0"


def test_the_losses_of_encoders_stand_beside_the_scores(tmp_path: Path) -> None:
    study = sweep("wikipedia")
    metrics = fake_metrics(study, tmp_path)
    lines = table(study, read_figures(study, metrics, Layout(tmp_path)), metrics).splitlines()
    axis, series = "sentences of Wikipedia", "from an encoder | labels alone"
    assert lines[4] == f"{axis} | {series} | teacher | held-out loss"
    quarter = study.params["wikipedia"]["sentences"] // 4
    assert lines[7] == f"{quarter} | 51.0 ± 1.0 | 57.0 ± 1.0 | 90.0 | 0.1000"


@pytest.mark.parametrize("name", SWEEPS)
def test_every_series_is_drawn(name: str, tmp_path: Path) -> None:
    study = sweep(name)
    metrics = fake_metrics(study, tmp_path)
    figures = read_figures(study, metrics, Layout(tmp_path))
    written = write_study(study, figures, metrics, tmp_path)
    assert written == ["table.md", "plot.svg", "plot.png"]
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"
    drawn = (tmp_path / "plot.svg").read_text()
    own = {"curves": ["teacher, movies_30", "teacher, movies_100"]}
    own["wikipedia"] = ["teacher", "the encoder's loss (right)"]
    # Text is drawn as glyphs; matplotlib keeps each string in a comment beside them.
    for text in (*own.get(name, ["teacher"]), study.axis, *{point.series for point in study.points}):
        assert f"<!-- {text} -->" in drawn


def test_rows_of_several_tasks_are_no_study_and_do_not_stay() -> None:
    params = raw()
    mtl = {"student": "bilstm", "start": "vectors", "objective": {"logits": 1.0}, "min_count": 1}
    mtl |= {"tasks": dict.fromkeys(("movies", "tweets"), "full"), "sampling": "all"}
    params["joint"] = {"mtl": mtl | {"optimiser": "short"}}
    rows = ("movies", "tweets")
    params["methods"]["mtl"] = params["methods"]["bilstm_kd_ts"] | {"start": "mtl", "tasks": rows}
    with pytest.raises(PotstillError, match=r"methods\.mtl\.start: mtl is trained on several"):
        Rows.of(params, "movies", "mtl")
    study = SWEEPS["size"](Rows.of(params, "movies", "bilstm_kd_ts"))
    assert check_params(study.params).joint == {}


def test_rows_that_start_from_another_row_are_no_study() -> None:
    params = raw()
    params["methods"]["twice"] = params["methods"]["bilstm_kd"] | {"start": "bilstm_kd_ts"}
    with pytest.raises(PotstillError, match=r"methods\.twice\.start: bilstm_kd_ts is another ro"):
        Rows.of(params, "movies", "twice")


def test_general_distillation_has_no_tasks_that_join_it() -> None:
    params = raw()
    params["encoders"]["general"] = {"student": "tiny", "wikipedia": None, "seed": 1}
    rows = Rows.of(params, "neighbours", "bilstm_sra")
    assert "tasks" not in rows.params["encoders"]["general"]
    fractions = SWEEPS["fractions"](rows).params["encoders"]
    assert list(fractions) == ["sra"] and len(fractions["sra"]["tasks"]) == 1


def test_without_matplotlib_there_is_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = sweep("hidden")
    metrics = fake_metrics(study, tmp_path)
    figures = read_figures(study, metrics, Layout(tmp_path))
    monkeypatch.setattr("pipeline_lib.commands.studies.study_tables.find_spec", lambda _: None)
    assert write_study(study, figures, metrics, tmp_path / "hidden") == ["table.md"]
    [path] = (tmp_path / "hidden").iterdir()
    assert path.read_text() == table(study, figures, metrics)

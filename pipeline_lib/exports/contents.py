"""Tells what a folder holds, so that opening the wrong one gives an error that says what it is."""

from enum import StrEnum
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import read_json
from pipeline_lib.base.model_config import check_is_model, is_classifier
from pipeline_lib.exports.folders import CONFIG, FORM
from pipeline_lib.models.folders import ENCODER_TYPE, MODEL_TYPE


class Content(StrEnum):
    """What a folder holds."""

    student = "a student"
    exported_student = "an exported student"
    encoder = "a sentence encoder"
    exported_encoder = "an exported sentence encoder"
    teacher = "a teacher"
    model = "a transformers model without classes"
    sentence_transformer = "a sentence-transformers model"
    shards = "a shard set"


STUDENTS = (Content.student, Content.exported_student)
ENCODERS = (Content.encoder, Content.exported_encoder)
_PREDICT = "Open it with `load_student` or `distill predict`."
_ENCODE = "Open it with `load_encoder` or `distill predict`."
_REMEDIES = {
    **dict.fromkeys(STUDENTS, _PREDICT),
    **dict.fromkeys(ENCODERS, _ENCODE),
    Content.teacher: "Open it with `load_teacher`.",
    Content.model: "Teachers are fine-tuned from it: `distill run` does so.",
    Content.sentence_transformer: "Open it with `SentenceTransformer`.",
    Content.shards: "Open it with `open_shards` or `distill shards`.",
}
_PLACES = {
    Content.student: "a folder below data/students, or an exported student",
    Content.encoder: "a folder below data/encoders, or an exported encoder",
    Content.teacher: "a folder below data/teachers; answers in files have no model",
    Content.shards: "a folder with a manifest.json, such as data/transfer/TASK/RECIPE",
}


def require_content(folder: Path, *accepted: Content) -> Content:
    """Return what ``folder`` holds.

    :param accepted: what it may hold, the usual first.
    """
    content = content_of(folder)
    if content in accepted:
        return content
    if content is not None:
        raise PotstillError(f"{folder}: {content}, not {accepted[0]}. {_REMEDIES[content]}")
    inner = [path for path in sorted(folder.glob("*/")) if content_of(path) in accepted]
    if inner:
        names = ", ".join(path.name for path in inner)
        raise PotstillError(f"{folder}: not {accepted[0]}, but it contains {names}. Give one of these.")
    if (folder / "adapter_config.json").is_file():
        check_is_model(folder)
    reason = f"not {accepted[0]}" if folder.is_dir() else "no such folder"
    raise PotstillError(f"{folder}: {reason}. Run `distill run`, or give {_PLACES[accepted[0]]}.")


def content_of(folder: Path) -> Content | None:
    """Return what ``folder`` holds, by its files; None if it is none of these."""
    if (folder / "manifest.json").exists():
        return Content.shards
    if (folder / "modules.json").exists():
        return Content.sentence_transformer
    config = read_json(folder / CONFIG) if (folder / CONFIG).exists() else None
    return _described(config) if isinstance(config, dict) else None


def _described(config: dict[str, Any]) -> Content | None:
    if FORM in config:
        return Content.exported_student if config.get("id2label") else Content.exported_encoder
    trained = {MODEL_TYPE: Content.student, ENCODER_TYPE: Content.encoder}
    if config.get("model_type") in trained:
        return trained[config["model_type"]]
    if is_classifier(config):
        return Content.teacher
    return Content.model if "model_type" in config else None

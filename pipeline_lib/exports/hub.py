"""A student as a folder for the Hugging Face hub, which transformers loads without this library.

The folder is the student's own with more keys in ``config.json``, the code of its network and a model card, so that
this library can read it too.
"""

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path, copy_file, read_record, write_json
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.exports.card.card import model_card
from pipeline_lib.exports.folders import (
    READS,
    copy_code,
    padding_number,
    require_new_folder,
    require_own_code,
    unknown_number,
)
from pipeline_lib.models.folders import ENCODER_TYPE, STRETCHES, TEMPERATURE, stretches_of, temperature_of
from pipeline_lib.models.students.student import Student, load_student
from pipeline_lib.text.pieces import SEGMENTS, Pieces

MODULE = "distilled_student"
"""The file with the classes for transformers, below :mod:`pipeline_lib.models.networks`."""
COPIED = ("model.safetensors", "tokenizer.json")


def export_hub(folder: Path, out: Path) -> str:
    """Write the student in ``folder`` to the new folder ``out``; return a one-line summary.

    If it is in its place below ``data/students``, its temperature is included, and its scores are in the card.
    """
    from pipeline_lib.models.networks import distilled_student

    config = read_record(folder / "config.json")
    if isinstance(config, dict) and config.get("model_type") == ENCODER_TYPE:
        raise PotstillError(
            f"{folder}: a sentence encoder, which has no classes. Export it with --to sentence-transformers."
        )
    student = load_student(folder)
    settings = student.model.config.settings
    require_own_code(folder, student.model.encoder)
    require_new_folder(out)
    for file in COPIED:
        copy_file(folder / file, out / file)
    copy_code(distilled_student, out)
    reading = _tokenizer(student, folder, out)
    with atomic_path(out / "README.md") as temporary:
        temporary.write_text(model_card(folder, student), encoding="utf-8")
    names = student.label_names
    model = "StudentForSequenceClassification"
    classes = {"AutoConfig": "ExportedStudentConfig", "AutoModelForSequenceClassification": model}
    additions = {
        "architecture": settings.model_dump(),
        "joint": settings.joint,
        READS: settings.reads,
        "auto_map": {auto: f"{MODULE}.{name}" for auto, name in classes.items()},
        "problem_type": KINDS[student.kind].problem_type,
        TEMPERATURE: temperature_of(folder),
        STRETCHES: stretches_of(folder),
    }
    # Written last: without it, a half-written folder cannot be loaded.
    write_json(out / "config.json", config | additions | reading)
    return f"{len(names)} output{'s' * (len(names) > 1)}; read its README.md"


def _tokenizer(student: Student, folder: Path, out: Path) -> dict[str, Any]:
    """Write the tokenizer's configuration for transformers; return the model's keys for its input.

    A student that reads the sentences of a pair separately finds the second one by its segment.
    """
    tokenizer, settings, pair = student.tokenizer, student.model.config.settings, student.is_pair
    apart = settings.reads != "sequence"
    config = read_record(folder / "tokenizer_config.json")
    config["model_max_length"] = settings.max_words * (2 if pair and apart else 1)
    reading = {
        "padding": padding_number(tokenizer),
        "unknown": unknown_number(tokenizer),
        "closing": len(_special(tokenizer.tokenizer)[1]) if isinstance(tokenizer, Pieces) else 0,
        "segments": False,
    }
    if pair:
        config |= {"tokenizer_class": "PairTokenizer"}
        config["auto_map"] = {"AutoTokenizer": [None, f"{MODULE}.PairTokenizer"]}
        reading["segments"] = not apart and tokenizer.segments
    if pair and apart:
        config["model_input_names"] = ["input_ids", "attention_mask", SEGMENTS]
    if pair and settings.reads == "sentences":
        with atomic_path(out / "tokenizer.json") as temporary:
            temporary.write_text(_apart(tokenizer.tokenizer).to_str(pretty=True), encoding="utf-8")
    write_json(out / "tokenizer_config.json", config)
    return reading


def _special(tokenizer: Tokenizer) -> tuple[list[str], list[str]]:
    """Return the special tokens before a sentence, and those after it."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    encoding = tokenizer.encode("a")
    bare = len(tokenizer.encode("a", add_special_tokens=False).ids)
    begins = [*encoding.special_tokens_mask, 0].index(0)
    return encoding.tokens[:begins], encoding.tokens[begins + bare :]


def _apart(tokenizer: Tokenizer) -> Tokenizer:
    """Return a tokenizer that gives each sentence of a pair its own special tokens."""
    opening, closing = _special(tokenizer)
    copied = Tokenizer.from_str(tokenizer.to_str())
    single = [*opening, "$A", *closing]
    copied.post_processor = TemplateProcessing(
        single=single,
        pair=[f"{sign}:0" for sign in single] + [f"{sign.replace('$A', '$B')}:1" for sign in single],
        special_tokens=[(sign, tokenizer.token_to_id(sign)) for sign in {*opening, *closing}],
    )
    return copied

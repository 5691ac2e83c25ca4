"""A student as a folder for the Hugging Face hub, which transformers loads without this library.

``AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True)`` gives the
logits that ``distill predict`` has.  The folder is the student's own with more keys in
``config.json``, the files of its network and a model card, so that this library reads it too.
"""

import shutil
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.base.files import atomic_path, read_json, write_json
from pipeline_lib.evaluation.companions import TEMPERATURE, temperature_of
from pipeline_lib.exports.card import model_card
from pipeline_lib.students.sentence_encoder import ENCODER_TYPE
from pipeline_lib.students.student import Student, load_student
from pipeline_lib.text.pieces import SEGMENTS, Pieces
from pipeline_lib.text.ragged import PAD_ID
from pipeline_lib.text.words import MASK

MODULES = ("distilled_student", "distilled_encoder")
"""The files of the network; the first one imports the other."""
COPIED = ("model.safetensors", "tokenizer.json")


def export_hub(folder: Path, out: Path) -> str:
    """Write the student in ``folder`` to the new folder ``out``; return what to say of it.

    Its temperature goes along, if it is in its place below ``data/students``; and so do the scores,
    into the card.

    :raises DistilleryError: if there is no student in ``folder``, one of an architecture that has
        no such form, or if anything lies in ``out``.
    """
    from pipeline_lib.exports.distilled_student import READERS

    config = read_json(folder / "config.json")
    if isinstance(config, dict) and config.get("model_type") == ENCODER_TYPE:
        raise DistilleryError(
            f"{folder}: a sentence encoder, which has no classes. Export it with --to "
            "sentence-transformers."
        )
    student = load_student(folder)
    name = student.model.config.settings.name()
    if name not in READERS:
        raise DistilleryError(
            f"{folder}: a {name} student has no form for the hub. Export one of "
            f"{', '.join(READERS)}."
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DistilleryError(f"{out}: there is something here already. Name a new folder.")
    for file in COPIED:
        _copy(folder / file, out / file)
    for module in MODULES:
        _copy(Path(__file__).with_name(f"{module}.py"), out / f"{module}.py")
    reading = _tokenizer(student, folder, out)
    with atomic_path(out / "README.md") as temporary:
        temporary.write_text(model_card(folder, student), encoding="utf-8")
    names = student.label_names
    classes = {"AutoConfig": "StudentConfig"}
    classes["AutoModelForSequenceClassification"] = "StudentForSequenceClassification"
    own = {
        "auto_map": {auto: f"{MODULES[0]}.{name}" for auto, name in classes.items()},
        "problem_type": "regression" if len(names) == 1 else "single_label_classification",
        TEMPERATURE: temperature_of(folder),
    }
    # Last: without it nothing is loaded from a folder that was left half written.
    write_json(out / "config.json", config | own | reading)
    return f"{len(names)} output{'s' * (len(names) > 1)}; read its README.md"


def _tokenizer(student: Student, folder: Path, out: Path) -> dict[str, Any]:
    """Write how transformers is to tokenize; return how the model is to read what that gives.

    A student that reads the sentences of a pair apart finds the second one by its segment.
    """
    own, settings, pair = student.tokenizer, student.model.config.settings, student.is_pair
    apart, pieces = settings.reads != "sequence", isinstance(own, Pieces)
    config = read_json(folder / "tokenizer_config.json")
    config["model_max_length"] = settings.max_words * (2 if pair and apart else 1)
    reading = {"padding": PAD_ID, "closing": 0, "segments": False}
    if pieces:
        unknown = None if own.unknown is None else own.tokenizer.token_to_id(own.unknown)
        reading |= {"padding": own.pad_id, "unknown": unknown or own.pad_id}
        reading["closing"] = len(_special(own.tokenizer)[1])
    else:
        reading["unknown"] = own.token_to_id(MASK)
    if pair:
        config |= {"tokenizer_class": "PairTokenizer"}
        config["auto_map"] = {"AutoTokenizer": [None, f"{MODULES[0]}.PairTokenizer"]}
        reading["segments"] = not apart and own.segments
    if pair and apart:
        config["model_input_names"] = ["input_ids", "attention_mask", SEGMENTS]
    if pair and settings.reads == "sentences":
        with atomic_path(out / "tokenizer.json") as temporary:
            temporary.write_text(_apart(own.tokenizer).to_str(pretty=True), encoding="utf-8")
    write_json(out / "tokenizer_config.json", config)
    return reading


def _special(tokenizer: Tokenizer) -> tuple[list[str], list[str]]:
    """Return the special tokens that are put before a sentence, and those behind it."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    found = tokenizer.encode("a")
    bare = len(tokenizer.encode("a", add_special_tokens=False).ids)
    begins = [*found.special_tokens_mask, 0].index(0)
    return found.tokens[:begins], found.tokens[begins + bare :]


def _apart(tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer that gives each sentence of a pair special tokens of its own."""
    opening, closing = _special(tokenizer)
    copied = Tokenizer.from_str(tokenizer.to_str())
    single = [*opening, "$A", *closing]
    copied.post_processor = TemplateProcessing(
        single=single,
        pair=[f"{part}:0" for part in single]
        + [f"{part.replace('$A', '$B')}:1" for part in single],
        special_tokens=[(sign, tokenizer.token_to_id(sign)) for sign in {*opening, *closing}],
    )
    return copied


def _copy(source: Path, target: Path) -> None:
    with atomic_path(target) as temporary:
        shutil.copyfile(source, temporary)

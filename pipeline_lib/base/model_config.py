"""A pretrained model's config.json, as it is, and the sizes that it says.

transformers itself accepts what later crashes, and families of models have different keys.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline_lib.base.errors import PotstillError, reason_of
from pipeline_lib.base.files import check_no_pointer, read_json, write_json
from pipeline_lib.base.kinds import KINDS

COUNTS = (
    "vocab_size", "type_vocab_size", "pad_token_id", "num_labels", "max_position_embeddings",
    "n_positions", "num_hidden_layers", "n_layers", "num_attention_heads", "n_heads",
    "hidden_size", "dim",
)  # fmt: skip
SIGNED = {"pad_token_id", "max_position_embeddings"}
"""Those that are -1 where a model has no padding, or no limit."""
READ: dict[str, tuple[type, str]] = {
    **dict.fromkeys(COUNTS, (int, "a whole number")),
    **dict.fromkeys(("model_type", "problem_type"), (str, "a text")),
    "architectures": (list, "a list of texts"),
    "id2label": (dict, "an object of names by number"),
}
"""The keys that are read here, each with its type in Python and in words; null is as good as none."""


def check_is_model(folder: Path, origin: Path | str | None = None) -> None:
    """Check by its files that a folder is a whole model, none of which is read otherwise than it was saved.

    :param origin: where the model came from, for messages; None: the folder.
    """
    origin, folder = folder if origin is None else origin, Path(folder)
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if names:
        check_no_pointer(folder)
    if "adapter_config.json" in names:
        raise PotstillError(
            f"{origin}: a PEFT adapter (adapter_config.json), which is not read. Merge it into its base with "
            "merge_and_unload(), save that with save_pretrained, and give its folder."
        )
    has_weights = any(name.endswith((".safetensors", ".safetensors.index.json")) for name in names)
    for there, what in (("config.json" in names, "config.json"), (has_weights, "*.safetensors")):
        if not there:
            inner = [name for name in sorted(names) if (folder / name / "config.json").is_file()]
            raise PotstillError(
                f"{origin}: no {what} here, but a model in {', '.join(inner)}. Name that folder."
                if inner
                else f"{origin}: no {what}, so this is no model that can be loaded. Load it where you trained it, and "
                "save it with save_pretrained(folder, safe_serialization=True)."
            )
    if read_config(folder, origin).get("quantization_config"):
        raise PotstillError(f"{origin}: its weights are quantised (quantization_config). Give the model unquantised.")


def unused_files(folder: Path) -> list[str]:
    """Return what is in a model's folder and is not applied here: SetFit's head, dense layers above the encoder."""
    path, unused = folder / "modules.json", ["model_head.pkl"] if (folder / "model_head.pkl").exists() else []
    modules = read_json(path) if path.exists() else []
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise PotstillError(f"{path}: not a list of modules. Save the model again with sentence-transformers.")
    types = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    return unused + [name for name in types if name not in ("Transformer", "Pooling", "Normalize")]


def read_config(folder: Path, origin: Path | str | None = None) -> dict[str, Any]:
    """Return a model folder's config.json.

    :param origin: where the model came from, for messages; None: the folder.
    """
    origin = folder if origin is None else origin
    try:
        config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise PotstillError(
            f"{origin}: config.json cannot be read ({error.strerror}). Save the model again."
        ) from error
    # Thousands of nested lists raise a RecursionError.
    except (ValueError, RecursionError) as error:
        raise PotstillError(
            f"{origin}: config.json is not valid JSON ({reason_of(error)}). Save the model again."
        ) from error
    if not isinstance(config, dict):
        raise PotstillError(
            f"{origin}: config.json holds a {type(config).__name__}, not an object of settings. "
            "Save the model again with save_pretrained."
        )
    for key, (kind, words) in READ.items():
        value = config.get(key)
        is_negative = kind is int and key not in SIGNED and _is_of(value, int) and value < 0
        if is_negative or (value is not None and not _is_of(value, kind)):
            raise PotstillError(
                f"{origin}: {key} in config.json is {json.dumps(value)[:80]}, not {words}. "
                "Correct it, or save the model again."
            )
    return config


def output_names(config: dict[str, Any], origin: Path | str) -> list[str]:
    """Return the names of a model's outputs by number; default ones where it has none."""
    names = config.get("id2label") or {}
    if not names:
        # transformers omits both from the file for its default, two labels.
        return [f"LABEL_{number}" for number in range(config.get("num_labels", 2))]
    numbers = [str(number) for number in range(len(names))]
    if sorted(names) != sorted(numbers):
        raise PotstillError(
            f"{origin}: id2label in config.json has the keys {', '.join(names)}, not the numbers "
            f"from 0 to {len(names) - 1}. Correct it, or remove it to have them by number."
        )
    return [str(names[number]) for number in numbers]


def name_outputs(folder: Path, labels: list[str]) -> None:
    """Rename a model folder's outputs to the task's names, by class number, in its config.json.

    The file is replaced, never modified in place: it may share its bytes with the user's.
    """
    config = read_config(folder, folder)
    if config.get("id2label") == {str(number): name for number, name in enumerate(labels)}:
        return
    config["id2label"] = {str(number): name for number, name in enumerate(labels)}
    config["label2id"] = {name: number for number, name in enumerate(labels)}
    config.pop("num_labels", None)  # counted from the names
    write_json(folder / "config.json", config)


def is_classifier(config: Mapping[str, Any]) -> bool:
    """Whether a model has a head that classifies: by its class, or one of ours, beside its encoder."""
    heads = config.get("architectures") or []
    return has_pooled_head(config) or any(head.endswith("ForSequenceClassification") for head in heads)


def is_language_model(config: Mapping[str, Any]) -> bool:
    """Whether a model predicts the next token, by its class."""
    return any(head.endswith(("ForCausalLM", "LMHeadModel")) for head in config.get("architectures") or [])


def has_pooled_head(config: Mapping[str, Any]) -> bool:
    """Whether a model's head is a linear layer over the mean of its states, which transformers has no class for."""
    return config.get("pooling") == "mean"


def check_problem_type(config: dict[str, Any], origin: Path | str, kind: str) -> None:
    """Check that a fine-tuned model was trained to answer as a task of this kind needs.

    The outputs of a model of several labels per text are no alternatives: their softmax says
    nothing.  A model that does not say what it was trained for is taken for one of alternatives.
    """
    trained, needed = config.get("problem_type"), KINDS[kind].problem_type
    if trained is None and KINDS[kind].has_several:
        trained = "missing"
    if trained not in (None, needed):
        raise PotstillError(
            f"{origin}: problem_type in config.json is {trained}, and a task of `kind: {kind}` "
            f"needs {needed}. Give a teacher of that kind, or have one tuned here (`kind: "
            "single`); if its outputs are meant to be read so, set "
            f'"problem_type": "{needed}" in config.json.'
        )


def _is_of(value: Any, kind: type) -> bool:
    if isinstance(value, bool) or not isinstance(value, kind):
        return False
    return kind is not list or all(isinstance(item, str) for item in value)


OFFSET = {
    "camembert", "data2vec-text", "esm", "ibert", "layoutlmv3", "lilt", "longformer", "luke",
    "markuplm", "mpnet", "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
}  # fmt: skip
"""Model types whose positions start after the padding token's id, as in RoBERTa."""


def position_count(config: Mapping[str, Any]) -> int | None:
    """Return how many positions a model with this configuration has, or None if unlimited."""
    if config.get("relative_attention") and not config.get("position_biased_input", True):
        # DeBERTa-v3 sees distances alone, and far ones alike.
        return None
    total = config.get("max_position_embeddings") or config.get("n_positions")
    if not isinstance(total, int) or total < 1:
        return None
    if config.get("model_type") not in OFFSET:
        return total
    padding = config.get("pad_token_id")
    return total - (1 if padding is None else padding) - 1


def layer_count(config: Mapping[str, Any]) -> int | None:
    """Return how many layers a model has, or None if its configuration does not say."""
    return config.get("num_hidden_layers") or config.get("n_layers")


def head_count(config: Mapping[str, Any]) -> int | None:
    """Return how many heads a layer's attention has, or None."""
    return config.get("num_attention_heads") or config.get("n_heads")


def layer_width(config: Mapping[str, Any]) -> int | None:
    """Return the size of a layer's hidden state, or None if the configuration does not say."""
    return config.get("hidden_size") or config.get("dim")

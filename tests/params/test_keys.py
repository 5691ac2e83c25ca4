"""Every section of params.yaml: unknown and missing keys, numbers and seeds that cannot be used."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline_lib.params.removed import REMOVED
from tests.params.variants import RETRIEVAL, TUNING, VARIANTS, changed, error_of

# Mappings whose keys the user chooses.
FREE = re.compile(
    r"(tasks|transfer|models|teachers|students|optimisers|encoders|joint|methods|retrieval"
    r"|similarity|(encoders|joint)\.\w+\.tasks|tasks\.\w+\.labels"
    r"|tasks\.\w+\.source\.(files|splits)|retrieval\.\w+\.systems)$"
)
OPTIONAL = {"iterations", "baseline", "warmup", "max_steps", "evaluate_every", "clip_norm", "tags", "wikipedia"}
OPTIONAL |= {"p_mask", "p_pos", "p_ngram", "ngram_max", "teacher", "approximate", "rank"}
ROWS = "tasks|methods|transfer|models|teachers|students|optimisers|encoders|joint|retrieval"


def mappings(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
        for key, inner in value.items():
            yield from mappings(inner, f"{path}.{key}" if path else str(key))


def fixed_mappings() -> list[tuple[str, str]]:
    return [
        (variant, path)
        for variant, changes in VARIANTS.items()
        for path, _ in mappings(changed(changes))
        if not FREE.match(path) and is_own(path, changes)
    ]


def is_own(path: str, changes: dict[str, Any]) -> bool:
    """Return whether a variant changes ``path``; the rest is tried with the shipped file alone."""
    return not changes or path.startswith(tuple(changes))


def test_the_walk_meets_every_section() -> None:
    paths = fixed_mappings()
    assert len(paths) > 25
    met = {re.sub(rf"^({ROWS})\.\w+", r"\1", p) for _, p in paths}
    fields = {"tasks.source", "tasks.split", "tasks.augment", "tasks.labels.negative", "joint"}
    fields |= {"", "models", "teachers.tuning", "methods.objective", "vocabulary.vectors"}
    fields |= {"retrieval.source", "retrieval.teacher", "retrieval.systems.read"}
    assert fields <= met


@pytest.mark.parametrize(("variant", "path"), fixed_mappings())
def test_an_unknown_key_is_refused_everywhere(variant: str, path: str) -> None:
    raw = changed(VARIANTS[variant])
    dict(mappings(raw))[path]["zzz_unknown"] = 1
    if path.endswith(".objective"):
        # Its keys are the terms that there are.
        assert f"params.yaml: {path}: no term 'zzz_unknown'; there are" in error_of(raw)
        return
    dotted = f"{path}.zzz_unknown" if path else "zzz_unknown"
    assert f"params.yaml: {dotted}: unknown key." in error_of(raw)


@pytest.mark.parametrize(("variant", "path"), fixed_mappings())
def test_every_missing_key_is_refused(variant: str, path: str) -> None:
    if path.endswith(".objective"):
        # Its weights are optional, but not all of them.
        raw = changed(VARIANTS[variant])
        dict(mappings(raw))[path].clear()
        assert f"{path}: the weights" in error_of(raw)
        return
    for key in dict(mappings(changed(VARIANTS[variant])))[path].keys() - OPTIONAL - ({"tasks"} if path else set()):
        raw = changed(VARIANTS[variant])
        del dict(mappings(raw))[path][key]
        dotted = f"{path}.{key}" if path else key
        assert f"params.yaml: {dotted}: missing." in error_of(raw)


def test_a_misspelt_key_gets_a_suggestion() -> None:
    raw = changed({})
    raw["teachers"]["minilm"]["max_lenght"] = raw["teachers"]["minilm"].pop("max_length")
    message = error_of(raw)
    assert "teachers.minilm.max_lenght: unknown key" in message and "did you mean `max_length`" in message
    assert "teachers.minilm.max_length: missing" in message


def test_a_long_value_is_cut_visibly() -> None:
    raw = changed({"teachers.minilm.model": ["minilm"] * 10})
    shown = repr(["minilm"] * 10)[:57]
    assert error_of(raw).endswith(f"Input should be a valid string (found {shown}...)")


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_number_can_be_infinite_or_none(variant: str) -> None:
    changes = VARIANTS[variant]
    numbers = [
        (path, [bad] if isinstance(value, list) else bad)
        for path, value in leaves(changed(changes))
        for bad in (float("nan"), float("inf"))
        if any(isinstance(v, float) for v in (value if isinstance(value, list) else [value])) and is_own(path, changes)
    ]
    wanted = {f"{TUNING}.learning_rates", "students.bilstm.dropout"}
    assert changes or wanted <= dict(numbers).keys()
    for path, bad in numbers:
        assert f"params.yaml: {path}" in error_of(changed(changes | {path: bad}))


@pytest.mark.parametrize(
    ("dotted", "value"),
    [
        ("optimisers.short.clip_norm", float("inf")),
        ("methods.bilstm.objective", {"labels": float("nan")}),
        ("methods.bilstm.objective.temperature", float("nan")),
        ("students.bilstm.hidden", 10**12),
        ("optimisers.short.epochs", 10**20),
        ("tasks.movies.augment.n_iter", -1),
        ("tasks.movies.augment.n_iter", 2**31),
        ("vocabulary.extra_words", -1),
        *(("seeds", [seed]) for seed in (-1, 2**32, 10**30, 1.0, True, "1")),
    ],
)
def test_numbers_that_cannot_be_used_name_their_key(dotted: str, value: Any) -> None:
    assert error_of(changed({dotted: value})).startswith(f"params.yaml: {dotted}")


NAMES = {"tasks": "movies", "teachers": "minilm", "transfer": "full", "encoders": "sra"}
NAMES |= {"methods": "bilstm", "joint": "mtl", "retrieval": "mine", "systems": "sra"}


@pytest.mark.parametrize(("pattern", "use"), REMOVED.items())
def test_a_key_that_is_gone_says_what_to_use(pattern: str, use: str) -> None:
    keys = pattern.split(".")
    dotted = ".".join(NAMES[keys[i - 1]] if key == "*" else key for i, key in enumerate(keys))
    raw = changed({"engine": {"kind": "local"}, "retrieval": {"mine": RETRIEVAL}, dotted: None})
    assert f"params.yaml: {dotted}: this key is gone. Remove it: {use}." in error_of(raw)

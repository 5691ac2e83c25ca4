"""A model that a user brings as a folder: ``init`` and ``check`` take it, or name what is wrong."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file, save_file

from pipeline_lib import load_teacher
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.params import load_params
from pipeline_lib.params.preflight import check_model
from tests.kit.hub_folders import change_json, write_classifier
from tests.onboarding.made_up import review, write_csv, write_reviews

from .running import Fails, distill

FAMILIES = ["albert", "bert", "deberta-v2", "gpt2", "modernbert", "xlm-roberta"]
NAMES = ["bad", "good"]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_classifier(tmp_path_factory.mktemp("good") / "bert", "bert", NAMES)


def test_a_folder_of_any_architecture_is_taken() -> None:
    write_reviews(Path("reviews.csv"))
    for family in FAMILIES:
        write_classifier(Path(family), family, NAMES)
        printed = distill("init", "reviews.csv", "--teacher", family, "--force")
        assert f"{family}, used as it is" in printed and "params.yaml is valid." in printed
        [teacher] = load_params().teachers.values()
        assert teacher.max_length == (128 if family == "deberta-v2" else 64)


def test_an_encoder_with_sentence_transformers_files_is_tuned(
    good: Path, fails: Fails, caplog: pytest.LogCaptureFixture
) -> None:
    write_reviews(Path("reviews.csv"))
    shutil.copytree(good, "e5")
    change_json(Path("e5/config.json"), architectures=["BertModel"])
    modules = ("transformers.Transformer", "sentence_transformers.models.Pooling", "sentence_transformers.models.Dense")
    Path("e5/modules.json").write_text(json.dumps([{"type": module} for module in modules]))
    Path("e5/model_head.pkl").touch()
    assert "e5, fine-tuned here" in distill("init", "reviews.csv", "--teacher", "e5", "--force")
    assert "e5: model_head.pkl, Dense: not used" in caplog.text
    # With more layers in config.json the new ones would be random.
    change_json(Path("e5/config.json"), num_hidden_layers=3)
    assert "models.e5: " in (error := fails("check")) and "its weights lack" in error
    shutil.copytree(good, "old/0_Transformer")
    Path("old/config.json").write_text("{}")
    error = fails("init", "reviews.csv", "--teacher", "old", "--force")
    assert "no *.safetensors here, but a model in 0_Transformer" in error


def move_inside(folder: Path) -> None:
    for name in ("checkpoint-250", "checkpoint-500"):
        shutil.copytree(folder, folder.parent / "out" / name)
    shutil.rmtree(folder)
    (folder.parent / "out").rename(folder)


LAYOUTS: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: (folder / "adapter_config.json").write_text("{}"), "a PEFT adapter .* Merge it into its base"),
    (
        lambda folder: [(folder / "config.json").rename(folder / "adapter_config.json")],
        "a PEFT adapter .* Merge it into its base",
    ),
    (lambda folder: change_json(folder / "config.json", quantization_config={"bits": 4}), "weights are quantised"),
    (move_inside, "it contains checkpoint-250, checkpoint-500|a model in checkpoint-250, checkpoint-500"),
    (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "safe_serialization=True"),
    (lambda folder: (folder / "tokenizer.json").write_text("version https://git-lfs"), "git lfs pull"),
]


@pytest.mark.parametrize(("change", "message"), LAYOUTS)
def test_what_is_no_whole_model_is_named_at_every_door(
    good: Path, change: Callable[[Path], object], message: str, fails: Fails
) -> None:
    write_reviews(Path("reviews.csv"))
    shutil.copytree(good, "brought")
    change(Path("brought"))
    assert re.search(message, fails("init", "reviews.csv", "--teacher", "brought", "--force").replace("\n", " "))
    with pytest.raises(PotstillError, match=message):
        load_teacher("brought")
    with pytest.raises(PotstillError, match=message):
        check_model(Path("brought"))


def test_a_finished_teacher_says_whether_numbers_are_classes(good: Path, fails: Fails) -> None:
    rows = [[review(number), str(1 + number % 5)] for number in range(60)]
    write_csv(Path("stars.csv"), ["review", "stars"], rows)
    for names in (["stars"], list("12345")):
        folder = write_classifier(Path(f"of_{len(names)}"), "bert", names)
        # Its weights are drawn at random: the scores are in no unit.
        printed = distill("init", "stars.csv", "--teacher", str(folder), "--force", "--force-teacher")
        assert load_params().tasks["stars"].kind == ("regression" if len(names) == 1 else "classification")
        assert ("another unit than the labels" in printed) == (len(names) == 1)
        [teacher] = load_params().teachers.values()
        assert teacher.tuning.force
    assert "To use it all the same, give --force-teacher" in fails("init", "stars.csv", "--teacher", "of_1", "--force")
    error = fails("init", "stars.csv", "--teacher", "of_1", "--kind", "classification", "--force")
    assert "--teacher of_1: its config.json is of a regression" in error


def config(**changes: object) -> Callable[[Path], None]:
    return lambda folder: change_json(folder / "config.json", **changes)


def text(name: str, content: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(content, errors="surrogateescape") and None


def without(*names: str) -> Callable[[Path], None]:
    def remove(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return remove


def truncated(name: str) -> Callable[[Path], None]:
    def cut(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return cut


def both(*damages: Callable[[Path], None]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        for one in damages:
            one(folder)

    return damage


def tensors(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        changed = change(load_file(folder / "model.safetensors"))
        save_file(changed, folder / "model.safetensors", {"format": "pt"})

    return damage


def more_pieces(folder: Path) -> None:
    """Give the tokenizer words for which the model has no embedding."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocab = tokenizer["model"]["vocab"]
    vocab |= {f"word{number}": len(vocab) + number for number in range(5)}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def not_finite(weights: dict[str, Any]) -> dict[str, Any]:
    return {name: values * float("nan") for name, values in weights.items()}


def prefixed(weights: dict[str, Any]) -> dict[str, Any]:
    return {f"module.{name}": values for name, values in weights.items()}


def tokenizer_config(**changes: object) -> Callable[[Path], None]:
    return lambda folder: change_json(folder / "tokenizer_config.json", **changes)


def tokenizer_of(words: str, settings: str) -> Callable[[Path], None]:
    return both(NO_TOKENIZER, text("vocab.txt", words), text("tokenizer_config.json", settings))


NO_TOKENIZER = without("tokenizer.json", "tokenizer_config.json")
DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "no weights": (without("model.safetensors"), "no *.safetensors"),
    "a pickle": (both(without("model.safetensors"), text("pytorch_model.bin", "x")), "no *.safetensors"),
    "weights cut": (truncated("model.safetensors"), "model.safetensors"),
    "a pointer": (text("model.safetensors", "version https://git-lfs"), "git lfs pull"),
    "weights of another prefix": (tensors(prefixed), "its weights lack"),
    "weights of no number": (tensors(not_finite), "its weights have NaN"),
    "no tokenizer": (NO_TOKENIZER, "no tokenizer"),
    "vocab.json alone": (both(NO_TOKENIZER, text("vocab.json", '{"a": 0}'), config(model_type="gpt2")), "vocab.json"),
    "sentencepiece": (both(NO_TOKENIZER, text("spiece.model", "x")), "spiece.model"),
    "another's vocab.txt": (tokenizer_of("", "{}"), "BertTokenizer has no word"),
    "in Python alone": (
        both(tokenizer_of("film 1\n", '{"tokenizer_class": "BertweetTokenizer"}'), text("bpe.codes", "f i 1\n")),
        "BertweetTokenizer (vocab.txt, bpe.codes) is a tokenizer in Python alone",
    ),
    "an unknown tokenizer": (tokenizer_of("film\n", '{"tokenizer_class": "FooTokenizer"}'), "tokenizer"),
    "tokenizer cut": (truncated("tokenizer.json"), "tokenizer.json is not valid JSON"),
    "tokenizer empty": (text("tokenizer.json", ""), "tokenizer.json is not valid JSON"),
    "tokenizer a list": (text("tokenizer.json", "[]"), "tokenizer.json holds a list"),
    "tokenizer of nothing": (text("tokenizer.json", "{}"), "tokenizer.json is not one"),
    "tokenizer deep": (text("tokenizer.json", "[" * 100_000), "tokenizer.json is not valid JSON"),
    "tokenizer settings cut": (truncated("tokenizer_config.json"), "tokenizer_config.json"),
    "tokenizer settings a list": (text("tokenizer_config.json", "[]"), "tokenizer_config.json"),
    "special tokens a list": (text("special_tokens_map.json", "[]"), "special_tokens_map.json"),
    "padding a number": (tokenizer_config(pad_token=3), "pad_token"),
    "inputs a number": (tokenizer_config(model_input_names=3), "tokenizer_config.json"),
    "ids too large": (more_pieces, "its tokenizer counts pieces up to"),
    "no config": (without("config.json"), "config.json"),
    "config cut": (truncated("config.json"), "config.json is not valid JSON"),
    "config a list": (text("config.json", "[]"), "config.json holds a list"),
    "config deep": (text("config.json", '{"a":' * 100_000), "config.json is not valid JSON"),
    "config of bytes": (text("config.json", "\udcff\udcfe"), "config.json is not valid JSON"),
    "no model_type": (config(model_type=...), "the model_type in config.json is null"),
    "unknown model_type": (config(model_type="foo"), 'the model_type in config.json is "foo"'),
    "code of its own": (config(model_type="foo", auto_map={"AutoConfig": "configuration_foo.FooConfig"}), "auto_map"),
    "encoder with decoder": (config(model_type="t5"), "an encoder with a decoder (t5)"),
    "another model_type": (config(model_type="distilbert"), "its weights"),
    "model_type a number": (config(model_type=3), "model_type in config.json is 3"),
    "hidden_size a text": (config(hidden_size="16"), "hidden_size in config.json"),
    "hidden_size another": (config(hidden_size=32), "by config.json"),
    "no heads": (config(num_attention_heads=0), "config.json"),
    "heads that do not divide": (config(num_attention_heads=3), "config.json"),
    "an unknown activation": (config(hidden_act="foo"), "unknown key 'foo'"),
    "an activation of a number": (config(hidden_act=3), "config.json"),
    "dropout a text": (config(hidden_dropout_prob="much"), "hidden_dropout_prob"),
    "vocab_size negative": (config(vocab_size=-1), "config.json"),
    "layers negative": (config(num_hidden_layers=-1), "num_hidden_layers in config.json is -1"),
    "more layers": (config(num_hidden_layers=3), "its weights lack"),
    "fewer layers": (config(num_hidden_layers=1), "for which config.json has no layer"),
    "pad beyond the vocabulary": (config(pad_token_id=1000), "config.json"),
    "positions too few": (config(max_position_embeddings=4), "position"),
    "labels a list": (config(id2label=["bad", "good"]), "id2label in config.json"),
    "labels by name": (config(id2label={"bad": 0, "good": 1}), "id2label in config.json"),
    "a head that is a number": (config(architectures=[3]), "architectures in config.json"),
    "several labels at once": (config(problem_type="multi_label_classification"), "config.json is multi_"),
    "a score": (config(problem_type="regression"), "problem_type in config.json is regression"),
    "an unknown problem": (config(problem_type="foo"), "problem_type in config.json is foo"),
    "one output": (config(id2label={"0": "score"}, label2id={"score": 0}), "labels"),
}


def test_damage_is_one_line_at_init_and_check(good: Path, fails: Fails) -> None:
    write_reviews(Path("reviews.csv"))
    shutil.copytree(good, "bert")
    init = ["init", "reviews.csv", "--teacher", "bert", "--force"]
    distill(*init)
    before = {path: path.read_bytes() for path in Path().rglob("*.yaml")}
    for number, (name, (damage, named)) in enumerate(DAMAGES.items()):
        shutil.rmtree("bert")
        shutil.copytree(good, "bert")
        damage(Path("bert"))
        # Both load the model in the same way, and each time takes a second.
        for command in [["check"], init][: 1 + (number % 8 == 0)]:
            error = fails(*command)
            assert error.startswith("error: ") and error.count("\n") == 1, name
            assert named in error and "bert" in error and len(error) < 700, name
    assert {path: path.read_bytes() for path in Path().rglob("*.yaml")} == before

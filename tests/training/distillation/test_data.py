"""Which rows of a transfer set are trained on, and what stands in for labels that are missing."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer, models

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.models.students.tokenise import write_tokenizer
from pipeline_lib.shards.columns import list_column, matrix
from pipeline_lib.shards.shard_sets import Manifest, SetReference, ShardSet, schema_of, write_manifest, write_shard
from pipeline_lib.text.pieces import load_pieces
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.distillation.encoded_sets import EncodedInput, EncodingPass
from tests.kit.encoded import dev_sentences, training_sentences
from tests.kit.pretrained import write_model
from tests.kit.shard_files import write_set

pytestmark = pytest.mark.usefixtures("store_home")

Sets = tuple[ShardSet, ShardSet]
WORDS = ["[PAD]", "[UNK]", "[MASK]", "a", "b", "c", "d"]
ORIGINALS = [("a", 1), ("b", 0)]
SYNTHETIC = [("c", [4.0, 0.0]), ("d", [0.2, 0.0]), ("a", [0.0, 3.0]), ("d", [9.0, 0.0])]
"""The third one has the words, and so the key, of an original, the last one those of another."""


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))


@pytest.fixture
def sets(tmp_path: Path) -> Sets:
    """Write two originals and three synthetic rows, with a teacher's logits for each."""
    tables = [
        _rows([w for w, _ in ORIGINALS], 0, [label for _, label in ORIGINALS]),
        _rows([w for w, _ in SYNTHETIC], 1, [None] * len(SYNTHETIC)),
    ]
    logits = [[[0.0, 1.0], [0.3, 0.0]], [given for _, given in SYNTHETIC]]
    inputs = write_set(tmp_path / "inputs", "transfer", {f"b000-i{i:03d}.arrow": t for i, t in enumerate(tables)})
    answers = [list_column(np.array(given, np.float32)) for given in logits]
    return inputs, write_answers(tmp_path / "outputs", "logits", inputs, [{"logits": column} for column in answers])


def write_answers(folder: Path, kind: str, inputs: ShardSet, columns: list[dict[str, pa.Array]]) -> ShardSet:
    shards = inputs.manifest.shards
    tables = [pa.table({"key": t["key"]} | own) for t, own in zip(inputs.tables(), columns, strict=True)]
    names = [shard.name for shard in shards]
    return write_set(folder, kind, dict(zip(names, tables, strict=True)), [shard.sha256 for shard in shards])


def _rows(words: list[str], iteration: int, labels: list[int | None]) -> pa.Table:
    return pa.table(
        {
            "key": pa.array([WORDS.index(word) for word in words], pa.uint64()),
            "iteration": pa.array([iteration] * len(words), pa.int32()),
            "label": pa.array(labels, pa.int32()),
            "text": words,
            "words": [[word] for word in words],
        }
    )


def read(sets: Sets, tokenizer: Tokenizer) -> list[str]:
    return [WORDS[i] for i in sentences(sets, tokenizer).ids]


def sentences(sets: Sets, tokenizer: Tokenizer) -> Sentences:
    return training_sentences(*sets, tokenizer, 10)


def test_which_rows_are_trained_on(sets: Sets, tokenizer: Tokenizer, tmp_path: Path) -> None:
    assert read(sets, tokenizer) == ["a", "b", "c", "d"]
    # The teachers answer stands in for a missing label.
    assert sentences(sets, tokenizer).targets["labels"].tolist() == [1, 0, 0, 0]
    # A missing label without a teacher is refused.
    with pytest.raises(PotstillError, match="4 training rows have no label"):
        training_sentences(sets[0], None, tokenizer, 10)
    # A text without words is one unknown word.
    table = _rows(["a", "b", "c"], 0, [1, 0, 1])
    table = table.set_column(table.column_names.index("words"), "words", [[["a"], [], ["c", "d"]]])
    dev = dev_sentences(write_set(tmp_path / "dev", "prepared", {"b000.arrow": table}), tokenizer, 10)
    rows = [dev.ids[slice(*dev.offsets[row : row + 2])].tolist() for row in range(3)]
    assert [[WORDS[i] for i in row] for row in rows] == [["a"], ["[MASK]"], ["c", "d"]]


def with_outputs(sets: Sets, folder: Path, weights: bool) -> ShardSet:
    """Write outputs without an answer to "b" and "c"; and weighted ones."""
    columns = []
    for number, table in enumerate(sets[1].tables()):
        logits = matrix(table["logits"]).copy()
        logits[1 - number] = np.nan
        weight = pa.array(np.arange(len(logits), dtype=np.float32) + number)
        columns.append({"logits": list_column(logits)} | ({"weight": weight} if weights else {}))
    return write_answers(folder, "logits", sets[0], columns)


def test_rows_without_an_answer_are_left_out(sets: Sets, tokenizer: Tokenizer, tmp_path: Path) -> None:
    own = sets[0], with_outputs(sets, tmp_path / "nan", weights=True)
    assert read(own, tokenizer) == ["a", "d"]
    assert sentences(own, tokenizer).targets["weights"].tolist() == [0.0, 2.0]
    assert np.isfinite(sentences(own, tokenizer).targets["logits"]).all()
    assert "weights" not in sentences(sets, tokenizer).targets
    # A teachers answers stand in for the labels of dev.
    outputs = with_outputs(sets, tmp_path / "nan", weights=False)
    write_tokenizer(tmp_path / "words", tokenizer)
    content = EncodedInput(*(SetReference.to(s.folder) for s in (sets[0], outputs)), prepared=True)
    found = EncodingPass.of(tmp_path / "words", 10).read(content)
    assert [WORDS[i] for i in found.ids] == ["a", "d", "a", "d"]
    # The first has a label of its own.
    assert found.targets["labels"].tolist() == [1, 0, 1, 0]


STATES = [np.arange(12, dtype=np.float16).reshape(2, 2, 3), np.arange(12, 36, dtype=np.float16).reshape(4, 2, 3)]
"""Of the originals and of the synthetic rows, two layers of three values."""


def write_states(folder: Path, inputs: ShardSet) -> SetReference:
    write_answers(folder, "states", inputs, [{"states": list_column(states)} for states in STATES])
    return SetReference.to(folder)


def test_states_stand_beside_the_rows_that_stay(sets: Sets, tokenizer: Tokenizer, tmp_path: Path) -> None:
    inputs, outputs = (SetReference.to(own.folder) for own in sets)
    states = write_states(tmp_path / "states", sets[0])
    write_tokenizer(tmp_path / "words", tokenizer)
    encoding = EncodingPass.of(tmp_path / "words", 10)
    found = encoding.read(EncodedInput(inputs, outputs, states=states))
    plain = encoding.read(EncodedInput(inputs, outputs))
    assert "states" not in plain.targets and "rows" not in found.targets
    assert found.ids.tolist() == plain.ids.tolist()
    assert [WORDS[i] for i in found.ids] == ["a", "b", "c", "d"]
    every = np.concatenate(STATES)
    np.testing.assert_array_equal(found.targets["states"][np.arange(4)], every[:4])
    batch = found.batch(np.array([1, 2]))
    assert batch["states"].shape == (2, 2, 3) and str(batch["states"].dtype) == "torch.float32"
    np.testing.assert_array_equal(batch["states"].numpy(), every[[1, 2]])
    assert len(found.targets["states"]) == len(found)


def test_states_of_other_rows_are_refused(sets: Sets, tokenizer: Tokenizer, tmp_path: Path) -> None:
    inputs = SetReference.to(sets[0].folder)
    states = write_states(tmp_path / "states", sets[0])
    shards = ShardSet.open(tmp_path / "states")
    other = replace(shards.manifest, shards=shards.manifest.shards[:1])
    write_manifest(tmp_path / "states", other)
    write_tokenizer(tmp_path / "words", tokenizer)
    encoding = EncodingPass.of(tmp_path / "words", 10)
    outputs = SetReference.to(sets[1].folder)
    with pytest.raises(PotstillError, match="it was changed since it was looked up"):
        encoding.read(EncodedInput(inputs, outputs, states=states))
    with pytest.raises(PotstillError, match="1 output shards for 2 input shards"):
        states = SetReference.to(tmp_path / "states")
        encoding.read(EncodedInput(inputs, outputs, states=states))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a tiny model whose mask is not BERT's."""
    return write_model(tmp_path_factory.mktemp("model"), "mpnet")


MASKED_PAIRS = [
    ("the [MASK] is good .", "a [MASK]", 0, [0, 1, 0, 0, 0], [0, 0]),
    ("films", "", 0, [0], []),
    ("not a plot is a plot", "dull", 1, [0, 0, 0, 0, 0, 0], [0]),
]
"""Two originals, one of which is about a mask in its second sentence, and a synthetic row."""


def write_pairs(folder: Path) -> SetReference:
    tables = {}
    for iteration in (0, 1):
        rows = [row for row in MASKED_PAIRS if row[2] == iteration]
        first, second, _, rules, rules_2 = (list(column) for column in zip(*rows, strict=True))
        kind = pa.list_(pa.int8())
        columns = {
            "key": pa.array([9] if iteration else range(len(rows)), pa.uint64()),
            "iteration": pa.array([iteration] * len(rows), pa.int32()),
            "label": pa.array([1] * len(rows), pa.int32()),
        }
        for side, texts, changes in (("", first, rules), ("_2", second, rules_2)):
            columns |= {f"text{side}": texts, f"words{side}": [text.split() for text in texts]}
            columns[f"rules{side}"] = pa.array(changes, kind)
        table = pa.table(columns)
        tables[f"b000-i{iteration:03d}.arrow"] = table
    write_set(folder, "transfer", tables)
    return SetReference.to(folder)


def signs(numbers: np.ndarray, model: Path) -> list[str]:
    tokenizer = load_pieces(model, "sequence").tokenizer
    return [tokenizer.id_to_token(int(number)) for number in numbers]


def rows_of(sentences: Sentences, model: Path) -> list[str]:
    ends = np.cumsum(np.diff(sentences.offsets))[:-1]
    return [" ".join(signs(row, model)) for row in np.split(sentences.ids, ends)]


def test_pieces_of_both_sentences_apart(tmp_path: Path, model: Path) -> None:
    content = EncodedInput(write_pairs(tmp_path / "inputs"))
    encoding = EncodingPass.of(model, 5, reads="pieces")
    found = encoding.read(content)
    first = ["the <mask> is good .", "film ##s"]
    second = ["a <unk> <unk> <unk>", "<unk>"]  # [MASK] in a text of its own is no masked word
    assert rows_of(found, model) == [*first, "not a plot is a"]
    assert rows_of(found.second, model) == [*second, "dull"]
    assert found.pad_id == found.second.pad_id == 1 and found.segments is None
    assert found.targets["labels"].tolist() == [1] * 3
    # With the model's special tokens, which count.
    found = EncodingPass.of(model, 5, reads="sentences").read(content)
    first = ["<s> the <mask> is </s>", "<s> film ##s </s>", "<s> not a plot </s>"]
    second = ["<s> a <unk> <unk> </s>", "<s> </s>", "<s> dull </s>"]
    assert rows_of(found, model) == first and rows_of(found.second, model) == second
    assert found.pad_id == found.second.pad_id == 1 and found.segments is None


@pytest.mark.parametrize("family", ["mpnet", "bert"])
def test_pieces_of_a_pair_in_one_sequence(tmp_path: Path, family: str) -> None:
    model = write_model(tmp_path / "model", family)
    content = EncodedInput(write_pairs(tmp_path / "inputs"))
    found = EncodingPass.of(model, 9, reads="sequence").read(content)
    texts = [
        text.replace("[MASK]", "<mask>") if family == "mpnet" and rules[1:2] == [1] else text
        for text, _, _, rules, _ in MASKED_PAIRS
    ]
    pairs = [(text, row[1]) for text, row in zip(texts, MASKED_PAIRS, strict=True)]
    expected = load_pieces(model, "sequence").number(pairs, 9)
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.offsets.tolist() == expected.offsets.tolist() and found.second is None
    assert found.pad_id == expected.pad_id == (family == "mpnet")
    assert (found.segments is None) == (family == "mpnet")
    if family == "bert":
        assert found.segments.tolist() == expected.segments.tolist()
        assert found.batch(np.arange(3))["segments"].shape == (3, 9)


@pytest.mark.parametrize("reads", ["pieces", "sentences", "sequence"])
def test_an_empty_shard_adds_no_row(tmp_path: Path, reads: str) -> None:
    model, folder = write_model(tmp_path / "model", "bert"), tmp_path / "inputs"
    whole = write_pairs(folder).open()
    tables = list(whole.tables())
    empty = write_shard(folder / "b001-i000.arrow", tables[0].slice(0, 0))
    shards = [empty, *whole.manifest.shards]
    write_manifest(folder, Manifest("transfer", schema_of(tables[0]), shards))
    found = EncodingPass.of(model, 9, reads=reads).read(EncodedInput(SetReference.to(folder)))
    assert len(found) == len(MASKED_PAIRS)
    assert (found.second is None) == (found.segments is not None) == (reads == "sequence")


def test_another_tokenizer_is_another_set(tmp_path: Path, model: Path) -> None:
    other = write_model(tmp_path / "model", "bert")
    digests = {EncodingPass.of(folder, 9, reads="pieces").tokenizer for folder in (model, other)}
    assert len(digests) == 2
    keys = {EncodingPass.of(model, 9, reads=reads).key("of the input") for reads in ("pieces", "sentences", "sequence")}
    assert len(keys) == 3
    # A damaged vocabulary is named with the remedy.
    (tmp_path / "tokenizer.json").write_text('{"version"')
    with pytest.raises(PotstillError, match=r"tokenizer.json: .* Delete the folder and run `distill"):
        EncodingPass.of(tmp_path, 5)._words()

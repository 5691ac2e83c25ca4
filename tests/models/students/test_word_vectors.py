"""Word vectors of every format, bad lines, and the averages of a teacher's word pieces."""

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.models.students.word_vectors import model_pieces, model_vectors, model_words, read_vectors

WORDS = ["the", "film", "dull", "caf\u00e9\u00a0x"]
TABLE = np.array([[0.5, -1.0], [0.25, 2.0], [3.0, 0.0], [1.0, 1.0]], np.float32)


def text(end: str = "\n") -> bytes:
    rows = zip(WORDS, TABLE.tolist(), strict=True)
    return "".join(f"{word} {a} {b}{end}" for word, (a, b) in rows).encode()


def binary(end: bytes) -> bytes:
    rows = zip(WORDS, TABLE, strict=True)
    body = b"".join(word.encode() + b" " + row.astype("<f4").tobytes() + end for word, row in rows)
    return b"4 2\n" + body


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("glove", text()),
        ("glove", text("\r\n")),
        ("word2vec", b"4 2\n" + text()),
        ("word2vec", b"4 2\n" + text(" \n")),  # the original tool leaves a blank at the end
        ("word2vec_binary", binary(b"\n")),
        ("word2vec_binary", binary(b"")),
    ],
)
def test_formats(tmp_path: Path, format: str, content: bytes) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    words, table = read_vectors(path, format, ["dull", "film", "absent"], 0)
    assert words == ["film", "dull"]
    assert table.dtype == np.float32 and np.array_equal(table, TABLE[1:3])
    # The wanted word, and the first two others.
    words, table = read_vectors(path, format, [WORDS[3]], 2)
    assert words == ["the", "film", WORDS[3]]
    assert np.array_equal(table, TABLE[[0, 1, 3]])


def test_chunks_blanks_and_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline_lib.models.students.word_vectors._CHUNK", 7)
    (tmp_path / "v").write_bytes(binary(b"\n"))
    words, table = read_vectors(tmp_path / "v", "word2vec_binary", WORDS, 0)
    assert words == WORDS and np.array_equal(table, TABLE)
    # Words with blanks and repeats.
    (tmp_path / "v").write_bytes(b"the 1 2\n. . 3 4\nthe 5 6\na 7 8\n")
    words, table = read_vectors(tmp_path / "v", "glove", ["the", ". .", "absent"], 5)
    assert words == ["the", ". .", "a"]
    assert table.tolist() == [[1, 2], [3, 4], [7, 8]]
    with pytest.raises(PotstillError, match="absent: not found"):
        read_vectors(tmp_path / "absent", "glove", ["a"], 0)


@pytest.mark.parametrize(
    ("format", "content", "message"),
    [
        ("glove", b"the 1 2\nfilm 1\n", "line 2: 1 numbers, not 2"),
        ("glove", b"the 1 2\nfilm 1 2 3\n", "line 2: more numbers than 2"),
        ("glove", b"the 1 2\n\n", "line 2: 0 numbers"),
        ("glove", b"the 1 2\nfilm 1 x\n", "line 2: a value is not a number"),
        ("glove", b"the 1 2\nfilm 1 nan\n", "line 2: a value is not finite"),
        ("glove", b"the\n", "line 1: no word and numbers"),
        ("glove", b"the 1 2\n", "none of the 2 wanted words"),
        ("word2vec", b"the 1 2\n", "line 1: no word2vec header"),
        ("word2vec", b"3 2\nthe 1 2\nfilm 1 2\n", "line 3: the file ends, its header says 3 words"),
        ("word2vec_binary", binary(b"")[:20], "word 2: the file ends"),
    ],
)
def test_errors(tmp_path: Path, format: str, content: bytes, message: str) -> None:
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(PotstillError, match=message):
        read_vectors(tmp_path / "v", format, ["film", "absent"], 0)


def test_model_vectors(model_folder: Path) -> None:
    assert model_words(model_folder) == ["film", "dull", "good"]
    # Row i of the table is 3i, 3i + 1, 3i + 2; `films` is pieces 3 and 4. The stored tokenizer cuts and pads.
    vectors = model_vectors(model_folder, ["good", "films", "zebra", ""])
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[21, 22, 23], [10.5, 11.5, 12.5], [0, 0, 0], [0, 0, 0]]
    import torch
    from safetensors.torch import load_file, save_file

    path = model_folder / "model.safetensors"
    save_file({n: t.to(torch.bfloat16) for n, t in load_file(path).items()}, path)
    vectors = model_vectors(model_folder, ["good", "films"])
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[21, 22, 23], [10.5, 11.5, 12.5]]


def test_pieces_are_spelled_as_in_bert_whatever_the_model(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    folder.mkdir()

    def pieces(model: models.Model, *parts: object) -> dict[str, int]:
        tokenizer = Tokenizer(model)
        for part in parts:
            name = "decoder" if isinstance(part, decoders.ByteLevel) else "pre_tokenizer"
            setattr(tokenizer, name, part)
        tokenizer.save(str(folder / "tokenizer.json"))
        return model_pieces(folder)

    bert = {"[UNK]": 0, "film": 1, "##s": 2}
    assert pieces(models.WordPiece(bert, unk_token="[UNK]")) == bert
    other = models.WordPiece({"[UNK]": 0, "film": 1, "@s": 2}, unk_token="[UNK]", continuing_subword_prefix="@")
    assert pieces(other) == bert
    unigram = [("<unk>", 0.0), ("▁film", -1.0), ("s", -2.0), ("▁", -3.0)]
    assert pieces(models.Unigram(unigram, 0)) == {"##<unk>": 0, "film": 1, "##s": 2, "": 3}
    # Byte by byte, é is two bytes, and each of them alone is no text.
    bytes_ = {"Ġfilm": 0, "s": 1, "Ã©": 2, "Ã": 3, "Ġcaf": 4}
    level = pre_tokenizers.ByteLevel(), decoders.ByteLevel()
    expected = {"film": 0, "##s": 1, "##é": 2, "caf": 4}
    assert pieces(models.BPE(bytes_, []), *level) == expected
    ends = models.BPE({"film": 0, "s</w>": 1}, [], end_of_word_suffix="</w>")
    assert pieces(ends) == {"film": 0, "##film": 0, "s": 1, "##s": 1}


@pytest.mark.parametrize("content", [b"", bytes(range(256))])
def test_teacher_with_torn_weights(model_folder: Path, content: bytes) -> None:
    (path,) = model_folder.glob("*.safetensors")
    path.write_bytes(content)
    with pytest.raises(PotstillError, match=rf"{path.name}: truncated or not a safetensors file"):
        model_vectors(model_folder, ["a"])


def test_teachers_that_cannot_be_read(model_folder: Path) -> None:
    (model_folder / "tokenizer.json").write_text("{")
    with pytest.raises(PotstillError, match="no readable tokenizer"):
        model_words(model_folder)
    (model_folder / "model.safetensors").unlink()
    with pytest.raises(PotstillError, match=r"no tensor \*word_embeddings.weight"):
        model_vectors(model_folder, ["good"])

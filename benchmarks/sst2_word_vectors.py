"""Write vectors of words that were sent one by one through a whole model, as model2vec does.

A student's word vectors are usually the mean of a model's word-piece embeddings.  The pieces of a
word such as `unfunny` mean little by themselves; the whole model reads them together.

    python benchmarks/sst2_word_vectors.py data/raw/models/mpnet data/input/SST-2-by-sentence \
        data/input/mpnet_words.txt

reads the words of train.tsv and those of words.tsv (sst2_unlabelled.py), and writes a text file in
GloVe's format: the words of words.tsv first, most frequent first, then the others.
"""

from pathlib import Path
from typing import Annotated

import torch
import typer

from pipeline_lib.base.devices import resolve_batch_tokens, resolve_precision
from pipeline_lib.models.vector_model import load_vector_model

MAX_LENGTH = 32
BLOCK = 4096


def main(
    model: Annotated[Path, typer.Argument(help="A transformers model's folder.")],
    texts: Annotated[Path, typer.Argument(help="The folder with train.tsv and words.tsv.")],
    out: Annotated[Path, typer.Argument(help="The file to write.")],
) -> None:
    """Write the file and print how many words it has."""
    words = words_of(texts)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    encoder = load_vector_model(model, device.type, resolve_precision("auto", device), "mean")
    tokens = resolve_batch_tokens(None, device)
    with out.open("w", encoding="utf-8") as file:
        for start in range(0, len(words), BLOCK):
            block = words[start : start + BLOCK]
            for word, vector in zip(block, encoder.predict(block, MAX_LENGTH, tokens), strict=True):
                file.write(word + " " + " ".join(f"{value:.5f}" for value in vector) + "\n")
    print(f"{out}: {len(words):,} words of {encoder.width} values")


def words_of(folder: Path) -> list[str]:
    """Return the words of the dictionary, and then those that only the training phrases have."""
    frequent = (folder / "words.tsv").read_text("utf-8").splitlines()[1:]
    phrases = (folder / "train.tsv").read_text("utf-8").splitlines()[1:]
    phrase_words = (word for phrase in phrases for word in phrase.split("\t")[0].split())
    return list(dict.fromkeys([*frequent, *phrase_words]))


if __name__ == "__main__":
    typer.run(main)

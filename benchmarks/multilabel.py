"""A set whose rows have several labels, made from the package that the default's snippets are in.

    pip download vaderSentiment==3.3.2 --no-deps --no-binary :all: python benchmarks/multilabel.py
    vaderSentiment-3.3.2.tar.gz comments.csv distill init comments.csv && distill run

1,500 texts, drawn from the package's tweets, film reviews, product reviews and editorials, each scored from -4 to 4
by about 20 people.  Six columns of 0 and 1 follow from these: where a text is from (tweet, movie, product; an
editorial is none of them), and whether its mean score is below -0.5 (negative), above 0.5 (positive) and further
than 2 from 0 (strong).  benchmarks/multilabel.md has the figures.
"""

import csv
import io
import random
import tarfile
from pathlib import Path
from typing import Annotated

import typer

ROWS = 1500
ARCHIVE = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
SOURCES = {
    "tweet": "tweets",
    "movie": "movieReviewSnippets",
    "product": "amazonReviewSnippets",
    "news": "nytEditorialSnippets",
}
LABELS = ("tweet", "movie", "product", "negative", "positive", "strong")


def main(
    package: Annotated[Path, typer.Argument(help="The downloaded source package.")],
    out: Annotated[Path, typer.Argument(help="The CSV file to write.")],
) -> None:
    """Write the set."""
    rows = [row for source in SOURCES for row in scored(package, source)]
    random.Random(1).shuffle(rows)
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "comment_text", *LABELS])
        for number, (text, source, mean) in enumerate(rows[:ROWS]):
            applies = {source: True, "negative": mean < -0.5, "positive": mean > 0.5}
            applies["strong"] = abs(mean) > 2
            writer.writerow([number, text, *(int(applies.get(name, False)) for name in LABELS)])


def scored(package: Path, source: str) -> list[tuple[str, str, float]]:
    """Return the texts of one source, with the mean of their scores."""
    with tarfile.open(package) as sdist, tarfile.open(fileobj=_member(sdist, ARCHIVE)) as files:
        lines = _member(files, f"hutto_ICWSM_2014/{SOURCES[source]}_GroundTruth.txt").read()
    cells = (line.split("\t") for line in lines.decode("utf-8", "replace").splitlines())
    return [(row[-1].strip(), source, float(row[1])) for row in cells if len(row) > 2]


def _member(archive: tarfile.TarFile, name: str) -> io.BytesIO:
    file = archive.extractfile(name)
    assert file is not None, name
    return io.BytesIO(file.read())


if __name__ == "__main__":
    typer.run(main)

"""A set whose rows have several labels, made from the package that the default's snippets are in.

    python benchmarks/multilabel.py comments.csv
    distill init comments.csv && distill run

1,500 texts, drawn from the package's tweets, film reviews, product reviews and editorials, each
scored from -4 to 4 by about 20 people.  Six columns of 0 and 1 follow from these: where a text is
from (tweet, movie, product; an editorial is none of them), and whether its mean score is below
-0.5 (negative), above 0.5 (positive) and further than 2 from 0 (strong).  benchmarks/multilabel.md
has the figures.
"""

import csv
import io
import random
import tarfile
from pathlib import Path
from typing import Annotated

import typer

from pipeline_lib.params.profiles import read_values
from pipeline_lib.sources.packages import download

ROWS = 1500
SOURCES = {
    "tweet": "tweets",
    "movie": "movieReviewSnippets",
    "product": "amazonReviewSnippets",
    "news": "nytEditorialSnippets",
}
LABELS = ("tweet", "movie", "product", "negative", "positive", "strong")
PROFILE = Path(__file__).parents[1] / "profiles/default.yaml"


def main(out: Annotated[Path, typer.Argument(help="The CSV file to write.")]) -> None:
    """Write the set."""
    rows = [row for source in SOURCES for row in scored(source)]
    random.Random(1).shuffle(rows)
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "comment_text", *LABELS])
        for number, (text, source, mean) in enumerate(rows[:ROWS]):
            marks = {
                source,
                *(["negative"] if mean < -0.5 else []),
                *(["strong"] * (abs(mean) > 2)),
            }
            marks |= {"positive"} if mean > 0.5 else set()
            writer.writerow([number, text, *(int(label in marks) for label in LABELS)])


def scored(source: str) -> list[tuple[str, str, float]]:
    """Return the texts of one source, with the mean of their scores."""
    package = read_values(PROFILE)["tasks"]["movies"]["source"]
    archive = download(package["requirement"], package["artifact"], package["sha256"])
    [path] = package["files"].values()
    outer, _, inner = path.partition("!")
    with tarfile.open(archive) as sdist, tarfile.open(fileobj=_member(sdist, outer)) as files:
        name = f"{inner.rpartition('/')[0]}/{SOURCES[source]}_GroundTruth.txt"
        lines = _member(files, name).read().decode("utf-8", "replace").splitlines()
    cells = (line.split("\t") for line in lines)
    return [(row[-1].strip(), source, float(row[1])) for row in cells if len(row) > 2]


def _member(archive: tarfile.TarFile, name: str) -> io.BytesIO:
    file = archive.extractfile(name)
    assert file is not None, name
    return io.BytesIO(file.read())


if __name__ == "__main__":
    typer.run(main)

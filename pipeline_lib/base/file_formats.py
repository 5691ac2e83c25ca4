"""The formats of people's files, and the suffixes that tell them."""

from pathlib import Path
from typing import Literal

Format = Literal["lines", "csv", "tsv", "jsonl", "parquet", "arrow"]
FORMATS: dict[str, Format] = {
    ".txt": "lines",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
"""Formats by file suffix; a file of JSON has an object per line, or an array of them."""
COMPRESSIONS = (".gz", ".bz2", ".zst")
"""Suffixes that may follow; whether a file is compressed, its first bytes tell."""


def format_of(path: Path) -> Format | None:
    """Return the format that a file's suffix tells, or None."""
    name = path.name.lower()
    for compression in COMPRESSIONS:
        name = name.removesuffix(compression)
    return FORMATS.get(Path(name).suffix)


def suffix_of(path: Path) -> str:
    """Return a file's suffix in lower case, with that of its compression: ``.csv.gz``."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    count = 2 if suffixes and suffixes[-1] in COMPRESSIONS else 1
    return "".join(suffixes[-count:])

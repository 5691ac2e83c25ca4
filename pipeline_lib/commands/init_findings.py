"""Prints what ``distill init`` found in the files: how it reads them, and what is odd."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline_lib.base.kinds.classes import OF_POSITIVE
from pipeline_lib.results.expectations import expected

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from pipeline_lib.corpora.tasks.findings import Findings, Place
    from pipeline_lib.onboarding.language import Language
    from pipeline_lib.onboarding.proposal import Inspection
    from pipeline_lib.onboarding.understanding import TaskGuess

SHOWN = 8
"""How many row numbers or classes are listed before the rest is only counted."""
LONGEST = 80
"""Characters of a name that are shown."""
FEW = 10
"""A class with fewer rows than this in a split cannot be scored well there."""
_TOLD = 2000
"""Texts that tell the language."""
_ENGLISH = 0.08
"""The least share of words that only English has among its function words."""
_MUCH = 0.2
"""A share of letters in another script that is no accident."""
_PATHS = 3
"""How many of a split's files are listed before the rest is only counted."""
_TEXTS = 20_000
"""Texts that a tokenizer reads; of more, every second or third."""


def show(console: "Console", inspection: "Inspection", findings: "Findings", leaves_out: bool) -> None:
    """Print how the files are read, and what is odd in them.

    :param leaves_out: whether odd rows are left out.
    """
    _print(console, _lines(inspection, findings))
    _print(console, (("odd", line) for line in _oddities(inspection.understood, findings, leaves_out)))


def show_reading(
    console: "Console", inspection: "Inspection", findings: "Findings", language: "Language", values: Mapping[str, Any]
) -> None:
    """Print how much of the texts the models will read, and what they do not know of them.

    :param values: those of params.yaml that are proposed.
    """
    _print(console, _reading(inspection, findings, language, values))


def _print(console: "Console", lines: Iterable[tuple[str, str]]) -> None:
    from rich.text import Text

    for title, line in lines:
        style = "bold yellow" if title == "odd" else "bold"
        console.print(Text().append(f"{title:<11}", style).append(line), highlight=False, soft_wrap=True)


def _reading(
    inspection: "Inspection", findings: "Findings", language: "Language", values: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    from pipeline_lib.models.text_checks import count_pieces, other_script

    texts, lengths = _sample(inspection), findings.lengths
    limits = {row["max_words"] for row in values["students"].values() if not row.get("model")}
    if limits:
        yield "cut", _cut("students read", min(limits), "words of a sentence", lengths.max(axis=1))
    [teacher] = values["teachers"].values()
    limit, folder = teacher["max_length"], _tokenizer_of(inspection)
    pieces = None if limit is None or folder is None else count_pieces(folder, texts)
    if pieces is not None:
        note = f" (of {len(texts):,} texts)" if len(texts) < len(lengths) else ""
        what = f"word pieces of a {'pair' if lengths.shape[1] == 2 else 'sentence'}"
        yield "cut", _cut("the teacher reads", limit, what, pieces.lengths) + note
    seen = expected(findings.rows["train"] + findings.rows["dev"])
    if seen and teacher["tuning"].get("select") == "last" and inspection.understood.metrics[0] == "accuracy":
        yield "expect", f"{seen} (accuracy; benchmarks/few_rows.md)"
    script = other_script(texts)
    is_other = script is not None and script.share >= _MUCH
    if is_other and script.is_unspaced:
        yield (
            "note",
            f"{script.share:.0%} of the letters are {script.name}, which has no spaces between words: each character "
            "is a word to students that read words (bilstm, static, cnn, regression), and to masking and n-grams",
        )
    if not language.is_english:
        yield (
            "note",
            "the texts are not English: no word is replaced by another of its part of speech. To have that, install a "
            "spaCy pipeline of the language, name it in `tagger`, and set p_pos of `transfer.full`",
        )
    name = inspection.teacher.path or inspection.teacher.model
    if pieces is not None and pieces.is_foreign(script):
        unknown = f", such as {', '.join(pieces.examples)}" if pieces.examples else ""
        yield (
            "odd",
            f"the teacher {name} hardly knows the language of the texts: {pieces.unknown:.0%} of their letters are in "
            f"words unknown to it{unknown}, and it takes {pieces.per_character:.2f} word pieces per character. Name a "
            "model of this language with --teacher",
        )
    elif pieces is None and limit is not None and is_other:
        yield (
            "odd",
            f"{script.share:.0%} of the letters are {script.name}, and the teacher {name} was "
            "trained on English. Name a model of this language with --teacher",
        )


def language_of(inspection: "Inspection") -> "Language":
    """Return the language of a task's texts, as far as it matters to what is written."""
    from pipeline_lib.models.text_checks import english_share, other_script
    from pipeline_lib.onboarding.language import Language

    texts = _sample(inspection)[:_TOLD]
    script = other_script(texts)
    if script is not None and script.share >= _MUCH:
        return Language(False, script.is_unspaced)
    return Language(english_share(texts) >= _ENGLISH)


def _sample(inspection: "Inspection") -> list[Any]:
    """Return texts, or pairs, of all splits: all of them, or evenly spaced ones."""
    texts: list[tuple[str, ...]] = []
    for content in inspection.understood.contents.values():
        columns = [content.values(name) for name in inspection.understood.text]
        texts += [row for row in zip(*columns, strict=True) if all(row)]
    texts = texts[:: -(-len(texts) // _TEXTS)]
    return [row[0] for row in texts] if len(inspection.understood.text) == 1 else texts


def _tokenizer_of(inspection: "Inspection") -> Path | None:
    from pipeline_lib.base.layout import Layout

    teacher = inspection.teacher
    if teacher.path is not None:
        return teacher.path if teacher.path.is_dir() else None
    folder = Layout().model(teacher.model)
    return folder if (folder / "config.json").exists() else None


def _cut(who: str, limit: int, what: str, lengths: "np.ndarray") -> str:
    longer = int((lengths > limit).sum())
    share = f"{longer:,} of {len(lengths):,} rows ({longer / len(lengths):.1%}) are longer and are cut there"
    return f"{who} {limit} {what}: {share if longer else 'nothing is cut'}, the longest has {lengths.max():,}"


def _lines(inspection: "Inspection", findings: "Findings") -> Iterator[tuple[str, str]]:
    understood, teacher = inspection.understood, inspection.teacher
    for split, content in understood.contents.items():
        note = " (no header line)" if content.is_nameless else ""
        names = ", ".join(content.names)
        paths = [str(path) for path in content.paths[:_PATHS]]
        more = f" and {len(content.paths) - _PATHS:,} more" if len(content.paths) > _PATHS else ""
        yield split, f"{', '.join(paths)}{more}: {content.table.num_rows:,} rows, {names}{note}"
    words = "words: {} (median), {} (95th percentile), {} (longest)".format(*findings.words)
    pair = " (a pair)" if len(understood.text) == 2 else ""
    yield "text", f"{', '.join(understood.text)}{pair}; {words}"
    yield "label", _label(understood)
    positive = understood.f1_class
    names = {name: f"{name} (of {positive})" for name in OF_POSITIVE} if positive is not None else {}
    yield "metrics", ", ".join(names.get(name, name) for name in understood.metrics)
    shares = understood.split or {}
    drawn = [f"{name} {shares[name]:.0%}" for name in ("dev", "test") if shares.get(name)]
    together = "pairs that share a text" if pair else "identical texts"
    note = f"drawn: {', '.join(drawn)}; {together} stay together" if drawn else "given"
    yield "splits", ", ".join(f"{name} {count:,}" for name, count in findings.rows.items()) + f" ({note})"
    for split in findings.rows:
        if split in findings.hidden:
            yield split, "no labels: predicted, not scored"
        elif counts := findings.classes.get(split):
            yield (
                split,
                _some([f"{_short(name)} {counts[name]:,}" for name in sorted(counts, key=lambda n: -counts[n])]),
            )
    if inspection.unlabelled is not None:
        further, paths = findings.further, [str(path) for path in inspection.unlabelled.paths]
        counted = {"among the rows above": further.among_rows, "repeated": further.repeated, "empty": further.empty}
        left_out = ", ".join(f"{count:,} {why}" for why, count in counted.items() if count)
        note = f" (left out: {left_out})" if left_out else ""
        yield "more texts", f"{_some(paths)}: {further.texts:,}, answered by the teacher{note}"
    if inspection.skipped:
        yield "skipped", f"{_some(list(map(str, inspection.skipped)))}: unknown file suffixes"
    how = {"single": "fine-tuned here", "finished": "as it is", "answers": "answers in a file"}
    how |= {"scored": "a language model, as it is"}
    yield "teacher", f"{teacher.path or teacher.model}, {how[teacher.kind]}"


def _label(understood: "TaskGuess") -> str:
    from pipeline_lib.base.kinds import KINDS

    label, labels = understood.label, understood.labels
    column = ", ".join(understood.label_columns) or "none"
    if isinstance(label, dict):
        column += f" in {', '.join(label)}"
    kind = KINDS[understood.kind]
    if kind.has_several:
        how = "a column of 0 and 1 for each" if isinstance(label, list) else f"lists in {column}"
        return f"{len(labels)} labels, of which a row may have several ({how}): {_some([*map(_short, labels)])}"
    if not kind.has_probabilities:
        return f"{column}: {kind.name}, {labels['min']:g} to {labels['max']:g}"
    return f"{column}: {kind.name}, {len(labels)} classes: {_some([_class(*item) for item in labels.items()])}"


def _class(name: str, meaning: Any) -> str:
    """Return a class with the values that mean it, unless these are its name."""
    if isinstance(meaning, dict):
        return f"{_short(name)} ({meaning['min']:g} to {meaning['max']:g})"
    return _short(name if meaning in ([name], []) else f"{name} ({', '.join(meaning)})")


def _oddities(understood: "TaskGuess", findings: "Findings", leaves_out: bool) -> Iterator[str]:
    from pipeline_lib.base.kinds import KINDS
    from pipeline_lib.corpora.tasks.findings import LONELY, MISSING

    for odd in findings.odd:
        what = "left out" if leaves_out or not odd.stops else "cannot be used"
        what = "used as texts" if odd.reason.startswith(MISSING) and findings.further.texts else what
        what = "kept, unless --labels names the other classes" if odd.reason == LONELY else what
        count = "1 row" if len(odd.places) == 1 else f"{len(odd.places):,} rows"
        yield f"{odd.split}: {count} {odd.reason} ({what}): {named_rows(odd.places)}"
    for name in understood.empty:
        yield f"column {name!r}: no row has this label, so it is left out"
    yield from _few(findings, KINDS[understood.kind].calls)
    if findings.repeated:
        other = f", {findings.conflicts:,} under another label" if findings.conflicts else ""
        yield f"repeated texts within a split: {findings.repeated:,}{other}"
    for overlap in findings.shared:
        other = f", {overlap.other_label:,} under another label" if overlap.other_label else ""
        yield f"{overlap.split}: {overlap.rows:,} also in {overlap.earlier}{other}: {named_rows(overlap.places)}"


def _few(findings: "Findings", what: str) -> Iterator[str]:
    for split, counts in findings.classes.items():
        few = [f"{_short(name)} ({count})" for name, count in counts.items() if count < FEW]
        if few and split != "train":
            yield f"{split}: {what} with too few rows to be scored well: {_some(few)}"


def named_rows(places: Sequence["Place"]) -> str:
    """List the first rows by file and number, and count the rest."""
    by_file: dict[Path, list[str]] = {}
    for path, row in places[:SHOWN]:
        by_file.setdefault(path, []).append(str(row))
    named = "; ".join(f"{path} row {', '.join(rows)}" for path, rows in by_file.items())
    more = len(places) - SHOWN
    return f"{named} and {more:,} more" if more > 0 else named


def _some(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _short(name: str) -> str:
    """Return a name, or the start of one that is too long to be one."""
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…"

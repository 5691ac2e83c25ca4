"""Prints what ``distill init`` found in the files: how it reads them, and what is odd."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from pipeline_lib.onboarding.findings import Findings, Place
    from pipeline_lib.onboarding.language import Language
    from pipeline_lib.onboarding.proposal import Inspection
    from pipeline_lib.onboarding.understanding import TaskGuess

SHOWN = 8
"""How many row numbers or classes are listed before the rest is only counted."""
LONGEST = 80
"""Characters of a name that are shown."""
FEW = 10
"""A class with fewer rows than this in a split cannot be scored well there."""


def show(console: "Console", inspection: "Inspection") -> None:
    """Print how the files are read, and what is odd in them."""
    from rich.text import Text

    lines = [*_lines(inspection)]
    width = max(10, *(len(title) for title, _ in lines)) + 1
    for title, line in lines:
        text = Text().append(f"{title:<{width}}", "bold").append(line)
        console.print(text, highlight=False, soft_wrap=True)
    if inspection.findings.classes and any(inspection.findings.classes.values()):
        title = "Label" if inspection.understood.kind == "multilabel" else "Class"
        console.print(_class_table(inspection.findings, title))
    for line in _oddities(inspection):
        text = Text().append(f"{'odd':<{width}}", "bold yellow").append(line)
        console.print(text, highlight=False, soft_wrap=True)


def show_reading(console: "Console", inspection: "Inspection", values: Mapping[str, Any]) -> None:
    """Print how much of the texts the models will read, and what they do not know of them.

    :param values: those of params.yaml that are proposed.
    """
    from rich.text import Text

    for title, line in _reading(inspection, values):
        style = "bold yellow" if title == "odd" else "bold"
        text = Text().append(f"{title:<11}", style).append(line)
        console.print(text, highlight=False, soft_wrap=True)


def _reading(inspection: "Inspection", values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    import numpy as np

    from pipeline_lib.models.text_checks import count_pieces, other_script

    texts, lengths = _sample(inspection), inspection.findings.lengths
    limits = {row["max_words"] for row in values["students"].values() if not row.get("model")}
    if limits:
        limit, longest = min(limits), lengths.max(axis=1)
        yield "cut", _cut("students read", limit, "words of a sentence", longest)
    [teacher] = values["teachers"].values()
    limit, pieces = teacher["max_length"], None
    folder = _tokenizer_of(inspection)
    if limit is not None:
        if folder is not None:
            pieces = count_pieces(folder, texts)
            counted = pieces.lengths
            note = f" (of {len(texts):,} texts)" if len(texts) < len(lengths) else ""
        else:
            sides = lengths.shape[1]
            counted = np.rint(lengths.sum(axis=1) * _PIECES).astype(np.int64) + sides + 1
            note = " (a guess from the words: its tokenizer is not here yet)"
        what = f"word pieces of a {'pair' if lengths.shape[1] == 2 else 'sentence'}"
        yield "cut", _cut("the teacher reads", limit, what, counted) + note
    yield from _few(inspection, values)
    script = other_script(texts)
    if script is not None and script.share >= _MUCH and script.is_unspaced:
        yield (
            "note",
            f"{script.share:.0%} of the letters are {script.name}, which has no spaces between words: each character "
            "is a word to students that read words (bilstm, static, cnn, linear), and to masking and n-grams",
        )
    if not language_of(inspection).is_english:
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
    elif pieces is None and limit is not None and script is not None and script.share >= _MUCH:
        yield (
            "odd",
            f"{script.share:.0%} of the letters are {script.name}, and the teacher {name} was "
            "trained on English. Name a model of this language with --teacher",
        )


def _few(inspection: "Inspection", values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a task of few rows gets, and how far below its teacher a student will be."""
    from pipeline_lib.onboarding.expectations import expectation

    rows, further = inspection.findings.rows["train"], inspection.findings.further.texts
    [task] = values["tasks"].values()
    if pool := task.get("pool"):
        yield (
            "few",
            f"{rows:,} labelled rows: {pool['rows']:,} bundled texts of other kinds join those that the teacher "
            "answers (`pool`); students learn more from texts of your own, --unlabelled FILE",
        )
    is_measured = len(task["text"]) == 1 and language_of(inspection).is_english
    if is_measured and (line := expectation(task["kind"], rows, further)) is not None:
        yield "expect", line


def language_of(inspection: "Inspection") -> "Language":
    """Return the language of a task's texts, as far as it matters to what is written."""
    from pipeline_lib.models.text_checks import english_share, other_script
    from pipeline_lib.onboarding.language import Language

    texts = _sample(inspection)[:_TOLD]
    script = other_script(texts)
    if script is not None and script.share >= _MUCH:
        return Language(False, script.is_unspaced)
    return Language(english_share(texts) >= _ENGLISH)


_TOLD = 2000
"""Texts that tell the language."""
_ENGLISH = 0.08
"""The least share of words that only English has among its function words."""
_PIECES = 1.5
"""Word pieces per word, where the tokenizer is not here yet."""
_MUCH = 0.2
"""A share of letters in another script that is no accident."""
_TEXTS = 20_000
"""Texts that a tokenizer reads; of more, every second or third."""


def _sample(inspection: "Inspection") -> list[Any]:
    """Return texts, or pairs, of all splits: all of them, or evenly spaced ones."""
    texts: list[tuple[str, ...]] = []
    for content in inspection.understood.contents.values():
        columns = [content.values(name) for name in inspection.understood.text]
        texts += [row for row in zip(*columns, strict=True) if all(row)]
    texts = texts[:: -(-len(texts) // _TEXTS)]
    return [row[0] for row in texts] if len(inspection.understood.text) == 1 else texts


def _tokenizer_of(inspection: "Inspection") -> Path | None:
    """Return the folder of the teacher's model, if it is here."""
    from pipeline_lib.base.layout import Layout

    teacher = inspection.teacher
    if teacher.path is not None:
        return teacher.path if teacher.path.is_dir() else None
    folder = Layout().model(teacher.model)
    return folder if (folder / "config.json").exists() else None


def _cut(who: str, limit: int, what: str, lengths: "np.ndarray") -> str:
    """Say how many texts are longer than a limit."""
    longer, longest = int((lengths > limit).sum()), f"the longest has {lengths.max():,}"
    if not longer:
        return f"{who} {limit} {what}: nothing is cut, {longest}"
    share = f"{longer:,} of {len(lengths):,} rows ({longer / len(lengths):.1%})"
    return f"{who} {limit} {what}: {share} are longer and are cut there, {longest}"


def _lines(inspection: "Inspection") -> Iterator[tuple[str, str]]:
    """Yield the lines that say how the files are read, each with its title."""
    understood, findings = inspection.understood, inspection.findings
    for split, content in understood.contents.items():
        paths = ", ".join(map(str, content.paths))
        note = " (no header line)" if content.is_nameless else ""
        names = f"{', '.join(content.names)}{note}"
        yield split, f"{paths}: {content.table.num_rows:,} rows, {names}"
    median, most, longest = findings.words
    words = f"words: {median} (median), {most} (95th percentile), {longest} (longest)"
    pair = " (a pair)" if len(understood.text) == 2 else ""
    yield "text", f"{', '.join(understood.text)}{pair}; {words}"
    yield "label", _label(understood)
    positive = understood.f1_class
    names = {"f1": f"f1 (of {positive})"} if positive is not None else {}
    yield "metrics", ", ".join(names.get(name, name) for name in understood.metrics)
    rows = ", ".join(f"{name} {count:,}" for name, count in findings.rows.items())
    shares = understood.split
    drawn = [f"{name} {shares[name]:.0%}" for name in ("dev", "test") if shares and shares[name]]
    note = f" (drawn: {', '.join(drawn)}; identical texts stay together)" if drawn else " (given)"
    yield "splits", rows + note
    for split in findings.hidden:
        yield split, "no labels: predicted, not scored"
    if inspection.unlabelled is not None:
        yield "more texts", _more_texts(inspection)
    if inspection.skipped:
        yield "skipped", f"{_some(list(map(str, inspection.skipped)))}: unknown file suffixes"
    teacher = inspection.teacher
    how = {"single": "fine-tuned here", "finished": "as it is", "answers": "answers in a file"}
    yield "teacher", f"{teacher.path or teacher.model}, {how[teacher.kind]}"


def _more_texts(inspection: "Inspection") -> str:
    further, paths = (inspection.findings.further, [str(path) for path in inspection.unlabelled.paths])
    counts = ((further.known, "among the rows above"), (further.repeated, "repeated"))
    left_out = [f"{n:,} {why}" for n, why in (*counts, (further.empty, "empty")) if n]
    note = f" (left out: {', '.join(left_out)})" if left_out else ""
    return f"{_some(paths)}: {further.texts:,}, answered by the teacher{note}"


def _label(understood: "TaskGuess") -> str:
    label = understood.label
    column = "none" if label is None else _columns(label)
    if isinstance(label, dict):
        column = ", ".join(f"{_columns(name)} in {split}" for split, name in label.items())
    if understood.kind == "multilabel":
        how = f"lists in {column}" if label is not None else "no column has them"
        how = "a column of 0 and 1 for each" if isinstance(label, list) else how
        named = _some([*understood.labels])
        return f"{len(understood.labels)} labels, of which a row may have several ({how}): {named}"
    if understood.kind == "regression":
        low, high = understood.labels["min"], understood.labels["max"]
        return f"{column}: regression, {low:g} to {high:g}"
    named = [
        name if meaning in ([name], []) else f"{name} ({_meaning(meaning)})"
        for name, meaning in understood.labels.items()
    ]
    return f"{column}: classification, {len(named)} classes: {_some(named)}"


def _columns(label: str | list[str]) -> str:
    return label if isinstance(label, str) else ", ".join(label)


def _meaning(meaning: Any) -> str:
    if isinstance(meaning, dict):
        return f"{meaning['min']:g} to {meaning['max']:g}"
    return ", ".join(meaning)


def _class_table(findings: "Findings", title: str) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(title, overflow="fold")
    for split in findings.classes:
        table.add_column(split, justify="right")
    totals: dict[str, int] = {}
    for counts in findings.classes.values():
        for name, count in counts.items():
            totals[name] = totals.get(name, 0) + count
    order = sorted(totals, key=totals.__getitem__, reverse=True)
    for name in [*order[: 2 * SHOWN], *(order[-1:] if len(order) > 2 * SHOWN else ())]:
        cells = (f"{counts.get(name, 0):,}" for counts in findings.classes.values())
        table.add_row(Text(_short(name)), *cells)
    if len(order) > 2 * SHOWN + 1:
        table.caption = f"and {len(order) - 2 * SHOWN - 1} more between the last two"
    return table


def _oddities(inspection: "Inspection") -> Iterator[str]:
    from pipeline_lib.onboarding.findings import LONELY

    findings = inspection.findings
    for odd in findings.odd:
        what = "left out" if inspection.leaves_out or not odd.stops else "cannot be used"
        what = "kept" if odd.reason == LONELY else what
        yield f"{odd.split}: {_count(odd.places)} {odd.reason} ({what}): {named_rows(odd.places)}"
    for name in inspection.understood.empty:
        yield f"column {name!r}: no row has this label, so it is left out"
    for split, counts in findings.classes.items():
        if split == "train":
            continue
        few = [f"{name} ({count})" for name, count in counts.items() if count < FEW]
        if few:
            what = "labels" if inspection.understood.kind == "multilabel" else "classes"
            yield f"{split}: {what} with too few rows to be scored well: {_some(few)}"
    if findings.repeated:
        other = f", {findings.conflicts:,} under another label" if findings.conflicts else ""
        yield f"repeated texts within a split: {findings.repeated:,}{other}"
    for overlap in findings.shared:
        other = f", {overlap.other_label:,} under another label" if overlap.other_label else ""
        where = f"{overlap.earlier}{other}: {named_rows(overlap.places)}"
        yield f"{overlap.split}: {overlap.rows:,} also in {where}"


def _count(places: Sequence["Place"]) -> str:
    return "1 row" if len(places) == 1 else f"{len(places):,} rows"


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
    return ", ".join(map(_short, names[:SHOWN])) + (f" and {more} more" if more > 0 else "")


def _short(name: str) -> str:
    """Return a name, or the start of one that is too long to be one."""
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…"

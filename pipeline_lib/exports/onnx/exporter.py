"""A student or a sentence encoder as an ONNX file, in float32 or int8, in a folder of its own.

docs/export.md describes the folder, inputs, outputs and metadata.
"""

import json
import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pipeline_lib.base.errors import PotstillError, reason_of
from pipeline_lib.base.files import atomic_path
from pipeline_lib.base.kinds import KINDS
from pipeline_lib.exports.deviation import Deviation, measure
from pipeline_lib.exports.export_source import Subject, read_subject
from pipeline_lib.exports.folders import READS, require_new_folder, unknown_number, write_config, write_tokenizer
from pipeline_lib.exports.onnx.graphs import Graph
from pipeline_lib.exports.onnx.networks import BUILT, encoder, network, read_words
from pipeline_lib.exports.onnx.student import FILES, open_session, require_packages, run
from pipeline_lib.exports.onnx.tracing import TRACED, trace, trace_words

if TYPE_CHECKING:
    import onnx

LOGITS, VECTOR = "logits", "sentence_embedding"
"""The model's output: for a student, and for a sentence encoder."""
MAX_DEVIATION = 1e-3
"""Tolerance of float32, relative to the largest value in torch: sums have a different order."""
QUANTISED = ("MatMul", "Gather", "LSTM")
"""The operators whose weights become int8: linear layers, embedding tables, LSTMs."""


def export_onnx(folder: Path, out: Path) -> str:
    """Write the student in ``folder`` to the new folder ``out`` in float32; return a summary."""
    return _export(folder, out, "onnx")


def export_onnx_int8(folder: Path, out: Path) -> str:
    """Write it with weights in int8; see :func:`export_onnx`."""
    return _export(folder, out, "onnx-int8")


def _export(folder: Path, out: Path, form: str) -> str:
    require_packages("onnx", "onnxruntime")
    require_new_folder(out)
    subject = read_subject(folder)
    model = build(subject)
    deviations = _measured(subject, model)
    worst = max(deviations.values(), key=lambda deviation: deviation.relative)
    if worst.relative > MAX_DEVIATION:
        raise PotstillError(
            f"{folder}: the ONNX model's answers differ from the student's (by up to {worst.largest:.3g}), so nothing "
            "was written. Please report the model's family, and use the student's own folder."
        )
    if form == "onnx-int8":
        model = quantise(model)
        deviations = _measured(subject, model)
    about = description(subject, form, deviations)
    _describe(model, about)
    path = out / FILES[form]
    path.parent.mkdir(parents=True)
    with atomic_path(path) as temporary:
        temporary.write_bytes(model.SerializeToString())
    write_tokenizer(out, subject.reader.tokenizer, subject.reader.max_words)
    keys = ("temperature", "max_length", "deviation", "problem_type")
    entries = {READS: subject.reader.reads} | {key: about[key] for key in keys if key in about}
    write_config(out, subject.config, form, **entries)
    return _told(subject, deviations)


def build(subject: Subject) -> "onnx.ModelProto":
    """Return a student, or a sentence encoder, as an ONNX model in float32."""
    output = VECTOR if subject.labels is None else LOGITS
    if isinstance(subject.encoder, TRACED):
        segments = subject.reader.segments
        return trace(subject.network, output, segments, subject.temperature)
    if type(subject.encoder) not in BUILT:
        try:
            unknown = unknown_number(subject.reader.tokenizer)
            return trace_words(subject.network, output, unknown, subject.temperature)
        except Exception as error:  # torch's exporter raises anything
            raise _not_exportable(subject, error) from error
    graph, unknown = Graph(), unknown_number(subject.reader.tokenizer)
    if subject.labels is None:
        value = encoder(graph, subject.network, read_words(graph, unknown))
    else:
        value = network(graph, subject.network, unknown, subject.temperature)
    return graph.model({output: (value, subject.width)})


def quantise(model: "onnx.ModelProto") -> "onnx.ModelProto":
    """Return the model with its weights in int8.

    Activations are quantised batch by batch: onnxruntime's dynamic quantisation, with
    ``DynamicQuantizeLSTM`` for an LSTM.  What is multiplied keeps 7 of the 8 bits: processors
    without VNNI add pairs of products in 16 bits, which 8 bits overflow without an error.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    constants = {constant.name for constant in model.graph.initializer}
    # A Gather from computed values has no weights.
    others = [n.name for n in model.graph.node if n.op_type == "Gather" and n.input[0] not in constants]
    root = logging.getLogger()
    level = root.level
    # It logs advice to the root logger that does not apply to these graphs.
    root.setLevel(logging.ERROR)
    try:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            quantize_dynamic(
                model,
                path,
                op_types_to_quantize=[*QUANTISED],
                per_channel=True,
                reduce_range=True,
                weight_type=QuantType.QInt8,
                nodes_to_exclude=others,
            )
            return onnx.load(path)
    finally:
        root.setLevel(level)


def description(subject: Subject, form: str, deviations: dict[str, Deviation]) -> dict[str, Any]:
    """Return what the file's metadata says about the model."""
    about = {
        "form": form,
        "architecture": subject.architecture,
        "max_length": subject.reader.max_words,
        "pair": subject.reader.pair,
        "deviation": {name: deviation.record() for name, deviation in deviations.items()},
    }
    if subject.labels is None:
        return about | {"kind": subject.kind, "width": subject.width}
    kind = KINDS[subject.kind]
    return about | {
        "kind": subject.kind,
        "problem_type": kind.problem_type,
        "labels": subject.labels,
        "activation": kind.activation,
        "temperature": subject.temperature,
    }


def _describe(model: "onnx.ModelProto", about: dict[str, Any]) -> None:
    from onnx import helper

    texts = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for key, value in about.items()
    }
    helper.set_model_props(model, texts)
    model.producer_name = "potstill"
    model.doc_string = (
        f"A distilled {about['architecture']} student ({about['kind']}, {about['form']}). Logits "
        "are already divided by the temperature."
        if "temperature" in about
        else f"A distilled {about['architecture']} sentence encoder ({about['form']})."
    )


def _measured(subject: Subject, model: "onnx.ModelProto") -> dict[str, Deviation]:
    session = open_session(model.SerializeToString())
    try:
        return measure(subject, lambda sentences: run(session, sentences, subject.width))
    except Exception as error:
        is_ours = type(subject.encoder) in BUILT or isinstance(subject.encoder, TRACED)
        if is_ours or isinstance(error, PotstillError):
            raise
        raise _not_exportable(subject, error) from error


def _not_exportable(subject: Subject, error: Exception) -> PotstillError:
    name = type(subject.encoder).__name__
    return PotstillError(
        f"{subject.folder}: torch's exporter cannot write {name}, which is from outside the library, to ONNX "
        f"({reason_of(error)}). Use ids.shape[0] for the number of rows, and no Python number of a tensor; or use the "
        "student's own folder."
    )


def _told(subject: Subject, deviations: dict[str, Deviation]) -> str:
    deviation = deviations.get("dev") or deviations["made up"]
    rows = f"{deviation.rows:,} rows of {'dev' if 'dev' in deviations else 'random words'}"
    same = "" if deviation.same_class is None else f", the same class on {deviation.same_class:.2%}"
    what = "vectors" if subject.labels is None else "outputs"
    return f"{what} at most {deviation.largest:.2g} from torch's{same} ({rows})"

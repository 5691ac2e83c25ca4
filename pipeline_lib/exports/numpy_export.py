"""A student as a folder that needs only numpy and tokenizers: weights, tokenizer, one module."""

from pathlib import Path

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import copy_file
from pipeline_lib.exports import numpy_student
from pipeline_lib.exports.export_source import read_subject
from pipeline_lib.exports.folders import require_new_folder, unknown_number, write_config, write_tokenizer

MODULE = "student.py"


def export_numpy(folder: Path, out: Path) -> str:
    """Write the student in ``folder`` to the new folder ``out``; return a one-line summary."""
    require_new_folder(out)
    subject = read_subject(folder)
    if subject.architecture not in numpy_student.ARCHITECTURES:
        raise PotstillError(
            f"{folder}: a {subject.architecture} student cannot be exported to numpy. Export one "
            f"of {', '.join(numpy_student.ARCHITECTURES)}, or this one with --to onnx."
        )
    out.mkdir(parents=True, exist_ok=True)
    copies = {"model.safetensors": folder / "model.safetensors"}
    for name, source in (copies | {MODULE: Path(numpy_student.__file__)}).items():
        copy_file(source, out / name)
    write_tokenizer(out, subject.reader.tokenizer, subject.reader.max_words)
    additions = {"unknown": unknown_number(subject.reader.tokenizer), "temperature": subject.temperature}
    write_config(out, subject.config, "numpy", **additions)
    return f"needs numpy and tokenizers: python {out / MODULE} TEXT"

"""Students and teachers that are transformers models as ONNX graphs, by torch's exporter.

The tracing exporter supports the layers of every model family and keeps the numbers of rows and tokens dynamic, since
a transformer has no loop over steps that a trace would fix.
"""

import copy
import io
import warnings
from typing import TYPE_CHECKING

import torch
from torch import nn

from pipeline_lib.exports.onnx.graphs import COLUMNS, OPSET, ROWS
from pipeline_lib.exports.onnx.student import FIRST, SECOND
from pipeline_lib.models.networks.siamese import SiameseTransformerEncoder
from pipeline_lib.models.networks.student import StudentNetwork
from pipeline_lib.models.networks.transformer import TransformerReader
from pipeline_lib.text.pieces import SEGMENTS
from pipeline_lib.text.ragged import PAD_ID

if TYPE_CHECKING:
    import onnx

TRACED = (TransformerReader, SiameseTransformerEncoder)
ATTENTION = "eager"
"""The other attention implementations drop the mask if the example needs none."""


def trace(
    student: StudentNetwork | SiameseTransformerEncoder, output: str, segments: bool, temperature: float = 1.0
) -> "onnx.ModelProto":
    """Return a student, or a sentence encoder, as an ONNX model.

    :param segments: whether it is told which sentence of a pair a token belongs to.
    """
    model = copy.deepcopy(student).eval()
    reader = getattr(model, "encoder", model)
    reader.model.set_attn_implementation(ATTENTION)
    pair = model is not reader and model.config.pair
    apart = pair and not model.config.settings.joint
    suffixes = (FIRST, SECOND) if apart else (FIRST,)
    names = [f"{name}{side}" for side in suffixes for name in ("input_ids", "attention_mask")]
    names += [SEGMENTS] if segments else []
    return _graph(_Traced(model, temperature), names, output)


def trace_words(
    student: StudentNetwork | nn.Module, output: str, unknown: int, temperature: float = 1.0
) -> "onnx.ModelProto":
    """Return a student of words, or a sentence encoder, whose encoder has no graph of the library's, as an ONNX model.

    :param unknown: the number of the unknown word, which stands for a text without one.
    """
    model = copy.deepcopy(student).eval()
    pair = isinstance(model, StudentNetwork) and model.config.pair
    suffixes = (FIRST, SECOND) if pair else (FIRST,)
    names = [f"{name}{side}" for side in suffixes for name in ("input_ids", "attention_mask")]
    return _graph(_TracedWords(model, unknown, temperature), names, output)


def trace_classifier(model: nn.Module, output: str, segments: bool) -> "onnx.ModelProto":
    """Return a classifier of transformers, such as a teacher, as an ONNX model.

    :param model: in float32; :param output: the name of the output, its logits.
    :param segments: whether it is told which sentence of a pair a token belongs to.
    """
    model = copy.deepcopy(model).eval()
    model.set_attn_implementation(ATTENTION)
    names = ["input_ids", "attention_mask", *([SEGMENTS] if segments else [])]
    return _graph(_TracedClassifier(model, names), names, output)


def _graph(module: nn.Module, names: list[str], output: str) -> "onnx.ModelProto":
    """Trace a module whose arguments have these names."""
    import onnx

    axes = {name: {0: ROWS, 1: COLUMNS + (SECOND if name.endswith(SECOND) else "")} for name in names}
    file = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        # Warnings about being the older exporter, and about shapes traced as constants.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(),
            tuple(_example(name) for name in names),
            file,
            dynamo=False,
            input_names=names,
            output_names=[output],
            dynamic_axes=axes | {output: {0: ROWS}},
            opset_version=OPSET,
        )
    return onnx.load_from_string(file.getvalue())


class _TracedClassifier(nn.Module):
    """A classifier whose arguments are those of the graph, and whose result is one tensor."""

    def __init__(self, model: nn.Module, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        return self.model(**dict(zip(self.names, inputs, strict=True))).logits


class _Traced(nn.Module):
    """A student whose arguments are those of the graph, and whose result is one tensor."""

    def __init__(self, student: StudentNetwork | SiameseTransformerEncoder, temperature: float) -> None:
        super().__init__()
        self.student, self.temperature = student, temperature

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Return logits, or sentence vectors."""
        student = self.student
        if isinstance(student, SiameseTransformerEncoder):
            return _sentence_vectors(student, *inputs)
        if student.config.settings.joint:
            vectors = [_first_state(student.encoder, *inputs)]
        else:
            sides = [inputs[index : index + 2] for index in range(0, len(inputs), 2)]
            vectors = [_sentence_vectors(student.encoder, *side) for side in sides]
        return student.outputs_of_vectors(*vectors)["logits"] / self.temperature


class _TracedWords(nn.Module):
    """A student of words whose arguments are those of the graph, and whose result is one tensor."""

    def __init__(self, student: nn.Module, unknown: int, temperature: float) -> None:
        super().__init__()
        self.student, self.unknown, self.temperature = student, unknown, temperature

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Return logits, or sentence vectors."""
        encoder = getattr(self.student, "encoder", self.student)
        sides = [inputs[index : index + 2] for index in range(0, len(inputs), 2)]
        vectors = [encoder(*self._words(*side)) for side in sides]
        if encoder is self.student:
            return vectors[0]
        return self.student.outputs_of_vectors(*vectors)["logits"] / self.temperature

    def _words(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ids and lengths as a student reads them; a column is added, since empty texts may have none."""
        ids = torch.cat([ids, torch.full_like(ids[:, :1].sum(1, keepdim=True), PAD_ID)], dim=1)
        counts = mask.sum(1)
        numbers = torch.cumsum(torch.ones_like(ids), 1) - 1
        first = torch.where(numbers == 0, self.unknown, PAD_ID)
        return torch.where(numbers < counts[:, None], ids, first), counts.clamp(min=1)


def _sentence_vectors(encoder: SiameseTransformerEncoder, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Compute the encoder's sentence vectors, with no step that depends on the example."""
    outputs = encoder.model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
    return encoder.vectors(outputs.hidden_states, mask.float())


def _first_state(
    reader: TransformerReader, ids: torch.Tensor, mask: torch.Tensor, segments: torch.Tensor | None = None
) -> torch.Tensor:
    extra = {} if segments is None else {SEGMENTS: segments}
    outputs = reader.model(input_ids=ids, attention_mask=mask, output_hidden_states=True, **extra)
    states = torch.stack([layer[:, 0] for layer in outputs.hidden_states[1:]], dim=1)
    return states[:, -1] if reader.pool == "last" else states.mean(1)


def _example(name: str) -> torch.Tensor:
    """Return two rows, one of them padded."""
    if name.startswith("attention_mask"):
        return torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    return torch.zeros(2, 4, dtype=torch.long) if name == SEGMENTS else torch.full((2, 4), 3)

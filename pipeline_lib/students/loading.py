"""Building, saving and loading students, and running them over texts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers.utils.logging import disable_progress_bar

from pipeline_lib.batching import LengthSorted, Sentences
from pipeline_lib.columns import Text
from pipeline_lib.errors import DistilleryError
from pipeline_lib.students.model import StudentConfig, StudentForSequenceClassification
from pipeline_lib.teachers.model import count_parameters

PREDICT_BATCH = 256

# A student is read and written in a blink; transformers' bars would only break up ours.
disable_progress_bar()


@dataclass
class Student:
    """A trained student and its tokenizer on one device."""

    model: StudentForSequenceClassification
    tokenizer: Any
    device: torch.device

    @property
    def label_names(self) -> list[str]:
        """Names of the classes, by class number."""
        names = self.model.config.id2label
        return [names[number] for number in range(len(names))]

    @property
    def is_pair(self) -> bool:
        """Whether it compares two sentences."""
        return self.model.config.pair

    def parameters(self, embeddings: bool) -> int:
        """Count parameters, with or without the embedding tables."""
        return count_parameters(self.model, embeddings)

    def predict(self, texts: Sequence[Text]) -> np.ndarray:
        """Return the outputs for each text or pair, float32, (texts, outputs), in their order."""
        return predict_sentences(self.model, self.encode(texts), self.device)

    def encode(self, texts: Sequence[Text]) -> Sentences:
        """Split and number the words of each text or pair, cut to the student's length."""
        if self.model.config.pair:
            first, second = zip(*texts, strict=True)
            return replace(self._encode(first), second=self._encode(second))
        return self._encode(texts)

    def _encode(self, texts: Sequence[str]) -> Sentences:
        backend = self.tokenizer.backend_tokenizer
        limit = self.model.config.architecture["max_words"]
        # A text without a word is one unknown word: every row needs a length of at least 1.
        unknown = [self.tokenizer.unk_token_id]
        ids = [e.ids[:limit] or unknown for e in backend.encode_batch_fast(list(texts))]
        return Sentences.from_lists(ids, {}, self.tokenizer.pad_token_id)


def predict_sentences(
    model: torch.nn.Module, sentences: Sentences, device: torch.device
) -> np.ndarray:
    """Return outputs, float32, shape (sentences, outputs), computed in batches by length."""
    outputs = np.empty((len(sentences), model.config.num_labels), np.float32)
    model.eval()
    with torch.inference_mode():
        for rows in LengthSorted(sentences, PREDICT_BATCH, seed=0).epoch(0):
            batch = {name: tensor.to(device) for name, tensor in sentences.batch(rows).items()}
            outputs[rows] = model.outputs(batch).float().cpu().numpy()
    return outputs


def build_student(
    architecture: dict[str, Any],
    label_names: Sequence[str],
    pair: bool,
    vectors: np.ndarray | None,
    table_shape: tuple[int, int],
) -> StudentForSequenceClassification:
    """Return an untrained student; its word vectors start from ``vectors``, or at random.

    :param table_shape: (words, width) of the embedding table.
    """
    config = StudentConfig(
        vocab_size=table_shape[0],
        embedding_size=table_shape[1],
        architecture=architecture,
        pair=pair,
        id2label=dict(enumerate(label_names)),
        label2id={name: number for number, name in enumerate(label_names)},
    )
    model = StudentForSequenceClassification(config)
    if vectors is not None:
        model.encoder.embeddings.load(torch.from_numpy(vectors))
    return model


def save_student(folder: Path, model: StudentForSequenceClassification, tokenizer: Any) -> None:
    """Write config.json, model.safetensors and the tokenizer."""
    model.to("cpu").save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load_student(folder: Path, device: torch.device | str = "cpu") -> Student:
    """Load a trained student.

    :raises DistilleryError: if the folder holds none.
    """
    from transformers import PreTrainedTokenizerFast

    try:
        model = StudentForSequenceClassification.from_pretrained(folder, use_safetensors=True)
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise DistilleryError(
            f"{folder}: not a trained student ({str(error).splitlines()[0]}). Train it with "
            "`dvc repro`, or give a folder below data/students."
        ) from error
    return Student(model.to(device).eval(), tokenizer, torch.device(device))

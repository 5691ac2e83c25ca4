"""The usual way to train: transformers' Trainer, with batches at random or grouped by length."""

import copy
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from pipeline_lib.text.ragged import PAD_ID, Sentences
from pipeline_lib.training.loop import Batch, Settings

Item = Mapping[str, Any]


@dataclass(frozen=True)
class Peer:
    """What the Trainer trains.

    :ivar model: returns its loss under ``loss``; :ivar items: the rows of its dataset.
    :ivar collate: rows to the tensors of a batch.
    """

    model: torch.nn.Module
    items: Sequence[Item]
    collate: Callable[[list[Any]], Any]

    def probe(self) -> None:
        """Raise what the Trainer raises if it cannot run."""
        with tempfile.TemporaryDirectory() as folder:
            _arguments(folder, "float32")

    def train(
        self,
        batches: Sequence[np.ndarray],
        precision: str,
        settings: Settings,
        on_loss: Callable[[float], None] | None = None,
    ) -> list[float]:
        """Train a copy on these batches, one after the other; return the end time of each step.

        :param settings: ours; all other settings are the Trainer's defaults, which are the same.
        :param on_loss: called with each step's loss.
        """
        from transformers import PrinterCallback, Trainer

        model = copy.deepcopy(self.model)
        device = next(model.parameters()).device
        clock = _clock(device)
        if on_loss:
            model.register_forward_hook(lambda _, __, outputs: on_loss(float(outputs["loss"].detach())))
        with tempfile.TemporaryDirectory() as folder:
            trainer = Trainer(
                model=model,
                args=_arguments(
                    folder,
                    precision,
                    use_cpu=device.type == "cpu",
                    per_device_train_batch_size=settings.batch_size,
                    learning_rate=settings.learning_rate,
                    max_grad_norm=settings.clip_norm,
                    num_train_epochs=1,
                    seed=settings.seed,
                ),
                data_collator=self.collate,
                train_dataset=[self.items[row] for rows in batches for row in rows],
                callbacks=[clock],
            )
            trainer.remove_callback(PrinterCallback)
            trainer.train()
        return clock.ends


class _Learner(torch.nn.Module):
    """A student's network as the Trainer takes models: from a batch to its loss."""

    def __init__(self, network: torch.nn.Module, loss: Callable[[Any, Batch], torch.Tensor]) -> None:
        super().__init__()
        self.network, self.loss = network, loss

    def forward(
        self,
        ids: torch.Tensor,
        lengths: torch.Tensor,
        ids_2: torch.Tensor,
        lengths_2: torch.Tensor,
        logits: torch.Tensor,
    ) -> dict[str, torch.Tensor]:
        """Return ``loss``, a scalar; the arguments as in :meth:`Sentences.batch`."""
        # The Trainer moves them to the device; an LSTM reads them on the CPU.
        lengths, lengths_2 = lengths.cpu(), lengths_2.cpu()
        batch = {"ids": ids, "lengths": lengths, "ids_2": ids_2, "lengths_2": lengths_2}
        return {"loss": self.loss(self.network, batch | {"logits": logits})}


def student_peer(network: torch.nn.Module, sentences: Sentences, loss: Callable[[Any, Batch], torch.Tensor]) -> Peer:
    """Return the student's network, and its pairs as tensors row by row."""
    sides = [
        np.split(torch.from_numpy(side.ids.astype(np.int64)), side.offsets[1:-1])
        for side in (sentences, sentences.second)
    ]
    logits = torch.from_numpy(sentences.targets["logits"])
    items = [{"ids": first, "ids_2": second, "logits": row} for first, second, row in zip(*sides, logits, strict=True)]
    return Peer(_Learner(network, loss), items, _padded)


def _padded(items: list[Item]) -> dict[str, torch.Tensor]:
    """Return the tensors of a batch, padded to its longest, as `DataCollatorWithPadding` does."""
    tensors = {"logits": torch.stack([item["logits"] for item in items])}
    for side in ("", "_2"):
        rows = [item[f"ids{side}"] for item in items]
        tensors[f"ids{side}"] = pad_sequence(rows, batch_first=True, padding_value=PAD_ID)
        tensors[f"lengths{side}"] = torch.tensor([len(row) for row in rows])
    return tensors


def teacher_peer(
    model: torch.nn.Module, tokenizer: Any, pairs: Sequence[tuple[str, str]], labels: np.ndarray, max_length: int
) -> Peer:
    """Return the classifier as transformers loads it, and its tokenized pairs."""
    from transformers import DataCollatorWithPadding

    encoded = tokenizer(*map(list, zip(*pairs, strict=True)), truncation=True, max_length=max_length)
    items = [
        {name: values[row] for name, values in encoded.items()} | {"labels": int(label)}
        for row, label in enumerate(labels)
    ]
    return Peer(model, items, DataCollatorWithPadding(tokenizer))


def random_batches(lengths: np.ndarray, size: int, seed: int) -> list[np.ndarray]:
    """Return the batches of an epoch in the order of the Trainer's default sampler, at random."""
    order = torch.randperm(len(lengths), generator=torch.Generator().manual_seed(seed))
    return _cut(order.numpy(), size)


def grouped_batches(lengths: np.ndarray, size: int, seed: int) -> list[np.ndarray]:
    """Return the batches of an epoch as the Trainer's ``group_by_length`` makes them."""
    from transformers.trainer_pt_utils import get_length_grouped_indices

    generator = torch.Generator().manual_seed(seed)
    return _cut(np.array(get_length_grouped_indices(lengths, size, generator=generator)), size)


def _cut(order: np.ndarray, size: int) -> list[np.ndarray]:
    return [order[i : i + size] for i in range(0, len(order), size)]


def _arguments(folder: str, precision: str, **options: Any) -> Any:
    """Return the Trainer's arguments: its defaults, except for what is given.

    The rows are in the order of their batches already, so they are read sequentially.
    """
    from transformers import TrainingArguments

    return TrainingArguments(
        output_dir=folder,
        bf16=precision == "bfloat16",
        train_sampling_strategy="sequential",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        **options,
    )


def now(device: torch.device) -> float:
    """Return the time, in seconds, once a device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def _clock(device: torch.device) -> Any:
    """Return a callback that records when each step ended."""
    from transformers import TrainerCallback

    class Clock(TrainerCallback):
        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_step_end(self, *_: Any, **__: Any) -> None:
            self.ends.append(now(device))

    return Clock()

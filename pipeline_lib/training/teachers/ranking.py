"""Ranking a question's candidate answers: a classification whose rows are compared in training.

MT-DNN (Liu et al. 2019, section 3): the relevance of an answer is g(wᵀx), here with the sigmoid as g, and its
probability among the candidates of one question is the softmax over their relevances. The sigmoid of the difference
of two logits is the probability of a class, so the trained model is an ordinary classifier of two classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

from pipeline_lib.base.text import Text
from pipeline_lib.text.batches import LengthSorted


@dataclass(frozen=True)
class CandidateBatches(LengthSorted):
    """Batches that contain all candidates of their questions, one question after another.

    All questions in a batch have the same number of candidates; one with more candidates than
    ``batch_size`` gets a batch of its own.

    :ivar questions: the number of each row's question, int64 (rows,).
    """

    questions: np.ndarray

    def epoch(self, number: int) -> list[np.ndarray]:
        """Return the row numbers of each batch; a pure function of (seed, number)."""
        generator = np.random.default_rng([self.seed, number])
        batches = []
        for rows in self._by_candidates:
            order = generator.permutation(len(rows))
            longest = self.sentences.lengths[rows[order]].max(axis=1)
            rows = rows[order[np.argsort(longest, kind="stable")]]
            step = max(1, self.batch_size // rows.shape[1])
            batches += [rows[i : i + step].reshape(-1) for i in range(0, len(rows), step)]
        return [batches[i] for i in generator.permutation(len(batches))]

    def collate(self, rows: np.ndarray) -> dict[str, Any]:
        """Return the tensors of one batch, and the candidates per question, ``candidates``."""
        candidates = int((self.questions[rows] == self.questions[rows[0]]).sum())
        return {**super().collate(rows), "candidates": candidates}

    @cached_property
    def _by_candidates(self) -> list[np.ndarray]:
        """The rows of all questions with the same number of candidates, (questions, candidates)."""
        order = np.argsort(self.questions, kind="stable")
        _, starts, counts = np.unique(self.questions[order], return_index=True, return_counts=True)
        return [order[starts[counts == count][:, None] + np.arange(count)] for count in np.unique(counts)]


def questions_of(texts: Sequence[Text]) -> np.ndarray:
    """Return an index for each pair's question, its first sentence, int64 (rows,)."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(question, len(numbers)) for question, _ in texts], np.int64)


def ranking_loss(logits: torch.Tensor, labels: torch.Tensor, answer: int, candidates: int) -> torch.Tensor:
    """Return −log P(right answer | question), averaged over right answers, a scalar.

    Each right answer is compared with the wrong ones of its question.  Rows of questions without a
    right or a wrong answer are not compared: their cross-entropy is used instead.

    :param logits: float (rows, 2), with the candidates of a question in consecutive rows.
    :param labels: int64 (rows,); :param answer: the class of right answers.
    :param candidates: the number of candidates per question.
    """
    relevance = logits.softmax(-1)[:, answer].view(-1, candidates)
    right = (labels == answer).view(-1, candidates)
    ranked = right.any(1) & ~right.all(1)
    wrong = relevance[ranked].masked_fill(right[ranked], -torch.inf).logsumexp(1, keepdim=True)
    # −log(exp(r) / (exp(r) + sum of exp over the wrong ones)).
    compared = F.softplus(wrong - relevance[ranked])[right[ranked]]
    alone = ~ranked.repeat_interleave(candidates)
    entropies = F.cross_entropy(logits[alone], labels[alone], reduction="none")
    return torch.cat([compared, entropies]).mean()

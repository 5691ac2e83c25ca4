"""Keys that params.yaml had once: each is refused by name, with what to use instead."""

from fnmatch import fnmatchcase

REMOVED: dict[str, str] = {
    "catalogues": "make an index by `distill index data/mine data/wikipedia/train --encoder data/encoders/NAME`",
    "encoders.*.seed": "encoders are always trained with the seed 1",
    "engine.per_training": "one process trains each model",
    "evaluate": "there are 1,000 resamples, and the interval is of 95 %",
    "joint.*.min_count": "every word of the group's training sets is known",
    "joint.*.objective": "a joint training learns the teachers' logits",
    "joint.*.sampling": "every batch of every task is used once per epoch",
    "methods.*.min_confidence": "no synthetic row is left out",
    "methods.*.repeat_originals": "every row is used once per epoch",
    "retrieval.*.source.qrels": "give the pairs as a task, or evaluate an exported encoder with sentence-transformers",
    "retrieval.*.systems.*.dimensions": "vectors are compared whole",
    "retrieval.*.systems.*.documents": "one encoder embeds both; compare its model by `kind: model`",
    "retrieval.*.systems.*.storage": "vectors are compared in float32",
    "sentence_vectors.files": "name a `model` that is run here, of kind path or hub",
    "sentence_vectors.storage": "vectors are kept in float16",
    "speed": "each form is timed three times, for a second",
    "tasks.*.added_labels": "list the file in `source.files.train`, as in [train.csv, more.csv]",
    "tasks.*.lexicon": "the words are counted in the training set",
    "tasks.*.pool": "name the texts in `source.files.unlabelled`, or give them to `distill init --unlabelled`",
    "tasks.*.source.seed": "pairs are always drawn with the seed 1",
    "tasks.*.split.seed": "splits are always drawn with the seed 1",
    "tasks.*.submission": "the files of a GLUE submission are named in benchmarks/papers/submission.py",
    "teachers.*.tuning.clip_norm": "gradients are always clipped to a norm of 1",
    "teachers.*.tuning.format": "the file's suffix says it: rename the file",
    "teachers.*.tuning.floor": "probabilities below 0.0001 are raised to it",
    "teachers.*.tuning.min_coverage": "every answer counts: give an `error` to rows that should have none",
    "teachers.*.tuning.sampling": "every batch of every task is used once per epoch",
    "teachers.*.tuning.smoothing": "it is always 0.1",
    "teachers.*.tuning.warmup": "the rate always rises over a tenth of the steps",
    "teachers.*.tuning.weight_decay": "it is always 0.01",
    "transfer.*.ngram_min": "the shortest n-gram is one word",
    "transfer.*.seed": "transfer sets are always drawn with the seed 1",
    "transfer.*.substitution": "words are masked or replaced by part of speech: use `p_mask` and `p_pos`",
    "vocabulary.min_count": "every word of the training text is known",
    "wikipedia.keep": "sentences are always kept by the same rules (docs/wikipedia-and-encoders.md)",
}
"""Dotted key, in which ``*`` stands for any name, to what to use instead."""


def instead_of(key: str) -> str | None:
    """Return what to use instead of a key that is gone; None for one that never was."""
    return next((use for pattern, use in REMOVED.items() if fnmatchcase(key, pattern)), None)

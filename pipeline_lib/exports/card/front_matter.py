"""The YAML front matter of a model card, which the Hugging Face hub reads."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pipeline_lib.exports.card.card_data import Facts
from pipeline_lib.exports.card.origins import Origin

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

METRICS = {"pearson": "pearsonr", "spearman": "spearmanr", "f1_micro": "f1", "f1_macro": "f1"}
"""The hub's names of metrics, where they differ."""
TASK = "text-classification"
"""For regressions too, as the hub has no separate task for them."""


def front_matter(facts: Facts, sources: list[Origin]) -> str:
    """Return the YAML between the rules; unknown values have no key, the licence is ``unknown``."""
    from huggingface_hub import ModelCardData

    results = list(_results(facts, sources))
    architecture = facts.student.model.config.settings.name()
    metrics = [] if facts.result is None else facts.result.scores.metrics
    data = ModelCardData(
        library_name="transformers",
        license="unknown",
        pipeline_tag=TASK,
        tags=["knowledge-distillation", "potstill", architecture],
        base_model=_names(sources, is_data=False),
        datasets=_names(sources, is_data=True),
        metrics=[METRICS.get(name, name) for name in metrics] or None,
        model_name=f"{facts.place.task}-{facts.place.method}" if results else None,
        eval_results=results or None,
    )
    return data.to_yaml()


def _names(sources: list[Origin], is_data: bool) -> list[str] | None:
    names = [source.hub for source in sources if source.hub is not None and source.is_data == is_data]
    return list(dict.fromkeys(names)) or None


def _results(facts: Facts, sources: list[Origin]) -> "Iterable[EvalResult]":
    """Yield the scores of this file, by split and metric, as fractions."""
    from huggingface_hub import EvalResult

    if facts.result is None:
        return
    task, seed = facts.place.task, str(facts.place.seed)
    # The task's data come first; if they are not from the hub, they have no name there.
    hub = next((source.hub for source in sources if source.is_data), None)
    for split, scores in facts.own.scores.items():
        for metric, value in (scores or {}).items():
            yield EvalResult(
                task_type=TASK,
                dataset_type=hub or task,
                dataset_name=task,
                dataset_split=split,
                metric_type=METRICS.get(metric, metric),
                metric_name=f"{metric}, seed {seed}",
                metric_value=value.by_seed[seed],
            )

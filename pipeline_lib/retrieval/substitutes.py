"""The passes whose outputs augmentation substitutes words by."""

from pipeline_lib.base.layout import Layout
from pipeline_lib.params import Params
from pipeline_lib.shards.engine.passes import ShardPass


def candidate_passes(params: Params, recipe: str, layout: Layout) -> list[ShardPass]:
    """Return the passes that find what words can be substituted by: nearest, and predicted ones."""
    rule = params.recipe(recipe).substitution
    if rule is None:
        return []
    # Importing torch takes seconds.
    from pipeline_lib.models.students.vocabulary import vector_source
    from pipeline_lib.retrieval.nearest_words import NearestWordsPass

    source = vector_source(params.vocabulary, layout)
    passes: list[ShardPass] = [NearestWordsPass.of(params.vocabulary, source, rule.candidates)]
    if rule.model is not None:
        from pipeline_lib.outputs.predictions import PredictionPass

        model = layout.model(rule.model)
        passes.append(PredictionPass.of(params, model, rule.max_length, count=rule.candidates))
    return passes

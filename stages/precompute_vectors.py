"""Compute or look up the vector of every sentence that an encoder is trained on.

    python -m pipeline_lib.stages.precompute_vectors

Reads data/wikipedia/{train,validation}, the transfer sets that `encoders` name, and the model, or
data/raw/sentence_vectors; writes data/vectors/wikipedia/<split> and data/vectors/tasks/<task>/<recipe>: one shard
per input shard, row for row, and alignment.json with the figures of the proof.
"""

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.terminal import say
from pipeline_lib.outputs.sentence_sets import sentence_sets
from pipeline_lib.params import Params, SentenceVectorFiles, load_params
from pipeline_lib.shards.engine import make_engine
from pipeline_lib.shards.shard_sets import ShardSet


def main() -> None:
    """Compute or look up the vector of every sentence that an encoder is trained on."""
    params, layout = load_params(), Layout()
    fresh_folder(layout.vectors)
    write_json(layout.row_names(layout.vectors), sorted(params.sentence_encoders()))
    if not params.sentence_encoders():
        say("no sentence encoders in params.yaml: no vectors")
        return
    if isinstance(params.sentence_vectors, SentenceVectorFiles):
        take(params, layout)
    else:
        compute(params, layout)


def compute(params: Params, layout: Layout) -> None:
    """Compute a model's vectors, and prove that they belong to their sentences."""
    from pipeline_lib.outputs.precompute import precompute_vectors
    from pipeline_lib.outputs.vectors import VectorPass

    vector_pass = VectorPass.of(params, layout.model(params.sentence_vectors.model))
    engine = make_engine(params, vector_pass.device)
    for sentence_set in sentence_sets(params, layout):
        name = sentence_set.vectors.relative_to(layout.vectors).as_posix()
        inputs = ShardSet.open(sentence_set.inputs)
        report = precompute_vectors(inputs, vector_pass, sentence_set.vectors, engine, f"vectors {name}")
        say(f"{name}: {report}")


def take(params: Params, layout: Layout) -> None:
    """Look up the vectors that were given in files; list the sentences that have none."""
    from pipeline_lib.outputs.files.checks import check_words, unrelated_warning
    from pipeline_lib.outputs.files.keyed_table import KeyedTable
    from pipeline_lib.outputs.files.lookup_pass import VectorLookup
    from pipeline_lib.outputs.precompute import take_outputs

    settings, engine = params.sentence_vectors, make_engine(params, "cpu")
    sets, where = sentence_sets(params, layout), ", ".join(settings.files)
    vectors = KeyedTable.read(layout.given_vectors, "vectors")
    corpus = ShardSet.open(sets[0].inputs).tables()
    correlation = check_words(vectors, "vectors", corpus, where)
    if warning := unrelated_warning(where, "vectors", correlation):
        say(warning)
    lookup = VectorLookup.of(layout.given_vectors)
    for sentence_set in sets:
        folder, inputs = sentence_set.vectors, ShardSet.open(sentence_set.inputs)
        name = folder.relative_to(layout.vectors).as_posix()
        say(f"{name}: {take_outputs(lookup, inputs, folder, engine)}")


if __name__ == "__main__":
    run_stage(main)

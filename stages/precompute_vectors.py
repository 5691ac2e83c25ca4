"""Compute the vector of every sentence that an encoder is trained on.

    python -m pipeline_lib.stages.precompute_vectors

Reads data/wikipedia/{train,validation}, the transfer sets that `encoders` name, and the model; writes
data/vectors/wikipedia/<split> and data/vectors/tasks/<task>/<recipe>: one shard per input shard, row for row, and
alignment.json with the figures of the proof.
"""

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.model_config import unused_files
from pipeline_lib.base.terminal import say
from pipeline_lib.params import load_params
from pipeline_lib.shards.engine import make_engine
from pipeline_lib.shards.shard_sets import ShardSet


def main() -> None:
    """Compute the vector of every sentence that an encoder is trained on."""
    params, layout = load_params(), Layout()
    fresh_folder(layout.vectors)
    write_json(layout.row_names(layout.vectors), sorted(params.sentence_encoders()))
    if not params.sentence_encoders():
        say("no sentence encoders in params.yaml: no vectors")
        return
    from pipeline_lib.outputs.precompute import precompute_vectors
    from pipeline_lib.outputs.vectors import VectorPass, sentence_sets

    folder = layout.model(params.sentence_vectors.model)
    if unused := unused_files(folder):
        say(f"{folder}: {', '.join(unused)}: not applied, vectors are those of the transformer")
    vector_pass = VectorPass.of(params, folder)
    engine = make_engine(params, vector_pass.device)
    for sentences in sentence_sets(params, layout):
        name = sentences.outputs.relative_to(layout.vectors).as_posix()
        inputs = ShardSet.open(sentences.inputs)
        report = precompute_vectors(inputs, vector_pass, sentences.outputs, engine, f"vectors {name}")
        say(f"{name}: {report}")


if __name__ == "__main__":
    run_stage(main)

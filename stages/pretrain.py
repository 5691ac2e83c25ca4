"""Train one encoder of params.yaml, without any task, on sentence vectors or a model's layers.

    python -m pipeline_lib.stages.pretrain --encoder sra

Reads data/wikipedia, data/transfer and data/tasks of the tasks that its row names, data/vectors, data/raw/models and
data/raw/vectors; writes data/encoders/<name>.  If killed, it resumes from the last checkpoint.
"""

from typing import Annotated

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.base.terminal import say
from pipeline_lib.params import load_params
from pipeline_lib.shards.engine import make_engine
from pipeline_lib.shards.training_records import EncoderRecord, VectorEncoderRecord


def main(encoder: Annotated[str, typer.Option(help="A row of `encoders`.")]) -> None:
    """Train an encoder, without any task, on sentence vectors or a model's layers."""
    from pipeline_lib.base.devices import resolve_device
    from pipeline_lib.training.distillation.encoders import EncoderTraining
    from pipeline_lib.training.distillation.general import encoder_row
    from pipeline_lib.training.progress import show_training
    from pipeline_lib.training.search import train_rows

    params, layout = load_params(), Layout()
    device = str(resolve_device(params.device))
    row = encoder_row(params, encoder, layout, device)
    folder = fresh_folder(layout.encoder(encoder))

    def note(training: EncoderTraining, loss: float, best: float) -> str:
        return f"{training.name}: loss {loss:.4f} held back {-best:.4f}"

    with show_training(f"pretraining {encoder}", [row], note) as shown:
        engine = make_engine(params, device)
        searched = train_rows([row], engine, shown.on_progress, shown.on_done)[encoder]
    [(training, record)] = searched.trainings.values()
    training.result.link_into(folder)
    searched.write(folder)
    describe(encoder, record)


def describe(encoder: str, record: EncoderRecord) -> None:
    """Print how well an encoder does on held-back sentences, and a warning if it collapsed."""
    from pipeline_lib.training.distillation.collapse_checks import collapse_warning

    line = f"{encoder}: loss {record.loss:.4f} on {record.held_back_sentences:,} held-back"
    if not isinstance(record, VectorEncoderRecord):
        say(f"{line} sentences")
        return
    say(
        f"{line} sentences (one constant vector: {record.constant_loss:.4f}); effective rank "
        f"{record.effective_rank:.1f}, mean cosine {record.mean_cosine:.3f}"
    )
    if warning := collapse_warning(encoder, record):
        say(warning)


if __name__ == "__main__":
    run_stage(main)

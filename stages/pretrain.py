"""Train the encoders of params.yaml, without any task, on sentence vectors or a model's layers.

    python stages/pretrain.py

Reads data/wikipedia, data/transfer and data/tasks of the tasks that the rows name, data/vectors,
data/raw/models and data/raw/vectors; writes data/encoders/<name>.  If killed, it resumes from
the last checkpoint.
"""

import typer

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import clear_folder
from pipeline_lib.base.layout import Layout
from pipeline_lib.engine import make_engine
from pipeline_lib.params import Encoder, GeneralEncoder, load_params


def main() -> None:
    """Train the encoders, without any task, on sentence vectors or a model's layers."""
    from pipeline_lib.base.devices import resolve_device
    from pipeline_lib.distillation.collapse import collapse_warning
    from pipeline_lib.distillation.encoders import EncoderTraining, encoder_row
    from pipeline_lib.distillation.general import GeneralTraining, general_row
    from pipeline_lib.training.progress import show_training
    from pipeline_lib.training.search import train_rows

    params, layout = load_params(), Layout()
    clear_folder(layout.encoders)
    if not params.encoders:
        typer.echo("no encoders in params.yaml")
        return
    device = str(resolve_device(params.device))
    row_of = {Encoder: encoder_row, GeneralEncoder: general_row}
    own = params.encoders.items()
    rows = [row_of[type(row)](params, name, layout, device) for name, row in own]

    def note(training: EncoderTraining | GeneralTraining, loss: float, best: float) -> str:
        return f"{training.name}: loss {loss:.4f} held back {-best:.4f}"

    with show_training("pretraining", rows, note) as shown:
        engine = make_engine(params, device)
        searched = train_rows(rows, engine, shown.on_progress, shown.on_done)
    for name, found in searched.items():
        [(training, record)] = found.trainings.values()
        training.result.link_into(layout.encoder(name))
        found.write(layout.encoder(name))
        line = f"{name}: loss {record['loss']:.4f} on {record['held_back_sentences']:,} held-back"
        if "constant_loss" not in record:
            typer.echo(f"{line} sentences")
            continue
        typer.echo(
            f"{line} sentences (one constant vector: {record['constant_loss']:.4f}); effective "
            f"rank {record['effective_rank']:.1f}, mean cosine {record['mean_cosine']:.3f}"
        )
        if missing := record.get("unanswered", 0) + record.get("held_back_unanswered", 0):
            typer.echo(f"  {missing:,} sentences have no vector and are left out")
        if warning := collapse_warning(name, record):
            typer.echo(warning)


if __name__ == "__main__":
    run_stage(main)

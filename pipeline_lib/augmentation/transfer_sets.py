"""Transfer sets: one augmented block by block, into a shard per block and iteration."""

from dataclasses import asdict
from pathlib import Path

from pipeline_lib.augmentation.rules import Counts, augment_block, transfer_schema
from pipeline_lib.base.files import clear_folder
from pipeline_lib.params import Recipe, Task
from pipeline_lib.storage.columns import label_type
from pipeline_lib.storage.fingerprint import code_fingerprint
from pipeline_lib.storage.shards import (
    Manifest,
    Shard,
    ShardSet,
    schema_of,
    shard_name,
    write_manifest,
    write_shard,
)
from pipeline_lib.text.lexicon import Lexicon


def write_transfer_set(
    prepared: ShardSet, lexicon: Lexicon, recipe: Recipe, task: Task, folder: Path
) -> Manifest:
    """Augment every block of ``prepared`` into ``folder``: one shard per block and iteration.

    The cap is shared out evenly over the blocks, so that no block depends on another.
    """
    clear_folder(folder)
    cap = None if task.augment.cap is None else -(-task.augment.cap // task.blocks)
    shards: list[Shard] = []
    total = Counts()
    for block, examples in enumerate(prepared.tables()):
        for iteration, rows, counts in augment_block(
            examples, lexicon, recipe, task.augment.n_iter, cap
        ):
            name = shard_name(block, iteration)
            shards.append(write_shard(folder / name, rows))
            total.add(counts)
    made_from = {
        "prepared": prepared.manifest.digest,
        "lexicon": lexicon.digest,
        "recipe": recipe.model_dump(exclude={"tasks"}),
        "augment": task.augment.model_dump(),
        "code": code_fingerprint(augment_block.__module__),
    }
    schema = schema_of(transfer_schema(task.is_pair, label_type(task.is_regression)).empty_table())
    manifest = Manifest("transfer", schema, shards, made_from, asdict(total))
    write_manifest(folder, manifest)
    return manifest

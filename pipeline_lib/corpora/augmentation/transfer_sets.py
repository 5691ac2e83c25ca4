"""Transfer sets: the pass that augments a block of examples, into a shard per iteration."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.layout import Layout
from pipeline_lib.corpora.augmentation.lexicon import Lexicon, read_lexicon
from pipeline_lib.corpora.augmentation.rules import augment_block
from pipeline_lib.params import Params, Recipe, Task
from pipeline_lib.shards.engine.passes import Output, ShardPass
from pipeline_lib.shards.shard_sets import Shard, ShardSet
from pipeline_lib.shards.training_texts import training_texts


@dataclass(frozen=True)
class AugmentationPass(ShardPass):
    """How a block of prepared examples becomes the shards of a transfer set.

    An iteration depends on the ones before it and on none after, so ``n_iter`` is in no key: a
    larger one finds what there is.

    :ivar lexicon: its file; :ivar lexicon_digest: of its words and counts.
    :ivar cap: the block's maximum number of rows, originals included, or None.
    """

    kind: ClassVar[str] = "transfer"
    row_for_row: ClassVar[bool] = False
    lexicon: Path
    lexicon_digest: str
    recipe: Recipe
    n_iter: int
    cap: int | None

    @classmethod
    def of(cls, recipe: Recipe, task: Task, lexicon: Path) -> "AugmentationPass":
        """Take the settings; the cap is divided evenly, so that no block depends on another."""
        cap = None if task.augment.cap is None else -(-task.augment.cap // task.blocks)
        digest, n_iter = read_lexicon(lexicon).digest, task.augment.n_iter
        return cls(lexicon, digest, recipe, n_iter, cap)

    @property
    def settings(self) -> dict[str, Any]:
        """What determines an iteration besides the block and the code."""
        recipe = self.recipe.model_dump(exclude={"tasks"})
        # Only replacement draws from it: other recipes' rows stay when the words change.
        lexicon = self.lexicon_digest if self.recipe.p_pos else None
        return {"lexicon": lexicon, "recipe": recipe, "block_cap": self.cap}

    def load(self) -> None:
        """Load the lexicon."""
        _loaded(self.lexicon, self.lexicon_digest)

    def outputs(self, examples: pa.Table) -> Iterator[Output]:
        """Yield the original rows, then those of each iteration, with their counts."""
        lexicon = _loaded(self.lexicon, self.lexicon_digest)
        for _, rows, counts in augment_block(examples, lexicon, self.recipe, self.n_iter, self.cap):
            yield rows, asdict(counts)

    def is_complete(self, shards: Sequence[Shard]) -> bool:
        """Whether the iterations found are all that are wanted."""
        if not shards:
            return False
        nothing_to_do = self.recipe.changes_nothing or not shards[0].rows
        full = self.cap is not None and sum(shard.rows for shard in shards) >= self.cap
        return nothing_to_do or full or len(shards) > self.n_iter

    def output_name(self, name: str, part: int) -> str:
        """Return ``b000-i001.arrow`` for block ``b000.arrow`` and iteration 1."""
        return f"{Path(name).stem}-i{part:03d}.arrow"


def examples_of(params: Params, task: str, recipe: str, layout: Layout) -> ShardSet:
    """Return the texts that a recipe augments: the training set, perhaps with unlabelled ones."""
    folder = layout.split(task, "train")
    return training_texts(folder) if params.recipe(recipe).unlabelled else ShardSet.open(folder)


def pass_of(params: Params, task: str, recipe: str, examples: ShardSet, layout: Layout) -> AugmentationPass:
    """Return the pass that augments a task's examples by a recipe."""
    # The cap is divided among all blocks; `unlabelled` adds blocks and changes nothing within one.
    blocks = {"blocks": len(examples.manifest.shards)}
    rules = params.recipe(recipe).model_copy(update={"unlabelled": False})
    of_blocks = params.task(task).model_copy(update=blocks)
    return AugmentationPass.of(rules, of_blocks, layout.lexicon(task))


def check_cap(name: str, task: Task, originals: int) -> None:
    """Check that a task's cap leaves room for synthetic sentences.

    :param originals: rows of its training set, which count towards the cap.
    """
    cap = task.augment.cap
    if task.augment.n_iter and cap is not None and cap <= originals:
        raise PotstillError(
            f"tasks.{name}.augment.cap: {cap:,} rows, and the {originals:,} examples count: no "
            "synthetic sentence would be made. Raise it or set it to null, or set n_iter to 0."
        )


@lru_cache(maxsize=1)
def _loaded(path: Path, digest: str) -> Lexicon:
    return read_lexicon(path)

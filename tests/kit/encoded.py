"""Encoded sets as trainings read them, for tests."""

from pathlib import Path
from tempfile import mkdtemp

from tokenizers import Tokenizer

from pipeline_lib.models.students.tokenise import write_tokenizer
from pipeline_lib.shards.shard_sets import SetReference, ShardSet
from pipeline_lib.text.ragged import Sentences
from pipeline_lib.training.distillation.encoded_sets import EncodedInput, EncodingPass


def training_sentences(inputs: ShardSet, outputs: ShardSet | None, tokenizer: Tokenizer, max_words: int) -> Sentences:
    answers = None if outputs is None else SetReference.to(outputs.folder)
    content = EncodedInput(SetReference.to(inputs.folder), answers)
    return EncodingPass.of(_saved(inputs, tokenizer), max_words).read(content)


def dev_sentences(prepared: ShardSet, tokenizer: Tokenizer, max_words: int) -> Sentences:
    content = EncodedInput(SetReference.to(prepared.folder), prepared=True)
    return EncodingPass.of(_saved(prepared, tokenizer), max_words).read(content)


def _saved(beside: ShardSet, tokenizer: Tokenizer) -> Path:
    folder = Path(mkdtemp(dir=beside.folder.parent))
    write_tokenizer(folder, tokenizer)
    return folder

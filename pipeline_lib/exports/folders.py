"""What exported folders share: the configuration, and a tokenizer that truncates and pads."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tokenizers import Regex, Tokenizer
from tokenizers.pre_tokenizers import PreTokenizer, Split

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import atomic_path, copy_file, read_record, write_json
from pipeline_lib.base.text import MASK
from pipeline_lib.base.words import UNSPACED, word_splitter
from pipeline_lib.models.folders import is_of_library
from pipeline_lib.models.students import tokenise
from pipeline_lib.models.students.tokenise import PAD, Reader, read_tokenizer
from pipeline_lib.text.pieces import Pieces
from pipeline_lib.text.ragged import PAD_ID

if TYPE_CHECKING:
    from torch import nn


CONFIG, TOKENIZER = "config.json", "tokenizer.json"
FORM = "form"
"""The configuration key of an exported folder that names its format."""
READS = "reads"
"""The configuration key that says what the student reads."""


def require_new_folder(out: Path) -> None:
    """Check that nothing would be overwritten."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise PotstillError(f"{out}: not empty. Name a new folder.")


def require_own_code(folder: Path, encoder: "nn.Module") -> None:
    """Check that the library has the code of a student's encoder, which :func:`copy_code` copies."""
    if not is_of_library(encoder):
        raise PotstillError(
            f"{folder}: {type(encoder).__name__} is from outside the library, so its code cannot "
            "be exported. Use the student's own folder."
        )


def copy_code(module: ModuleType, out: Path) -> None:
    """Copy a module of a student's network, and those that it imports, as transformers would."""
    from transformers.dynamic_module_utils import get_relative_import_files

    for file in (module.__file__, *get_relative_import_files(module.__file__)):
        copy_file(Path(file), out / Path(file).name)


def form_of(folder: Path) -> str | None:
    """Return the format of an exported folder; None for a student's own folder or any other."""
    path = folder / CONFIG
    config = read_record(path) if path.exists() else None
    return config.get(FORM) if isinstance(config, dict) else None


def write_tokenizer(out: Path, tokenizer: Tokenizer | Pieces, limit: int) -> None:
    """Write a tokenizer that returns whole batches, truncated to ``limit`` words and right-padded.

    ``Tokenizer.from_file(file).encode_batch(texts)`` gives what the student reads, with one exception: a text
    without words is an empty row, which exported students read as one unknown word.
    """
    tokenise.write_tokenizer(out, tokenizer)
    backend, padding = tokenizer, PAD
    if isinstance(tokenizer, Pieces):
        backend, padding = tokenizer.tokenizer, tokenizer.padding or PAD
    copy = Tokenizer.from_str(backend.to_str())
    make_portable(copy)
    copy.enable_truncation(limit, strategy="longest_first")
    copy.enable_padding(pad_id=padding_number(tokenizer), pad_token=padding)
    with atomic_path(out / TOKENIZER) as temporary:
        temporary.write_text(copy.to_str(pretty=True), encoding="utf-8")
    path = out / "tokenizer_config.json"
    write_json(path, read_record(path) | {"model_max_length": limit, "padding_side": "right"})


def exported_reader(folder: Path, config: Mapping[str, Any]) -> Reader:
    """Return how an exported student reads texts: by what :func:`write_tokenizer` wrote.

    :raises ValueError: if there is no tokenizer, or it is damaged.
    """
    tokenizer = read_tokenizer(folder, config[READS])
    if isinstance(tokenizer, Tokenizer):
        tokenizer.no_padding()
        make_quick(tokenizer)
    return Reader(tokenizer, config[READS], config["architecture"]["max_words"], config.get("pair", False))


def padding_number(tokenizer: Tokenizer | Pieces) -> int:
    """Return the id of the padding."""
    return tokenizer.pad_id if isinstance(tokenizer, Pieces) else PAD_ID


def unknown_number(tokenizer: Tokenizer | Pieces) -> int:
    """Return the id that a text without words is read as."""
    if not isinstance(tokenizer, Pieces):
        return tokenizer.token_to_id(MASK)
    sign = tokenizer.unknown
    return (sign and tokenizer.tokenizer.token_to_id(sign)) or tokenizer.pad_id


def write_config(out: Path, config: Mapping[str, Any], form: str, **more: Any) -> None:
    """Write the student's configuration, its format, and further keys.

    Call this last: without the configuration, a half-written folder cannot be opened.  The model
    type differs from a student's own, because the tokenizer here pads.
    """
    kind = {"model_type": f"{config['model_type']}_{form.replace('-', '_')}", FORM: form}
    write_json(out / CONFIG, {**config, **kind, **more})


_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}²³¹¼½¾"
"""What the tokenizers library takes for ``\\w`` and for a space, spelled out."""
_SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SPACED = rf"(?:(?![{''.join(UNSPACED.values())}])[{_WORD}])"
_NOT = rf"[nN]['’][tT](?![{_WORD}])"
PORTABLE = (
    r"\[MASK\]"
    rf"|{_NOT}|['’](?:[sSſ]|[mM]|[dD]|[rR][eE]|[vV][eE]|[lL][lL])(?![{_WORD}])"
    rf"|{_SPACED}+?(?={_NOT})"
    rf"|\p{{Nd}}+(?:[.,]\p{{Nd}}+)*|[{''.join(UNSPACED.values())}]\p{{M}}*|{_SPACED}+"
    rf"|\.{{2,}}|[^{_WORD}{_SPACE}]"
)


@cache
def portable_splitter() -> PreTokenizer:
    """Return a splitter that is equivalent to :func:`~pipeline_lib.base.words.word_splitter`."""
    return Split(Regex(PORTABLE), behavior="removed", invert=True)


def make_portable(tokenizer: Tokenizer) -> None:
    """Make a tokenizer split by the portable pattern, if it splits by the project's."""
    _exchange(tokenizer, word_splitter(), portable_splitter())


def make_quick(tokenizer: Tokenizer) -> None:
    """Make it split by the project's pattern again, for which there are faster implementations."""
    _exchange(tokenizer, portable_splitter(), word_splitter())


def _exchange(tokenizer: Tokenizer, old: PreTokenizer, new: PreTokenizer) -> None:
    current = tokenizer.pre_tokenizer
    if current is not None and current.__getstate__() == old.__getstate__():
        tokenizer.pre_tokenizer = new

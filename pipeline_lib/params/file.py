"""The whole of params.yaml: reading it, checking it, and reporting what is wrong with it."""

import difflib
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.kind import Range
from pipeline_lib.params.base import Section
from pipeline_lib.params.check_references import check_references
from pipeline_lib.params.profiles import is_profile, line_of, read_values
from pipeline_lib.params.removed import instead_of
from pipeline_lib.params.schema import Params
from pipeline_lib.params.students import ARCHITECTURES


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and check ``params.yaml`` or a profile (YAML 1.2, as DVC reads it)."""
    if Path(path).name == "params.yaml" and is_profile(path):
        raise PotstillError(
            f"{path}: a profile, and DVC reads plain files only. Move it below profiles/, and "
            "write params.yaml with `distill profile use`."
        )
    return _checked(read_values(path), lambda keys: _place(Path(path), keys))


def check_params(raw: Any, where: str = "params.yaml") -> Params:
    """Validate the mapping read from params.yaml; ``where`` starts the error message."""
    return _checked(raw, lambda _: where)


def _checked(raw: Any, locate: Callable[[list[str]], str]) -> Params:
    """Validate a mapping, then the references between its rows; ``locate`` says where a key is."""
    try:
        params = Params.model_validate(raw)
    except ValidationError as error:
        raise _refusal(error, locate) from error
    try:
        check_references(params)
    except ValueError as error:
        raise PotstillError(f"{locate([])}: {error}") from error
    return params


_WANTED = "Input should be "
"""How most of pydantic's messages begin."""
_MEMBERS = (
    "Range",
    "str",
    "float",
    "dict[constrained-str,union[str,list[str]]]",
    "list[str]",
    "literal['all']",
    "constrained-float",
)
"""Members of unions, as pydantic names them in the path to a fault."""


def _refusal(error: ValidationError, locate: Callable[[list[str]], str]) -> PotstillError:
    """Return the error that names every fault; ``locate`` says where a key is."""
    faults = [(_keys(fault), _explain(fault)) for fault in _merged(error.errors())]
    return PotstillError("\n".join(f"{locate(keys)}: {fault}" for keys, fault in faults))


def _merged(faults: Sequence[Any]) -> list[Any]:
    """Return the faults; what the members of a union ask of the same value is one."""
    merged: list[Any] = []
    for _, group in groupby(faults, _inner):
        members = list(group)
        wanted = [fault["msg"].removeprefix(_WANTED) for fault in members]
        if all(fault["msg"].startswith(_WANTED) for fault in members):
            members = [{**members[0], "msg": _WANTED + " or ".join(wanted)}]
        merged += members
    return merged


def _inner(fault: Any) -> list[str]:
    return [part for part in _keys(fault) if part not in _MEMBERS]


def _place(path: Path, keys: list[str]) -> str:
    """Return the file that a key is in, and for a profile also the line."""
    line = line_of(path, keys) if is_profile(path) else None
    return str(path) if line is None else f"{path}:{line}"


def _keys(fault: Any) -> list[str]:
    # The tags of discriminated unions are in pydantic's path, but not in the file.
    path = list(fault["loc"])
    return [str(part) for i, part in enumerate(path) if not _is_tag(path, i)]


def _explain(fault: Any) -> str:
    path = list(fault["loc"])
    key = ".".join(_inner(fault)) or "the file"
    if fault["type"] == "extra_forbidden":
        if instead := instead_of(key):
            return f"{key}: this key is gone. Remove it: {instead}."
        return f"{key}: unknown key. Remove or correct it{_nearest(str(path[-1]))}."
    if fault["type"] == "union_tag_not_found":
        key = f"{key}.{fault['ctx']['discriminator'].strip(chr(39))}"
        return f"{key}: missing. Add it; there are no defaults (docs/parameters.md)."
    if fault["type"] == "missing":
        return f"{key}: missing. Add it; there are no defaults (docs/parameters.md)."
    message = fault["msg"].removeprefix("Value error, ")
    shown = repr(fault["input"])
    return f"{key}: {message} (found {shown if len(shown) <= 60 else f'{shown[:57]}...'})"


def _is_tag(path: list[Any], i: int) -> bool:
    if i > 1 and path[i - 2] == "students":
        return path[i] in ARCHITECTURES
    tags = ("package", "files", "glue", "hub", "neighbours", "path", "model", "file")
    if i > 1 and path[i - 2] == "models":
        return path[i] in ("package", "package_parts", "path", "hub")
    if i > 1 and path[i - 2] == "encoders":
        return path[i] in ("vectors", "layers")
    if i > 0 and path[i - 1] == "tuning":
        return path[i] in ("single", "refined", "finished", "answers", "average")
    if i > 1 and path[i - 2] == "systems":
        return path[i] in ("student", "encoder", "model", "reranked")
    if i == 1 and path[0] == "engine":
        return path[i] in ("local", "ray")
    if i == 1 and path[0] == "sentence_vectors":
        return path[i] in ("model", "files")
    return i > 0 and path[i - 1] in ("source", "vectors") and path[i] in tags


def _nearest(key: str) -> str:
    known = {name for section in _sections(Section) for name in section.model_fields} | {*Range.model_fields}
    close = difflib.get_close_matches(key, sorted(known), n=1)
    return f" (did you mean `{close[0]}`?)" if close else ""


def _sections(base: type[Section]) -> set[type[Section]]:
    return {base}.union(*map(_sections, base.__subclasses__()))

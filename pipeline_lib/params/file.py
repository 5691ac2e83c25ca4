"""The whole of params.yaml: reading it, checking it, and reporting what is wrong with it."""

import difflib
from collections.abc import Callable, Sequence
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.kinds.kind import Range
from pipeline_lib.params.base import Section
from pipeline_lib.params.check_references import check_references
from pipeline_lib.params.extensions import import_extensions
from pipeline_lib.params.profiles import is_profile, line_of, read_values
from pipeline_lib.params.removed import instead_of
from pipeline_lib.params.schema import Params


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
    if isinstance(raw, dict) and isinstance(names := raw.get("extensions"), list):
        # What they register, the other keys may name.
        import_extensions([name for name in names if isinstance(name, str)], f"{locate(['extensions'])}: extensions")
    try:
        params = Params.model_validate(raw)
    except ValidationError as error:
        raise _refusal(error, raw, locate) from error
    try:
        check_references(params)
    except ValueError as error:
        raise PotstillError(f"{locate([])}: {error}") from error
    return params


_WANTED = "Input should be "
"""How most of pydantic's messages begin."""


def _refusal(error: ValidationError, raw: Any, locate: Callable[[list[str]], str]) -> PotstillError:
    faults = [(_keys(fault["loc"], raw, fault["type"] == "missing"), fault) for fault in error.errors()]
    merged = [_merged(keys, [fault for _, fault in group]) for keys, group in groupby(faults, itemgetter(0))]
    return PotstillError("\n".join(f"{locate(keys)}: {_explain(keys, fault)}" for keys, fault in chain(*merged)))


def _merged(keys: list[str], faults: list[Any]) -> list[tuple[list[str], Any]]:
    """Return the faults of one value; what the members of a union ask of it is one."""
    asked = [fault["msg"].removeprefix(_WANTED) for fault in faults]
    if all(fault["msg"].startswith(_WANTED) for fault in faults):
        faults = [{**faults[0], "msg": _WANTED + " or ".join(asked)}]
    return [(keys, fault) for fault in faults]


def _keys(path: Sequence[str | int], value: Any, is_missing: bool) -> list[str]:
    """Return the keys among what leads to a fault: pydantic's path also has the names of a union's members."""
    if not path:
        return []
    key, *rest = path
    if rest and isinstance(value, dict) and value.get("kind") == key:
        return _keys(rest, {**value, "kind": None}, is_missing)
    without = _keys(rest, value, is_missing)
    if key in value if isinstance(value, dict) else isinstance(value, list) and isinstance(key, int):
        keys = [str(key), *_keys(rest, value[key], is_missing)]
        # A member may have the name of a key: then the other reading leads further, or as far.
        return keys if len(keys) > len(without) else without
    return [str(key)] if key == "[key]" or (is_missing and not rest and isinstance(value, dict)) else without


def _place(path: Path, keys: list[str]) -> str:
    line = line_of(path, keys) if is_profile(path) else None
    return str(path) if line is None else f"{path}:{line}"


def _explain(keys: list[str], fault: Any) -> str:
    key = ".".join(keys) or "the file"
    if fault["type"] == "extra_forbidden":
        if instead := instead_of(key):
            return f"{key}: this key is gone. Remove it: {instead}."
        return f"{key}: unknown key. Remove or correct it{_nearest(keys[-1])}."
    if fault["type"] == "union_tag_not_found":
        key = f"{key}.{fault['ctx']['discriminator'].strip(chr(39))}"
        return f"{key}: missing. Add it; there are no defaults (docs/parameters.md)."
    if fault["type"] == "missing":
        return f"{key}: missing. Add it; there are no defaults (docs/parameters.md)."
    message = fault["msg"].removeprefix("Value error, ")
    shown = repr(fault["input"])
    return f"{key}: {message} (found {shown if len(shown) <= 60 else f'{shown[:57]}...'})"


def _nearest(key: str) -> str:
    known = {name for section in _sections(Section) for name in section.model_fields} | {*Range.model_fields}
    close = difflib.get_close_matches(key, sorted(known), n=1)
    return f" (did you mean `{close[0]}`?)" if close else ""


def _sections(base: type[Section]) -> set[type[Section]]:
    return {base}.union(*map(_sections, base.__subclasses__()))

"""Profiles: parameter files that hold only what differs from another one.

A profile names its base in ``extends``, a path relative to itself, or one of the profiles that travel with the
library; the base may be a profile too. The sections of :data:`ROWS` are replaced as a whole, since their rows belong
together; elsewhere a mapping is merged into the base's key by key, unless it has a different ``kind``.  DVC reads
plain parameter files only: :func:`plain_text` writes one, and keeps the base's comments.
"""

import io
import json
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import unreadable
from pipeline_lib.base.workspace import shipped

EXTENDS = "extends"
ROWS = ("tasks", "transfer", "models", "teachers", "students")
ROWS += ("optimisers", "encoders", "joint", "methods", "retrieval", "similarity")
"""Sections that a profile replaces as a whole."""
_NULL = ("tag:yaml.org,2002:null", "null")
_KEY = re.compile(r"^([\w-]+):", re.MULTILINE)


def read_values(path: Path) -> dict[str, Any]:
    """Read a parameter file (YAML 1.2, as DVC reads it), its bases merged in."""
    (_, values), *rest = reversed(list(_chain(path)))
    for _, overlay in rest:
        values = _merge(values, overlay, top=True)
    if isinstance(values, dict):
        values.pop(EXTENDS, None)
    return values


def is_profile(path: Path) -> bool:
    """Whether a parameter file extends another one."""
    values = _load(path)
    return isinstance(values, dict) and EXTENDS in values


def plain_text(path: Path) -> str:
    """Return a profile as one plain parameter file, with its base's comments."""
    files = [file for file, _ in reversed(list(_chain(path)))]
    for file in files:
        if not _KEY.search(_text(file)):
            raise PotstillError(
                f"{file}: a profile has its sections line by line, each with its key at the start, "
                "such as `tasks:`. Write this one so, not as JSON or in braces."
            )
    first, *rest = map(_text, files)
    for overlay in rest:
        first = _overlaid(first, overlay)
    return first


def line_of(path: Path, keys: list[str]) -> int | None:
    """Return the line (from 1) of a key in a file, or of its innermost parent there."""
    node, line = YAML(typ="rt", pure=True).load(_text(path)), None
    for key in keys:
        if not isinstance(node, dict) or key not in node:
            break
        line, node = node.lc.key(key)[0] + 1, node[key]
    return line


def differences(path: Path) -> list[str]:
    """Return what a profile changes in its base, a line per key: ``key: old → new``.

    A row or section that only one of them has is one line, starting with ``+`` or ``-``.
    """
    _, *bases = _chain(path)
    return list(value_changes(read_values(bases[0][0]), read_values(path))) if bases else []


def value_changes(old: dict[str, Any], new: dict[str, Any], above: str = "") -> Iterator[str]:
    """Yield a line for each key that differs; see :func:`differences`.

    :param above: what the keys' names begin with.
    """
    for key in [*old, *(key for key in new if key not in old)]:
        full_key = f"{above}{key}"
        if key not in new:
            yield f"- {full_key}"
        elif key not in old:
            yield f"+ {full_key}: {_shown(new[key])}"
        elif isinstance(old[key], dict) and isinstance(new[key], dict):
            yield from value_changes(old[key], new[key], f"{full_key}.")
        elif old[key] != new[key]:
            yield f"  {full_key}: {_shown(old[key])} → {_shown(new[key])}"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _chain(path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield a file and its content, then its base with its content, and so on."""
    seen: list[Path] = []
    while True:
        if path.resolve() in seen:
            raise PotstillError(f"{path}: {EXTENDS} leads back to the file itself. Name the file that it differs from.")
        seen.append(path.resolve())
        values = _load(path)
        yield path, values
        base = values.get(EXTENDS) if isinstance(values, dict) else None
        if base is None:
            return
        path = _base(path, str(base))


def _base(path: Path, base: str) -> Path:
    beside, bundled = path.parent / base, shipped("profiles") / base
    return bundled if bundled.exists() and not beside.exists() else beside


def _text(path: Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise PotstillError(
            f"{path}: not found. Run this in a workspace: `distill init FILE` makes one of your "
            "data, `distill init` one of the bundled data."
        ) from error
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:
        raise PotstillError(f"{path}: not valid YAML: {error}") from error


@lru_cache(maxsize=64)
def _parsed(text: str) -> Any:
    # A tenth of a second for a file of the shipped one's size, and a profile is read many times.
    return YAML(typ="safe", pure=True).load(text)


def _load(path: Path) -> Any:
    try:
        return deepcopy(_parsed(_text(path)))
    # Integers of thousands of digits raise a ValueError too.
    except (YAMLError, ValueError, RecursionError) as error:
        raise _not_yaml(path, error) from error


def _not_yaml(path: Path, error: Exception) -> PotstillError:
    problem, line = str(error), ""
    if isinstance(error, MarkedYAMLError) and error.problem:
        problem, mark = error.problem, error.problem_mark or error.context_mark
        line = "" if mark is None else f"line {mark.line + 1}: "
    if "duplicate key" in problem:
        # Its value may be a whole section.
        problem, remedy = problem.partition(" with value")[0], "Keep one of the two"
    elif "\\t" in problem:
        remedy = "Indent with spaces"
    else:
        remedy = "Correct it"
    return PotstillError(f"{path}: not valid YAML ({line}{' '.join(problem.split())[:200]}). {remedy}.")


def _merge(base: Any, overlay: Any, top: bool = False) -> Any:
    """Merge ``overlay`` into ``base``, in place if both are mappings of the same kind."""
    if not isinstance(base, dict) or not isinstance(overlay, dict) or _are_apart(base, overlay):
        return overlay
    for key, value in overlay.items():
        merges = key in base and not (top and key in ROWS)
        _put(base, key, _merge(base[key], value) if merges else value)
    return base


def _put(values: dict[str, Any], key: str, value: Any) -> None:
    """Set a key; keep the comment above the next one, which is attached to the old value's end."""
    old = values.get(key)
    values[key] = value
    if not isinstance(old, CommentedMap) or old is value:
        return
    following = list(values)[list(values).index(key) + 1 :]
    if following and (lines := _comment_after(old)):
        indent = values.lc.col
        values.yaml_set_comment_before_after_key(following[0], "\n".join(lines), indent)


def _comment_after(values: CommentedMap) -> list[str]:
    """Return the lines of the comment that follows a block mapping's last key."""
    last = next(reversed(values))
    if isinstance(values[last], CommentedMap):
        return _comment_after(values[last])
    token = (values.ca.items.get(last) or [None] * 3)[2]
    # The first line is on the line of the value itself.
    lines = token.value.split("\n")[1:] if token else []
    return [line.strip().removeprefix("#").strip() for line in lines if line.strip()]


def _are_apart(base: dict[str, Any], overlay: dict[str, Any]) -> bool:
    return base.get("kind") != overlay.get("kind")


def _overlaid(base: str, overlay: str) -> str:
    sections, added = _sections(base), _sections(overlay)
    # The comment at the top of the file is directly above `extends`.
    header = (added.pop("") + _comment(added.pop(EXTENDS))).strip("\n")
    for key, text in added.items():
        if key not in sections:
            sections[key] = text
        elif key in ROWS:
            sections[key] = _comment(text) or _comment(sections[key])
            sections[key] += text.removeprefix(_comment(text))
        else:
            sections[key] = _merged_section(sections[key], text)
    if header:
        sections[""] = header + "\n"
    return "\n".join(text.strip("\n") + "\n" for text in sections.values() if text.strip())


def _sections(text: str) -> dict[str, str]:
    """Split a file into its top-level keys, each with the comment above; ``""`` is the header.

    The header is the comment that an empty line separates from the first key's own.
    """
    starts = [(match.group(1), _comment_start(text, match.start())) for match in _KEY.finditer(text)]
    ends = [start for _, start in starts[1:]] + [len(text)]
    header = text[: starts[0][1]] if starts else text
    sections = {key: text[start:end] for (key, start), end in zip(starts, ends, strict=True)}
    return {"": header} | sections


def _comment_start(text: str, key: int) -> int:
    start = key
    while start and (line := text[:start].rstrip("\n").rsplit("\n", 1)[-1]).startswith("#"):
        if text[:start].endswith("\n\n"):
            break
        start -= len(line) + 1
    return start


def _comment(section: str) -> str:
    return section[: _KEY.search(section).start()]


def _merged_section(base: str, overlay: str) -> str:
    yaml = YAML(typ="rt", pure=True)
    # Longer rows are broken, so that `git diff` shows which key changed.
    yaml.width, yaml.preserve_quotes = 120, True
    yaml.representer.add_representer(type(None), lambda dumper, _: dumper.represent_scalar(*_NULL))
    values = _merge(yaml.load(base), yaml.load(overlay))
    sink = io.StringIO()
    yaml.dump(values, sink)
    return sink.getvalue()

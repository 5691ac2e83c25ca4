"""Names say what they hold: words that fit any value name none."""

import ast
from collections.abc import Iterator
from pathlib import Path

from pipeline_lib.shards.fingerprint import ROOT

VAGUE = {"own", "found", "said", "told", "given", "place", "places", "known", "part", "parts", "kept", "wanted", "one"}
"""Fine in a line or two, where the value is in sight."""
SHORT = 6
"""Lines of a function that may have such names."""
TYPES = {"Row", "Student", "Batch", "Answer", "Part", "Format", "Text"}
"""Names of types that would fit several."""
ALONE = {"numpy_student.py"}
"""Files that travel with an export and import nothing of the library."""
FILES = sorted(
    path
    for top in (ROOT, ROOT.parent / "stages", ROOT.parent / "benchmarks")
    for path in top.rglob("*.py")
    if path.parent != ROOT / "stages"
)


def functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions of more than :data:`SHORT` lines, docstrings apart."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if body and body[-1].end_lineno - body[0].lineno >= SHORT:
                yield node


def bound_names(function: ast.AST) -> set[str]:
    """Return the names of a function's variables and parameters, and of functions within it."""
    nodes = [*ast.walk(function)]
    variables = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return variables | {node.arg for node in nodes if isinstance(node, ast.arg)}


def test_variables_of_longer_functions_have_names_of_their_own() -> None:
    vague = [
        f"{file.name}:{function.lineno}: {name}"
        for file in FILES
        for function in functions(file)
        for name in sorted(bound_names(function) & VAGUE)
    ]
    assert not vague


def type_names(file: Path) -> set[str]:
    body = ast.parse(file.read_text("utf-8")).body
    targets = [n.targets[0] for n in body if isinstance(n, ast.Assign)]
    aliases = {target.id for target in targets if isinstance(target, ast.Name)}
    return aliases | {node.name for node in body if isinstance(node, ast.ClassDef)}


def test_a_name_of_a_type_has_one_meaning() -> None:
    names = {file: type_names(file) for file in FILES if file.name not in ALONE}
    meanings = {name: [file.name for file in names if name in names[file]] for name in TYPES}
    assert {name: where for name, where in meanings.items() if len(where) > 1} == {}

"""The size of the house.  Whoever adds, removes first: these figures are lowered, never raised.

The files are counted, none is imported.
"""

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "pipeline_lib"
MOST = {
    "lines of code of pipeline_lib": 24_565,
    "lines of pipeline_lib": 41_945,
    "lines of tests": 30_910,
    "parameters": 259,
    "leaves of the default": 116,
    "top-level commands": 15,
    "files that tell kinds of tasks apart": 4,
    "words of docs and README": 16_935,
    "words of benchmarks' pages": 11_437,
    "lines of README": 116,
}
KIND = re.compile(
    r"is_regression|is_multilabel|\b(Multilabel|Regression|Classification)\b|"
    r"[\"'](multilabel|classification)[\"']|\bkind\b.*[\"']regression[\"']|[\"']regression[\"'].*\bkind\b"
)
"""What tells the kinds of tasks apart; a student is called a regression, too."""
KINDS = ("base/kinds/",)
"""The modules that the kinds have for themselves."""


def modules(folder: Path) -> Iterator[Path]:
    """Yield the modules below a folder, without those that links lead to."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not Path(place, name).is_symlink())
        yield from (Path(place, name) for name in sorted(files) if name.endswith(".py"))


def code_lines(path: Path) -> int:
    """Count the lines that are neither blank, comment, docstring nor import."""
    text = path.read_text("utf-8")
    others: set[int] = set()
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            others.update(range(node.lineno, node.end_lineno + 1))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                others.update(range(first.lineno, first.end_lineno + 1))
    lines = {number: line.strip() for number, line in enumerate(text.splitlines(), 1)}
    return sum(1 for number, line in lines.items() if number not in others and line and line[0] != "#")


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a tree's statements, not what is within expressions."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.expr):
            yield from statements(child)


def lines(*folders: Path) -> int:
    return sum(len(path.read_text("utf-8").splitlines()) for folder in folders for path in modules(folder))


def parameters() -> int:
    """Count the fields of the sections of params.yaml."""
    classes = [
        node
        for path in modules(LIBRARY / "params")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
        and {base.id for base in node.bases if isinstance(base, ast.Name)} - {"NamedTuple"}
    ]
    fields = [part for node in classes for part in node.body if isinstance(part, ast.AnnAssign)]
    return sum("ClassVar" not in ast.unparse(field.annotation) for field in fields)


def leaves() -> int:
    """Count the values of params.yaml: what follows a key, and is no further mapping."""
    text = re.sub(r"#.*", "", (ROOT / "params.yaml").read_text("utf-8"))
    return len(re.findall(r"\b\w+: *(?=[^\s{])", text))


def commands() -> int:
    tree = ast.parse((LIBRARY / "cli.py").read_text("utf-8"))
    [panels] = [n.value.values for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "PANELS"]
    return sum(len(panel.elts) for panel in panels)


def tell_kinds_apart() -> int:
    places = [path for path in modules(LIBRARY) if KIND.search(path.read_text("utf-8"))]
    return sum(not path.relative_to(LIBRARY).as_posix().startswith(KINDS) for path in places)


def words(*paths: Path) -> int:
    return sum(len(path.read_text("utf-8").split()) for path in paths)


def test_the_house_stays_within_its_budget() -> None:
    readme = ROOT / "README.md"
    counted = {
        "lines of code of pipeline_lib": sum(map(code_lines, modules(LIBRARY))),
        "lines of pipeline_lib": lines(LIBRARY),
        "lines of tests": lines(ROOT / "tests"),
        "parameters": parameters(),
        "leaves of the default": leaves(),
        "top-level commands": commands(),
        "files that tell kinds of tasks apart": tell_kinds_apart(),
        "words of docs and README": words(readme, *(ROOT / "docs").glob("*.md")),
        "words of benchmarks' pages": words(*(ROOT / "benchmarks").rglob("*.md")),
        "lines of README": len(readme.read_text("utf-8").splitlines()),
    }
    over = {name: f"{count:,} > {MOST[name]:,}" for name, count in counted.items() if count > MOST[name]}
    assert not over, "Whoever adds, removes first"

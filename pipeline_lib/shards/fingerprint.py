"""Same code, same key: a digest of the code that produced a result is part of the result's key.

A module's fingerprint covers the module and everything it imports from this library, directly or not, as parsed code:
comments, docstrings and formatting do not count.  Keys also contain the major and minor versions of the libraries that
determine the bytes.  In dvc.yaml a stage depends on digests of the same imports (:func:`stage_code`).
"""

import ast
import hashlib
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT.name

EXEMPT = {
    "params": "settings: the keys hold their values",
    "training.distillation.plans": "resolved settings: the keys hold their values",
    "base.devices": "device and number format: the keys hold the resolved ones",
    "shards.shard_sets": "the container: its FORMAT is in every manifest and digest; references hold digests",
    "shards.store": "moves finished bytes, makes none",
    "shards.trained": "moves finished bytes, makes none",
    "base.files": "moves finished bytes, makes none",
    "base.record_files": "moves finished bytes, makes none",
    "shards.engine": "which process computes: the number of workers changes no byte",
    "shards.fingerprint": "computes the fingerprints",
    "base.entry": "prints errors",
    "base.errors": "says what is wrong, and what to install",
    "base.progress": "prints progress",
    "training.progress": "prints progress",
    "base.processor": "records the processor; number of threads: one wherever it would affect the bytes",
    "base.layout": "where files are",
}
"""Modules, or whole packages, that affect no byte of a result, and why."""
ARCHITECTURES = f"{PACKAGE}.models.networks.architectures"
"""The registry of students' encoders: a training's key has the code of its own student's encoder."""
EXTENDED = {ARCHITECTURES, f"{PACKAGE}.training.objectives"}
"""Modules with registries of students and terms: the stages that import one depend on extensions."""
DECIDED_BY = {"train": "training.distillation.plans"}
"""Stages that an exempt module tells what to make."""
STAGES = ROOT / "stages"
"""The folder of the stages' modules: in the repository a link to the one at its top."""
TRAINING_LIBRARIES = ("torch", "transformers", "tokenizers")
"""The libraries that determine the bytes of a model's outputs, and of a trained model."""


@cache
def code_fingerprint(*modules: str, without: str | None = None) -> str:
    """Return the SHA-256 of the code of ``modules`` and of all that they import from the library.

    :param modules: full names, as ``__name__`` gives them.
    :param without: a module to leave out, with what only it imports.
    """
    total = hashlib.sha256()
    modules = tuple(map(_imported_name, modules))
    for name in sorted({*modules} | producing_modules(*(path_of(name) for name in modules), without=without)):
        total.update(f"{name}\n{module_code(path_of(name)).code}\n".encode())
    return total.hexdigest()


def stage_files() -> list[Path]:
    """Return the files of the stages that depend on their code: all but the one that digests it."""
    others = {"__init__", "fingerprint"}
    return sorted(path for path in STAGES.glob("*.py") if path.stem not in others)


def stage_code(stage: Path, extensions: Sequence[str] = ()) -> dict[str, str]:
    """Return what determines the results of a stage, besides its inputs and parameters.

    :param extensions: modules outside the library, on which the stages depend that read what they register.
    :returns: the SHA-256 of the parsed code of its file and of the library's modules that it imports, directly or not,
        and of the files beside these modules that their code names, such as a page's template; by path, from the root.
    """
    modules = producing_modules(stage)
    if stage.stem in DECIDED_BY:
        modules.add(f"{PACKAGE}.{DECIDED_BY[stage.stem]}")
    files = [stage, *(path_of(module) for module in modules)]
    files += [named for file in files for named in _files_named(file)]
    outside = {*extensions} | producing_modules(*map(path_of, extensions)) if modules & EXTENDED else set()
    further = {name: _digest(path_of(name)) for name in sorted(outside - modules) if not name.startswith(PACKAGE)}
    return further | {file.relative_to(ROOT.parent).as_posix(): _digest(file) for file in files}


@cache
def _digest(file: Path) -> str:
    code = module_code(file).code.encode() if file.suffix == ".py" else file.read_bytes()
    return hashlib.sha256(code).hexdigest()


def _files_named(file: Path) -> list[Path]:
    """Return the files in a module's folder, other than modules, whose names are in its code."""
    others = [path for path in file.parent.iterdir() if path.is_file() and path.suffix != ".py"]
    return [path for path in others if path.name in module_code(file).texts]


def producing_modules(*files: Path, without: str | None = None) -> set[str]:
    """Return the modules that these files import, directly or not: the library's, without the exempt, and local ones.

    Local are those that a file outside the library imports from its own package, or from no installed one.
    """
    modules: set[str] = set()
    left = [name for file in files for name in imports(file)]
    while left:
        name = left.pop()
        if name not in modules and name != without and not is_exempt(name):
            modules.add(name)
            left += imports(path_of(name))
    return modules


def is_exempt(module: str) -> bool:
    """Whether the module affects no byte of a result: see :data:`EXEMPT`."""
    return any(f"{module}.".startswith(f"{PACKAGE}.{name}.") for name in EXEMPT)


def path_of(module: str) -> Path:
    """Return the file of a module: one of the library's, or one that is already imported."""
    if module.split(".")[0] != PACKAGE:
        return Path(_origin(module))
    path = ROOT.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def imports(file: Path) -> frozenset[str]:
    """Return the modules of the library, or local ones, that a file imports, but for type checkers only."""
    names = {_module(*imported) if imported[1] else imported[0] for imported in module_code(file).imports}
    tops = {PACKAGE, *_package_of(file.parent)[:1]}
    is_outside = not file.is_relative_to(ROOT)
    return frozenset(name for name in names if name.split(".")[0] in tops or (is_outside and _is_local(name)))


def _imported_name(module: str) -> str:
    """Return the name under which a module is imported, also if it is what ``python -m`` runs."""
    spec = sys.modules["__main__"].__spec__ if module == "__main__" else None
    return spec.name if spec is not None else module


@cache
def _origin(module: str) -> str | None:
    """Return the file of a module outside the library, if it has one."""
    loaded = sys.modules.get(module)
    if loaded is not None and getattr(loaded, "__file__", None):
        return loaded.__file__
    try:
        spec = find_spec(module)
    except (ImportError, AttributeError, ValueError):
        return None
    return spec.origin if spec is not None and spec.has_location else None


def _is_local(module: str) -> bool:
    top = module.split(".")[0]
    if top in sys.stdlib_module_names or (origin := _origin(module)) is None:
        return False
    return origin.endswith(".py") and not {"site-packages", "dist-packages"} & {*Path(origin).parts}


def _package_of(folder: Path) -> list[str]:
    """Return the parts of the name of the package in a folder; none if it holds no package."""
    parts: list[str] = []
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return parts


def _module(package: str, name: str) -> str:
    """Return what ``from package import name`` imports: a module of that name, or the package."""
    inner = f"{package}.{name}"
    if package.split(".")[0] == PACKAGE:
        return inner if path_of(inner).exists() else package
    return inner if _is_local(package) and _origin(inner) else package


class ModuleCode(NamedTuple):
    """A module, parsed once: that takes most of the time.

    :ivar code: without comments, docstrings and formatting.
    :ivar imports: (module, None) for ``import module``, (module, name) for ``from module import
        name``; without those for type checkers.
    :ivar texts: the strings in it, less docstrings.
    """

    code: str
    imports: set[tuple[str, str | None]]
    texts: set[str]


@cache
def module_code(file: Path) -> ModuleCode:
    """Return what counts in a module, from the first time that it was read."""
    tree, typing_only, imported, texts = ast.parse(file.read_bytes()), [], set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [statement for statement in node.body if not _is_text(statement)]
        elif isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING":
            typing_only.append(node)
    code = ast.dump(tree)
    for node in typing_only:
        node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {(alias.name, None) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or node.level):
            module = _absolute(file, node)
            imported |= {(module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
    return ModuleCode(code, imported, texts)


def _absolute(file: Path, node: ast.ImportFrom) -> str:
    package = _package_of(file.parents[max(0, node.level - 1)]) if node.level else []
    return ".".join([*package, *filter(None, [node.module])])


def _is_text(node: ast.stmt) -> bool:
    # Docstrings, including those below assignments.
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def library_versions(*names: str) -> dict[str, str]:
    """Return the full versions of installed distributions, for a manifest."""
    return {name: _version(name) for name in names}


_version = cache(version)


def deciding(versions: Mapping[str, str]) -> dict[str, str]:
    """Return major and minor of each version: the part that goes into keys."""
    return {name: ".".join(full.split(".")[:2]) for name, full in versions.items()}


def training_code(module: str, without: str | None = None) -> list[object]:
    """Return the code part of a key: its module's code, as :func:`code_fingerprint`, and the libraries' versions."""
    return [code_fingerprint(module, without=without), deciding(library_versions(*TRAINING_LIBRARIES))]


def code_of(*objects: Any) -> list[str]:
    """Return the fingerprints of the modules that define these objects, the library's or others."""
    modules = {each.__module__ for each in objects}
    pruned = {name: ARCHITECTURES if name.startswith(f"{PACKAGE}.") else None for name in modules}
    return sorted(code_fingerprint(name, without=without) for name, without in pruned.items())

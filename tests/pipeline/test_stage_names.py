"""A stage that is given a name params.yaml does not have refuses it before it touches a file."""

import inspect
import shutil
from importlib import import_module
from pathlib import Path

import pytest

import stages
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.base.files import sha256_folder
from pipeline_lib.params import Params
from tests.params.variants import RAW, changed, error_of
from tests.tour import TOUR

MAINS = {
    path.stem: import_module(f"stages.{path.stem}").main
    for path in sorted(Path(stages.__file__).parent.glob("[a-z]*.py"))
}
OPTIONS = {name: [*inspect.signature(main).parameters] for name, main in MAINS.items()}
LEAVING = ("", ".", "..", "../transfer", "movies/..", "a/b", "/tmp/else", "movies ", "movies\n")
"""Names of folders other than the row's own."""
OF_ROWS = sorted(name for name, field in Params.model_fields.items() if "[A-Za-z0-9_]" in str(field))
"""The sections whose rows have names, which are names of folders, too."""


@pytest.mark.parametrize("stage", [name for name, options in OPTIONS.items() if options])
def test_a_stage_refuses_an_unknown_name_and_leaves_everything(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(TOUR, "params.yaml")
    for folder in ("transfer", "students/movies", "vocabularies", "encoders", "else"):
        kept = Path("data", folder, "kept.txt")
        kept.parent.mkdir(parents=True)
        kept.write_text(folder)
    before = sha256_folder(tmp_path)
    [option] = OPTIONS[stage]
    for name in (*LEAVING, "nobody"):
        with pytest.raises(PotstillError, match=r"no .* in params\.yaml; there are"):
            MAINS[stage](**{option: name})
        assert sha256_folder(tmp_path) == before, name


def test_every_stage_of_rows_is_met() -> None:
    assert {option for options in OPTIONS.values() for option in options} == {
        "task",
        "row",
        "teacher",
        "encoder",
        "joint",
    }


@pytest.mark.parametrize("section", OF_ROWS)
def test_no_row_has_a_name_that_leaves_its_folder(section: str) -> None:
    rows = RAW[section]
    for name in LEAVING:
        put = [*rows, name] if isinstance(rows, list) else {**rows, name: next(iter(rows.values()), {})}
        assert f"{section}." in error_of(changed({section: put})), name

"""Profiles hold only what differs: merging, the plain file with its comments, errors by line."""

from pathlib import Path

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from pipeline_lib import cli
from pipeline_lib.base.errors import PotstillError
from pipeline_lib.params import check_params, load_params
from pipeline_lib.params.profiles import ROWS, differences, line_of, plain_text, read_values

ROOT = Path(__file__).parents[2]
DEFAULT = ROOT / "profiles/default.yaml"
OVERLAYS = [path for path in sorted(ROOT.glob("*/*.yaml")) if path != DEFAULT]


def plain(text: str) -> object:
    return YAML(typ="safe", pure=True).load(text)


def overlay(folder: Path, text: str, base: Path = DEFAULT) -> Path:
    path = folder / "own.yaml"
    path.write_text(f"# My own.\nextends: {base}\n\n{text}")
    return path


def test_the_default_is_what_is_shipped_as_params() -> None:
    assert DEFAULT.read_text() == (ROOT / "params.yaml").read_text()
    assert set(ROWS) < set(read_values(DEFAULT))


@pytest.mark.parametrize("path", OVERLAYS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_shipped_profiles_are_overlays_that_become_plain_files(path: Path) -> None:
    values = read_values(path)
    text = plain_text(path)
    assert plain(text) == values and "extends" not in values
    assert check_params(values) == load_params(path)
    assert len(path.read_text().splitlines()) < len(text.splitlines())
    # What is the same as in the base is not said again.
    own = plain(path.read_text())
    base = read_values(path.parent / own["extends"])
    assert [key for key in own if own[key] == base.get(key)] == []


def test_mappings_are_merged_and_rows_and_other_kinds_taken_whole(tmp_path: Path) -> None:
    path = overlay(
        tmp_path,
        "vocabulary:\n  vectors: {kind: file, path: mine}\n  extra_words: 7\n"
        "students: {bilstm: {architecture: static}}\nwikipedia: null\n",
    )
    base, values = read_values(DEFAULT), read_values(path)
    assert values["vocabulary"]["vectors"] == {"kind": "file", "path": "mine"}
    own = {"vectors": values["vocabulary"]["vectors"], "extra_words": 7}
    assert values["vocabulary"] == base["vocabulary"] | own
    assert values["students"] == {"bilstm": {"architecture": "static"}}
    assert values["wikipedia"] is None
    untouched = set(base) - {"vocabulary", "students", "wikipedia"}
    assert {key: values[key] for key in untouched} == {key: base[key] for key in untouched}


def test_a_profile_of_a_profile(tmp_path: Path) -> None:
    (tmp_path / "first.yaml").write_text(f"extends: {DEFAULT}\nprecompute: {{batch_tokens: 7}}\nseeds: [1]\n")
    path = overlay(tmp_path, "seeds: [5, 6]\n", Path("first.yaml"))
    values = read_values(path)
    assert values["precompute"] == {"batch_tokens": 7} and values["seeds"] == [5, 6]
    assert plain(plain_text(path)) == values


def test_the_plain_file_keeps_the_bases_comments_and_takes_the_profiles(tmp_path: Path) -> None:
    path = overlay(tmp_path, "# Rows of my own.\nmethods: {}\n\nprecompute:\n  batch_tokens: 512\n\nseeds: [4]\n")
    text = plain_text(path)
    base = DEFAULT.read_text()
    assert text.startswith("# My own.\n")
    assert "# Rows of my own.\nmethods: {}\n" in text
    header = base.split("\n\n")[0]
    methods = base[base.index("# A method is a row") : base.index("# Architectures")]
    for line in base.splitlines():
        comment = line.partition("#")[2]
        if comment and line not in header and line not in methods:
            assert comment in text, comment
    assert "batch_tokens: 512" in text
    assert "evaluate]\nseeds: [4]" in text


def test_comments_within_a_section_survive_a_source_of_another_kind(tmp_path: Path) -> None:
    text = plain_text(overlay(tmp_path, "wikipedia:\n  source: {kind: files, files: [a]}\n"))
    assert plain(text)["wikipedia"]["source"] == {"kind": "files", "files": ["a"]}
    assert "# kind: package | files | hub; see docs/wikipedia-and-encoders.md." in text
    assert "# engine: sentencizer (after punctuation marks)" in text


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("wikipedia:\n  validation:\n    word: 3\n", 6, "wikipedia.validation.word: unknown key"),
        ("tokens: 3\n", 4, "tokens: unknown key"),
        ("precompute:\n  batch_tokens: 0\n", 5, "precompute.batch_tokens: "),
        ("students:\n  bilstm: {architecture: static}\n", 5, "students.bilstm.classifier: missing"),
    ],
)
def test_a_fault_is_named_with_file_and_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = overlay(tmp_path, text)
    with pytest.raises(PotstillError) as refused:
        load_params(path)
    assert f"{path}:{line}: {message}" in str(refused.value)


def test_bases_that_are_missing_or_lead_back_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PotstillError, match=r"nowhere\.yaml: not found"):
        load_params(overlay(tmp_path, "", Path("nowhere.yaml")))
    with pytest.raises(PotstillError, match=r"own\.yaml: extends leads back"):
        load_params(overlay(tmp_path, "", Path("own.yaml")))
    (tmp_path / "params.yaml").write_text(f"extends: {DEFAULT}\n")
    with pytest.raises(PotstillError, match="distill profile use"):
        load_params(tmp_path / "params.yaml")


def test_a_profile_that_is_json_is_refused_where_its_text_is_needed(tmp_path: Path) -> None:
    base = tmp_path / "base.json"
    base.write_text(f'{{"extends": "{DEFAULT}", "seeds": [7]}}')
    path = overlay(tmp_path, "device: cpu\n", base)
    assert read_values(path)["seeds"] == [7]
    with pytest.raises(PotstillError, match=r"base\.json: a profile has its sections line by line"):
        plain_text(path)


def test_differences_are_named_key_by_key(tmp_path: Path) -> None:
    path = overlay(
        tmp_path, "seeds: [9]\nencoders: {}\nwikipedia: {validation: {share: 0.9}}\nstudents: {mine: {a: null}}\n"
    )
    assert differences(path) == [
        "- students.bilstm",
        "- students.bilstm_sra",
        '+ students.mine: {"a": null}',
        "  seeds: [1, 2, 3] → [9]",
        "- encoders.sra",
        "  wikipedia.validation.share: 0.1 → 0.9",
    ]
    assert line_of(path, ["wikipedia", "validation", "share"]) == 6


def run(*arguments: str) -> tuple[str, BaseException | None]:
    result = CliRunner().invoke(cli.app, ["profile", *arguments])
    return result.output, result.exception


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("profiles", "benchmarks"):
        (tmp_path / folder).mkdir()
        for path in (ROOT / folder).glob("*.yaml"):
            (tmp_path / folder / path.name).write_bytes(path.read_bytes())
    (tmp_path / "params.yaml").write_bytes(DEFAULT.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_use_writes_params_and_default_brings_them_back(project: Path) -> None:
    (project / "profiles/mine.yaml").write_text("extends: default.yaml\nseed: 3\n")
    assert "profiles/mine.yaml:2: seed: unknown key" in str(run("use", "mine")[1])
    assert (project / "params.yaml").read_bytes() == DEFAULT.read_bytes()
    assert run("use", "tang")[1] is None
    assert next(iter(load_params().models.values())).kind == "hub"
    assert plain((project / "params.yaml").read_text()) == read_values(Path("profiles/tang.yaml"))
    assert run("use", "benchmarks/glue.yaml")[1] is None
    assert "cola" in load_params().tasks
    assert run("use", "default")[1] is None
    assert (project / "params.yaml").read_bytes() == DEFAULT.read_bytes()


def test_own_changes_are_not_lost(project: Path) -> None:
    file = project / "params.yaml"
    changed = file.read_text().replace("seeds: [1, 2, 3]", "seeds: [7]")
    file.write_text(changed)
    assert "was changed by hand" in str(run("use", "tang")[1])
    assert file.read_text() == changed
    assert run("use", "tang", "--force")[1] is None
    assert file.read_text() != changed


@pytest.mark.parametrize("name", ["profiles/mine.yaml", "elsewhere.yaml"])
def test_an_edited_profile_is_used_again(project: Path, name: str) -> None:
    profile, file = project / name, project / "params.yaml"
    for seeds in ([7], [8, 9]):
        profile.write_text(f"extends: {DEFAULT}\nseeds: {seeds}\n")
        assert run("use", name)[1] is None
        assert f"seeds: {seeds}" in file.read_text()
    by_hand = file.read_text().replace("seeds: [8, 9]", "seeds: [3]")
    file.write_text(by_hand)
    assert "was changed by hand" in str(run("use", name)[1])
    assert file.read_text() == by_hand


def test_show_and_list(project: Path) -> None:
    shown, _ = run("show", "tang")
    assert '- models.minilm\n+ models.bert_large: {"kind": "hub", ' in shown
    listed, _ = run("list")
    assert "profiles/tang.yaml" in listed and "benchmarks/sst2.yaml" in listed
    names = "default, dse, gpu, sra, tang, thesis, thesis_mkd"
    assert f"no profile 'paper'; there are {names}" in str(run("use", "paper")[1])

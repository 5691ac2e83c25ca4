"""Every GLUE task, in the official folder's layout with its quirks and in the hub's."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pipeline_lib.corpora.tasks.fetching import fetch_data
from pipeline_lib.corpora.tasks.labelled import Example, read_examples
from pipeline_lib.params import Task, check_params, load_params
from pipeline_lib.params.profiles import read_values
from tests.kit.archives import write_files
from tests.papers import PAPERS, ROWS, write_glue

ROOT = Path(__file__).parents[3]


def tasks_of(name: str) -> dict[str, Task]:
    """Return the tasks of a profile, WNLI among them: its marks are taken off."""
    text = (ROOT / name).read_text(encoding="utf-8")
    text = re.sub(r"^  # (?=wnli:|  )", "  ", text, flags=re.MULTILINE)
    tasks = YAML(typ="safe", pure=True).load(text)["tasks"]
    return check_params(read_values(ROOT / name) | {"tasks": tasks}, name).tasks


OFFICIAL, HUB = tasks_of("benchmarks/glue.yaml"), tasks_of("profiles/thesis.yaml")
NAMES = ("sst2", "cola", "mrpc", "qqp", "stsb", "mnli", "qnli", "rte", "wnli")
QUOTE = 'A "quoted word" that opens "no field'

MNLI_HEAD = "index promptID pairID genre sentence1_binary_parse sentence2_binary_parse"
MNLI_HEAD += " sentence1_parse sentence2_parse sentence1 sentence2"
MNLI_ROW = "0\t1\t1n\tfiction\t( a )\t( b )\t(ROOT a)\t(ROOT b)"


def tabs(words: str) -> str:
    return words.replace(" ", "\t")


# Official files of each layout: quotation marks, no header, a byte order mark, short rows, many labels.
FILES: dict[str, dict[str, str]] = {
    "sst2": {
        "train": f"sentence\tlabel\n{QUOTE} \t1\nbad\t0\n",
        "dev": "sentence\tlabel\nfine\t1\n",
        "test": "index\tsentence\n0\tunknown\n",
    },
    "cola": {
        "train": f"gj04\t1\t\t{QUOTE}\ngj04\t0\t*\tbad\n",
        "dev": "gj04\t1\t\tfine\n",
        "test": "index\tsentence\n0\tunknown\n",
    },
    "mrpc": {
        "train": f"\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\t{QUOTE}\tsecond\n0\t7\t8\tbad\tworse\n",
        "dev": "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tfine\tfiner\n",
        "test": "\ufeffindex\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t7\t8\tunknown\tmore\n",
    },
    "qqp": {
        "train": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
        f"0\t1\t2\t{QUOTE}\tsecond\t1\n0\t1\t2\n0\t1\t2\tbad\tworse\t0\n",
        "dev": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n0\t1\t2\tfine\tfiner\t1\n",
    },
    "mnli": {
        "train": f"{tabs(MNLI_HEAD)}\tlabel1\tgold_label\n"
        f"{MNLI_ROW}\t{QUOTE}\tsecond\tneutral\tneutral\n"
        f"{MNLI_ROW}\tbad\tworse\tentailment\tentailment\n"
        f"{MNLI_ROW}\tbad\tgood\tcontradiction\tcontradiction\n",
        "dev": f"{tabs(MNLI_HEAD)}\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n"
        f"{MNLI_ROW}\tfine\tfiner" + 6 * "\tneutral" + "\n",
        "dev_mismatched": f"{tabs(MNLI_HEAD)}\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\tgold_label\n"
        f"{MNLI_ROW}\tother\tones" + 6 * "\tneutral" + "\n",
    },
}


@pytest.mark.parametrize("name", FILES)
def test_the_official_layout(tmp_path: Path, name: str) -> None:
    task = OFFICIAL[name]
    names = task.source.files
    assert set(names) == set(FILES[name])
    files = {names[split]: text.encode() for split, text in FILES[name].items()}
    write_files(tmp_path / "inputs" / task.source.folder, files)
    fetch_data(name, task.source, tmp_path / "inputs", tmp_path / "raw")
    splits, counts = read_examples(tmp_path / "raw", task)
    second = ("second",) if task.is_pair else ()
    assert splits["train"][0] == Example((QUOTE, *second), 1)
    assert splits["dev"][0].texts == ("fine", "finer")[: len(task.text)]
    assert splits["dev"][0].label == 1
    if "test" in names:
        assert splits["test"] == [Example(("unknown", "more")[: len(task.text)], None)]
        assert counts["test"]["hidden_label"] == 1
    if name == "mnli":
        assert splits["dev_mismatched"][0].texts == ("other", "ones")
    if name == "qqp":
        # A training row that ends before its texts, as some official ones do.
        assert (counts["train"]["kept"], counts["train"]["empty_text"]) == (2, 1)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    write_glue(folder / "nyu-mll/glue")
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_the_hubs_layout(tmp_path: Path, hub: Path, name: str) -> None:
    task = HUB[name]
    fetch_data(name, task.source, hub, tmp_path)
    splits, counts = read_examples(tmp_path, task)
    assert {*splits} == {*task.source.splits}
    classes = 6 if (task.kind == "regression") else len(task.label_names)
    for split, rows in splits.items():
        known = list(range(classes)) if not split.startswith("test") else [None] * classes
        assert [row.label for row in rows[:classes]] == known
        assert counts[split]["rows"] == len(rows) == ROWS[task.source.splits[split].split("_")[0]]
        assert all(len({*row.texts}) == len(task.text) for row in rows)


@pytest.mark.parametrize("paper", PAPERS)
def test_all_papers_read_a_task_alike(paper: str) -> None:
    tasks = load_params(ROOT / f"profiles/{paper}.yaml").tasks
    for key in ("source", "text", "label", "labels", "metrics", "positive"):
        for name, task in tasks.items():
            assert getattr(task, key) == getattr(HUB[name], key)

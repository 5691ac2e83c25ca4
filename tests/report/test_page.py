"""The page: what stands on it, that no text of the data becomes markup, and its JSON."""

import json
import re
from copy import deepcopy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.report import page
from pipeline_lib.report.page import heat, pieces, seconds, write_content, write_page
from pipeline_lib.report.svg import Axis
from tests.kit.made_up import made_up_method, made_up_scores, with_split

from .made_up import HOSTILE, LABELS, METHODS, TASK, made_up_content

HERE = Path(page.__file__).parent
TAGS = """html head meta title style script body header nav main footer section article div h1 h2 h3 h4 p ul li dl dt dd
a code span strong mark del details summary figure figcaption table caption thead tbody tr th td form label input select
option button output svg desc line polyline polygon circle text rect path"""
ADDRESSES = ("href", "src", "srcset", "action", "data", "xlink:href", "poster", "background")


class Read(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.comments: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def named(self, *names: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag in names]


@pytest.fixture(scope="module")
def html(content: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "index.html"
    write_page(path, content)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def read(html: str) -> Read:
    return Read(html)


def test_hostile_text_stays_text(html: str, read: Read) -> None:
    assert {tag for tag, _ in read.tags} <= {*TAGS.split()}
    assert not [name for _, own in read.tags for name in own if name.startswith("on")]
    assert not read.comments
    # The text itself is there, and so are labels, in the page and in attributes.
    assert sum(HOSTILE in text for text in read.texts) >= 3
    assert any(LABELS[0] in text for text in read.texts)
    words = [own["data-words"] for own in read.named("tr") if "data-words" in own]
    assert any(f"label:{'_'.join(LABELS[0].split())}" in own for own in words)
    assert html.count("<script") == html.count("</script>") == 1
    # What the script shows of the data is set as text.
    script = (HERE / "page.js").read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(", script)


def test_the_page_needs_nothing_from_elsewhere(html: str, read: Read) -> None:
    found = {own[name] for _, own in read.tags for name in ADDRESSES if name in own}
    assert {address for address in found if not address.startswith("#")} == {"report.json"}
    assert not read.named("link", "img", "iframe", "object", "base")
    assert "@import" not in html and "url(" not in (HERE / "page.css").read_text()
    [policy] = [own["content"] for own in read.named("meta") if own.get("http-equiv")]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert not [own for _, own in read.tags if "style" in own]


def test_every_part_is_there_with_its_figures(read: Read) -> None:
    text = " ".join(" ".join(read.texts).split())
    lead = "he best student on dev, bilstm_kd_ts, has an accuracy of 90.0 % on test"
    assert text.index(lead) < text.index("always positive")
    headings = "Speed|Checks|What each step adds|Accuracy against speed and size|Reliability and confusion|Routing"
    headings += "|Learning curves|Which words matter|Rows to look at|Flow|Provenance"
    for heading in headings.split("|"):
        assert f" {heading} " in text
    for figure in ("90.0 ± 0.4", "12,500", "bilstm_kd_ts, onnx-int8", "1 min 15 s", "75 %", "Fast CPU"):
        assert figure in text
    assert "bilstm_kd_ts over bilstm: +2 (+0.4 to +3.3)" in text
    assert text.count("Last runs of the stages") == 1
    account = text[text.index("Provenance Command") :]
    head = "Last runs of the stages Stage Started Seconds Rows Rows/s Tokens, k Tokens/s Found MiB"
    assert f"{head} Accelerator train@{TASK} 2026-01-02 03:04:05 75" in account
    assert "75 1,500 20 45 600 75 % 2,048 Card A" in account


def test_ids_are_unique_and_what_names_them_finds_them(read: Read) -> None:
    ids = [own["id"] for _, own in read.tags if "id" in own]
    assert len(ids) == len(set(ids))
    for own in read.named("svg"):
        assert own.get("aria-hidden") or set(own["aria-labelledby"].split()) <= set(ids)
    links = [own["href"] for own in read.named("a") if own["href"].startswith("#")]
    assert {link[1:] for link in links} <= set(ids)
    assert all(own.get("scope") for own in read.named("th"))
    assert len(read.named("caption")) == len(read.named("table"))


def test_a_confusion_leads_to_the_rows_that_are_listed(read: Read) -> None:
    words = [set((own["data-words"] or "").split()) for own in read.named("tr") if "data-words" in own]
    leads = [own["data-filter"] for own in read.named("a") if "data-filter" in own]
    assert leads
    for lead in leads:
        assert any(set(lead.split()) <= own for own in words)


def test_the_same_content_is_json(content: dict[str, Any], tmp_path: Path) -> None:
    write_content(tmp_path / "report.json", content)
    text = (tmp_path / "report.json").read_text(encoding="utf-8")
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert found == json.loads(json.dumps(content))
    [task] = found["tasks"]
    assert (found["format"], task["task"]) == (2, TASK)
    assert [own["system"] for own in task["systems"]] == ["teacher minilm", *METHODS]
    [first, *_] = [curve for curve in task["curves"] if curve["system"] == "bilstm"]
    assert [one["dev"] for one in first["history"]] == [None, 0.81, 0.79]
    assert task["confusion"]["counts"]["bilstm"] == [[0.0, 2.0], [1.0, 1.0]]
    assert task["routing"]["cost"] == "time"
    lists = {one["name"]: one for one in task["work_lists"]}
    assert lists["labels"]["rows"][0]["sentences"][0]["text"] == HOSTILE


def test_a_task_without_scored_rows_has_a_page(content: dict[str, Any], tmp_path: Path) -> None:
    content = deepcopy(content)
    [task] = content["tasks"]
    bare = {"gains": [], "reliability": {}, "confusion": None, "routing": None, "curves": []}
    tables = {**task["tables"], "calibration": None, "routing": None}
    task |= bare | {"importance": None, "tables": tables, "checks": []}
    task["systems"] = [own | {"score": None, "rate": None} for own in task["systems"]]
    task["work_lists"] = [own | {"rows": [], "missing": "None is known."} for own in task["work_lists"]]
    content["provenance"] |= {"flow": {"stages": [], "seconds": 0.0}}
    content["provenance"] |= {"commit": None, "packages": [], "computed_on": []}
    write_page(tmp_path / "index.html", content)
    text = (tmp_path / "index.html").read_text()
    assert "None is known." in text and "not in a git repository" in text
    assert "<h3>Routing</h3>" not in text and "data-words" not in text


def test_further_splits_are_shown_if_there_are_any(content: dict[str, Any], html: str, tmp_path: Path) -> None:
    [task] = content["tasks"]
    assert task["tables"]["further"] == [] and "Further labelled splits" not in html
    scores = made_up_scores({name: made_up_method(0.9) for name in METHODS})
    further = made_up_content(tmp_path, **dict(with_split(scores, "test_b")))
    titles = [one["title"] for one in further["tasks"][0]["tables"]["further"]]
    assert titles == [f"{TASK}: {what} on test_b" for what in ("accuracy", "calibration", "routing")]
    [labels] = [own["rows"] for own in further["tasks"][0]["work_lists"] if own["name"] == "labels"]
    labels[1:] = [row | {"label": row["teacher"]["answer"]} for row in labels[1:]]
    write_page(tmp_path / "index.html", further)
    shown = (tmp_path / "index.html").read_text()
    assert (html.count(" Label "), shown.count(" Label ")) == (5, 1)
    assert "<h3>Further labelled splits</h3>" in shown and "rows of test_b, with" in shown
    assert f"<caption>{TASK}: accuracy on test_b</caption>" in shown


def test_long_sentences_are_cut_and_say_by_how_much() -> None:
    found = pieces({"text": "a [MASK] film", "spans": [{"rule": "mask", "start": 2, "end": 8, "was": "very"}]})
    assert [piece["text"] for piece in found] == ["a ", "[MASK]", " film"]
    assert found[1] | {"was": "very", "rule": "mask"} == found[1]
    long = pieces({"text": "x" * 1000, "spans": [{"rule": "mask", "start": 900, "end": 910, "was": None}]})
    assert [len(piece["text"]) for piece in long[:1]] == [600]
    assert long[1]["text"] == " … (400 more characters)"


def test_colours_go_by_the_greatest_change() -> None:
    assert [heat(change, 0.5) for change in (0.5, -0.2, 0.02, 0.0)] == ["rise5", "fall2", "level", "level"]
    assert (seconds(3.14159), seconds(60.0), seconds(125.0)) == ("3.1 s", "1 min 0 s", "2 min 5 s")


@pytest.mark.parametrize(
    ("low", "high", "log", "wanted"),
    [
        (0.78, 0.86, False, [0.78, 0.8, 0.82, 0.84, 0.86]),
        (-0.3, 0.1, False, [-0.3, -0.2, -0.1, 0.0, 0.1]),
        (150, 6000, True, [200, 500, 1000, 2000, 5000]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, log: bool, wanted: list[float]) -> None:
    axis = Axis("x", low, high, (0.0, 100.0), log=log)
    assert axis.ticks == pytest.approx(wanted)
    assert (axis(low), axis(high)) == (pytest.approx(0.0), pytest.approx(100.0))

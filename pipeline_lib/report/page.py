"""The report as one self-contained HTML file, which loads nothing from the network.

The template engine escapes texts from data; the content security policy allows only the page's own script and style.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipeline_lib.base.files import atomic_path
from pipeline_lib.report.charts import (
    Figure,
    flow_chart,
    intervals,
    learning_chart,
    reliability_chart,
    routing_chart,
    scatter,
)
from pipeline_lib.results.account import reused
from pipeline_lib.results.tables import HEADS, IN_PERCENT

HERE = Path(__file__).parent
MAX_CHARACTERS = 600
FIRST = 5
"""How many likely label errors are shown at the top."""
WIDE = ("Dev", "Gain", "To", "Agree", "Faster")
"""How the heads begin of columns that a narrow screen leaves out."""


def write_page(path: Path, content: Mapping[str, Any]) -> None:
    """Write the page from what :func:`pipeline_lib.results.content.page_content` gathered, and the provenance."""
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    html = _template().render(
        content=content,
        tasks=[_task(task) for task in content["tasks"]],
        encoders=_curves("encoders", content["encoders"], {}),
        flow=_flow(content["provenance"]["flow"]),
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
    )
    with atomic_path(path) as temporary:
        temporary.write_text(html, encoding="utf-8")


def write_content(path: Path, content: Mapping[str, Any]) -> None:
    """Write what the page shows as JSON, which has no NaN."""
    with atomic_path(path) as temporary:
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")


@cache
def _template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {f.__name__: f for f in (heat, shade, seconds, rows, pieces, leads, ordered)}
    return environment.get_template("page.html")


def _policy(style: str, script: str) -> str:
    """Return the page's content security policy: nothing is loaded, and only its own code runs."""
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script))
    allowed = "; ".join(f"{kind}-src 'sha256-{d}'" for kind, d in zip(("style", "script"), digests, strict=True))
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _task(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task's content with its figures."""
    name, scores = f"task-{task['task']}", task["scores"]
    series = {system["system"]: number for number, system in enumerate(task["systems"])}
    routing = task["routing"]
    routes = [{**route, "series": series[route["system"]]} for route in routing["methods"]] if routing else []
    return {
        **task,
        "id": name,
        "metric": scores["metrics"][0],
        "score_tables": _halves(task["tables"]["scores"]),
        "weakest": _weakest(scores, task["best"], task["split"]),
        "label_errors": [
            row
            for ranked in task["work_lists"]
            for row in ranked["rows"]
            if ranked["name"] == "labels" and row["teacher"]["answer"] != row["label"]
        ][:FIRST],
        "gain_figures": list(_gain_figures(task, series)),
        "cost_figures": list(_cost_figures(task, series)),
        "reliability_figures": [
            reliability_chart(f"{name}-reliability-{series[s]}", s, series[s], bins, task["is_score"])
            for s, bins in task["reliability"].items()
        ],
        "routing_figure": routing and routing_chart(f"{name}-routing", routes, task["split"], routing["cost"]),
        "learning_figures": _curves(name, task["curves"], series),
        "examples": _examples(task["importance"]),
        "listed": [_listed(ranked, row) for ranked in task["work_lists"] for row in ranked["rows"]],
    }


def _halves(table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a table without sizes in parameters and what follows its last break, so that it fits, and these as one."""
    if len(table["breaks"]) < 2:
        return [table | {"wide": []}]
    heads, end = table["header"], table["breaks"][-1]
    others = [number for number, head in enumerate(heads) if number >= end or head.startswith("Params")]

    def columns(title: str, numbers: Sequence[int]) -> dict[str, Any]:
        header, *rows = ([cells[number] for number in numbers] for cells in (heads, *table["rows"]))
        wide = [number for number, head in enumerate(header) if head.split()[0] in WIDE]
        return {"title": title, "header": header, "rows": rows, "wide": wide}

    shown = [number for number in range(len(heads)) if number not in others]
    return [columns(table["title"], shown), columns(f"{table['title']}: size and training", [0, *others])]


def _weakest(scores: Mapping[str, Any], best: str | None, split: str) -> tuple[str, float] | None:
    """Return the class of which the best student finds the least, and the share that it finds."""
    recalls = (best and scores["methods"][best]["details"]["recall"].get(split)) or {}
    shares = {name: recall["mean"] for name, recall in recalls.items() if recall["mean"] is not None}
    return min(shares.items(), key=lambda item: item[1]) if shares else None


def _listed(work_list: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a work list's row with the words that the filter finds it by."""
    fields = {
        "list": work_list["name"],
        "label": row["label"],
        "teacher": row["teacher"] and row["teacher"]["answer"],
        "student": row["student"] and row["student"]["answer"],
    }
    words = [_word(key, value) for key, value in fields.items() if isinstance(value, str)]
    return {**row, "list": work_list, "words": [*words, *(f"rule:{rule}" for rule in row["rules"])]}


def _word(key: str, value: str) -> str:
    return f"{key}:{'_'.join(value.split())}"


def leads(task: Mapping[str, Any], system: str, label: str, answer: str) -> str:
    """Return the filter words for the listed rows with this label and this answer of a system.

    Empty if no such row is listed, or if the lists lack the system's answers.
    """
    students = {(ranked["student"] or "").rpartition("-")[0] for ranked in task["work_lists"]}
    kind = "teacher" if system.startswith("teacher ") else "student"
    words = [_word("label", label), _word(kind, answer)]
    listed = any(set(words) <= set(row["words"]) for row in task["listed"])
    return " ".join(words) if listed and (kind == "teacher" or system in students) else ""


def pieces(sentence: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a sentence in pieces: text, the rule that wrote it or None, and the original word.

    Text beyond :data:`MAX_CHARACTERS` is cut.
    """
    text, end, cut = sentence["text"], 0, []
    for span in takewhile(lambda span: span["end"] <= MAX_CHARACTERS, sentence["spans"]):
        cut.append((text[end : span["start"]], None, None))
        cut.append((text[span["start"] : span["end"]], span["rule"], span["was"]))
        end = span["end"]
    cut.append((text[end:MAX_CHARACTERS], None, None))
    if (left := len(text) - MAX_CHARACTERS) > 0:
        cut.append((f" … ({left:,} more characters)", "cut", None))
    return [dict(zip(("text", "rule", "was"), piece, strict=True)) for piece in cut if piece[0]]


def _gain_figures(task: Mapping[str, Any], series: Mapping[str, int]) -> Iterator[Figure]:
    if steps := [{**step, "series": series[step["method"]]} for step in task["steps"]]:
        metric = task["scores"]["metrics"][0]
        unit = f"{metric}, points: right of zero is better"
        title = f"{metric} on {task['split']}, step by step"
        yield intervals(f"task-{task['task']}-steps", title, unit, steps, 100.0)
    measures = dict.fromkeys(gain["measure"] for gain in task["gains"])
    for number, measure in enumerate(measures):
        gains = [{**gain, "series": series[gain["method"]]} for gain in task["gains"] if gain["measure"] == measure]
        better = "right of zero is better" if number == 0 else "left of zero is better"
        in_points = number == 0 or measure in IN_PERCENT
        unit = f"{HEADS.get(measure, measure)}{', points' if in_points else ''}: {better}"
        title = f"{HEADS.get(measure, measure)} on {task['split']}, over the baseline"
        name = f"task-{task['task']}-gain-{number}"
        yield intervals(name, title, unit, gains, 100.0 if in_points else 1.0)


def _cost_figures(task: Mapping[str, Any], series: Mapping[str, int]) -> Iterator[Figure]:
    metric = task["scores"]["metrics"][0]
    axes = {
        "rate": ("Score against speed", "sentences per second on one core"),
        "parameters": ("Score against parameters", "parameters, embeddings included"),
        "bytes": ("Score against size on disk", "bytes"),
    }
    for key, (title, label) in axes.items():
        points = [
            # With the form that was timed.
            {**s, "x": s[key], "series": series[s["system"]]}
            | ({"system": f"{s['system']}, {s['form']}"} if key == "rate" else {})
            for s in task["systems"]
            if s[key] and s["score"] is not None
        ]
        if points:
            yield scatter(f"task-{task['task']}-{key}", title, label, metric, points)


def _curves(name: str, curves: list[dict[str, Any]], series: Mapping[str, int]) -> list[tuple[Figure, Figure]]:
    """Return the score and loss curves of each system, in pairs."""
    shown = {"teacher": "teacher {}", "joint": "{}, of several tasks", "encoder": "encoder {}"}
    by_system: dict[str, list[dict[str, Any]]] = {}
    for curve in curves:
        system = shown.get(curve["kind"], "{}").format(curve["system"])
        by_system.setdefault(system, []).append(curve)
    return [
        tuple(
            learning_chart(f"{name}-curve-{number}-{key}", system, series.get(system, number), group, key)
            for key in ("dev", "loss")
        )
        for number, (system, group) in enumerate(by_system.items())
    ]


def _flow(flow: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flow's chart, with a line of text for each stage, and the total time."""
    stages = [{**stage, "line": _line(stage["runs"])} for stage in flow["stages"]]
    return {"chart": stages and flow_chart("flow-chart", stages), "seconds": flow["seconds"]}


def _line(runs: list[dict[str, Any]]) -> str:
    if not runs:
        return "no run recorded"
    line = seconds(sum(run["seconds"] for run in runs))
    stored, pieces_of_work = reused(runs)
    return f"{line}, {stored}/{pieces_of_work} reused" if pieces_of_work else line


def _examples(importance: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the explained rows, each with its largest change, which scales the colours."""
    examples = importance["examples"] if importance else []
    changes = [[c for model in example["models"].values() for c in model["changes"]] for example in examples]
    largest = (max(map(abs, each), default=0.0) for each in changes)
    return [{**example, "most": most or 1.0} for example, most in zip(examples, largest, strict=True)]


def ordered(models: Mapping[str, Any], importance: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the models' answers in order: teacher, distilled and undistilled student."""
    names = f"teacher {importance['teacher']}", importance["method"], importance["baseline"]
    return [(name, models[name]) for name in names if name in models]


def rows(records: list[Mapping[str, Any]], *keys: str) -> list[list[Any]]:
    """Return the values of records as a table's rows."""
    return [[record[key] for key in keys] for record in records]


def heat(change: float, most: float) -> str:
    """Return the CSS class of a change's colour: five steps either way, none near zero."""
    step = round(5 * min(abs(change) / most, 1.0))
    return f"{'rise' if change > 0 else 'fall'}{step}" if step else "level"


def shade(share: float) -> str:
    """Return the CSS class of a share's colour, in ten steps."""
    return f"shade{round(10 * min(max(share, 0.0), 1.0))}"


def seconds(value: float) -> str:
    """Format a duration as seconds, or as minutes and seconds."""
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value // 60)} min {int(value % 60)} s"

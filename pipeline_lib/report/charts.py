"""The page's charts, each with a table of its numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from pipeline_lib.report.svg import WIDTH, Axis, Plot, image, mark, tag

SMALL = (256, 205)
"""Size of the charts shown side by side, one per system."""
GAIN_HEADS = ("Difference", "Interval", "p (Holm)")
ROW, NAMES = 30, 150
"""Height of a row in a chart of intervals, and width of the names."""


@dataclass(frozen=True)
class Figure:
    """A chart, and its numbers as a table.

    :ivar legend: number, swatch and name of each series, if the chart itself does not name them.
    """

    title: str
    svg: Markup
    head: list[str]
    rows: list[list[str]]
    note: str = ""
    legend: list[tuple[int, Markup, str]] = field(default_factory=list)


def legend(names: Sequence[str], first: int = 0) -> list[tuple[int, Markup, str]]:
    """Return the number, swatch and name of each series."""
    return [(n, _swatch(n), name) for n, name in enumerate(names, first)]


def _swatch(series: int) -> Markup:
    line = tag("line", x1=1, x2=27, y1=8, y2=8, class_=f"line s{series % 8}")
    return tag("svg", line, mark(14.0, 8.0, series), width=28, height=16, aria_hidden="true", viewBox="0 0 28 16")


def intervals(name: str, title: str, unit: str, gains: list[dict[str, Any]], scale: float) -> Figure:
    """Draw differences from a baseline with their intervals, one per row, around zero.

    :param gains: method, baseline, difference, low and high (or None), p_holm (or None), and
        optionally ``changed``, what differs in the method.
    :param scale: factor that converts differences to ``unit``.
    """
    ends = [
        value * scale
        for gain in gains
        for value in (gain["low"], gain["difference"], gain["high"])
        if value is not None
    ]
    axis = Axis.of(unit, [0.0, *ends], (NAMES, WIDTH - 14))
    bottom = 10 + ROW * len(gains)
    parts = []
    for value in axis.ticks:
        x, kind = axis(value), "zero" if value == 0 else "grid"
        parts.append(tag("line", x1=x, x2=x, y1=6, y2=bottom, class_=kind))
        parts.append(tag("text", axis.text(value), x=x, y=bottom + 16, class_="tick mid"))
    parts.append(tag("text", unit, x=(NAMES + WIDTH) / 2, y=bottom + 34, class_="label mid"))
    for number, gain in enumerate(gains):
        y = 10 + ROW * (number + 0.5)
        changed = gain.get("changed")
        parts.append(tag("text", gain["method"], x=NAMES - 10, y=y + (0 if changed else 4), class_="name end"))
        if changed:
            parts.append(tag("text", changed, x=NAMES - 10, y=y + 12, class_="tick end"))
        if gain["low"] is not None:
            x1, x2 = (axis(gain[end] * scale) for end in ("low", "high"))
            parts.append(tag("line", x1=x1, x2=x2, y1=y, y2=y, class_=f"bar s{gain['series'] % 8}"))
        text = _gain_text(gain, scale)
        parts.append(mark(axis(gain["difference"] * scale), y, gain["series"], text))
    described = "; ".join(_gain_text(gain, scale) for gain in gains)
    named = [[gain["changed"]] for gain in gains if "changed" in gain]
    return Figure(
        title,
        image(name, title, described, WIDTH, bottom + 44, *parts),
        ["Method", *(["What differs"] if named else []), "Over", *GAIN_HEADS],
        [
            [gain["method"], *changed, gain["baseline"], *_gain_cells(gain, scale)]
            for gain, changed in zip(gains, named or [[]] * len(gains), strict=True)
        ],
    )


def _gain_cells(gain: Mapping[str, Any], scale: float) -> list[str]:
    low, high, p = gain["low"], gain["high"], gain["p_holm"]
    between = "–" if low is None else f"{low * scale:+.3g} to {high * scale:+.3g}"
    return [f"{gain['difference'] * scale:+.3g}", between, "–" if p is None else f"{p:.3f}"]


def _gain_text(gain: Mapping[str, Any], scale: float) -> str:
    difference, between, _ = _gain_cells(gain, scale)
    return f"{gain['method']} over {gain['baseline']}: {difference} ({between})"


def scatter(name: str, title: str, x: str, metric: str, points: list[dict[str, Any]]) -> Figure:
    """Draw scores, in percent, against their cost, on a logarithmic scale.

    :param points: system, series, x, score, and std or None.
    """
    spread = [p["score"] + sign * (p["std"] or 0.0) for p in points for sign in (-1, 1)]
    plot = Plot.of((x, [p["x"] for p in points]), (f"{metric} (%)", spread), log_x=True, percent="y")
    for p in points:
        if p["std"]:
            plot.bar(p["x"], p["score"] - p["std"], p["score"] + p["std"], p["series"])
        plot.mark(p["x"], p["score"], p["series"], f"{p['system']}: {100 * p['score']:.1f}")
    rows = [[p["system"], f"{p['x']:,.0f}", f"{100 * p['score']:.1f}", _percent(p["std"])] for p in points]
    described = "; ".join(f"{row[0]}: {row[1]}, {row[2]} %" for row in rows)
    return Figure(
        title,
        plot.drawn(name, title, described),
        ["System", x, f"{metric} (%)", "± (%)"],
        rows,
        legend=[(p["series"], _swatch(p["series"]), p["system"]) for p in points],
    )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def reliability_chart(name: str, system: str, series: int, bins: Mapping[str, list[float]], regression: bool) -> Figure:
    """Draw what a system predicts against what is observed, with the diagonal."""
    predicted, observed = bins["predicted"], bins["observed"]
    both, percent = [*predicted, *observed], "" if regression else "xy"
    labels = ("answer", "label") if regression else ("confidence (%)", "accuracy (%)")
    span = both if regression else [*both, 1.0]
    plot = Plot.of((labels[0], span), (labels[1], span), SMALL, percent=percent)
    ends = min(span), max(span)
    plot.parts.append(
        tag("line", x1=plot.x(ends[0]), y1=plot.y(ends[0]), x2=plot.x(ends[1]), y2=plot.y(ends[1]), class_="even")
    )
    pairs = list(zip(predicted, observed, strict=True))
    plot.line(pairs, series)
    show: Callable[[float], str] = (lambda v: f"{v:.3f}") if regression else _percent
    for a, b in pairs:
        plot.mark(a, b, series, f"{labels[0]} {show(a)}, {labels[1]} {show(b)}")
    kind = "mean label" if regression else "accuracy"
    described = f"{kind.capitalize()} in {len(pairs)} bins of equal mass: " + ", ".join(
        f"{show(a)}: {show(b)}" for a, b in pairs
    )
    rows = [[str(n), show(a), show(b), show(b - a)] for n, (a, b) in enumerate(pairs, 1)]
    head = ["Bin", labels[0].capitalize(), labels[1].capitalize(), "Difference"]
    return Figure(system, plot.drawn(name, system, described), head, rows)


def routing_chart(name: str, routes: list[dict[str, Any]], split: str, cost: str) -> Figure:
    """Draw accuracy against cost as more and more rows are routed to the teacher.

    :param routes: system, series, teacher_accuracy, curve and best (cost, routed, accuracy).
    """
    title = f"Accuracy on {split} against cost"
    points = [point for route in routes for point in [*route["curve"], route["best"]]]
    scores = [p["accuracy"] for p in points] + [route["teacher_accuracy"] for route in routes]
    x = f"cost ({cost}, teacher alone = 1)"
    plot = Plot.of((x, [0.0, *(p["cost"] for p in points)]), ("accuracy (%)", scores), percent="y")
    for level in sorted({route["teacher_accuracy"] for route in routes}):
        y = plot.y(level)
        plot.parts.append(tag("line", x1=plot.x.span[0], x2=plot.x.span[1], y1=y, y2=y, class_="even"))
    for route in routes:
        plot.line([(p["cost"], p["accuracy"]) for p in route["curve"]], route["series"])
        best = route["best"]
        text = f"{route['system']}: {_percent(best['accuracy'])} at cost {best['cost']:.2f}"
        plot.mark(best["cost"], best["accuracy"], route["series"], text)
    rows = [
        [
            r["system"] + (" (smallest share)" if p is r["best"] else ""),
            _percent(p["routed"]),
            f"{p['cost']:.2f}",
            _percent(p["accuracy"]),
        ]
        for r in routes
        for p in [r["best"], *r["curve"]]
    ]
    described = "; ".join(f"{row[0]} {row[3]} % at {row[2]}" for row in rows if "smallest" in row[0])
    return Figure(
        title,
        plot.drawn(name, title, described),
        ["Method", "Routed (%)", f"Cost ({cost})", "Accuracy (%)"],
        rows,
        "Mark: the smallest share of dev that keeps the teacher's accuracy. Dashed: the teacher.",
        [(r["series"], _swatch(r["series"]), r["system"]) for r in routes],
    )


def learning_chart(name: str, system: str, series: int, curves: list[dict[str, Any]], key: str) -> Figure:
    """Draw the curves of one system's seeds, each with a mark at the evaluation that was kept.

    :param key: ``dev`` or ``loss``.
    """
    percent = key == "dev" and curves[0]["measure"] != "loss"
    measure = "training loss" if key == "loss" else f"{curves[0]['measure']} on dev"
    label = f"{measure} (%)" if percent else measure
    show: Callable[[float | None], str] = _percent if percent else _decimals
    # A score is None where it is undefined, such as a correlation of constants.
    known = [[one for one in curve["history"] if one[key] is not None] for curve in curves]
    steps = [0.0, *(float(one["step"]) for history in known for one in history)]
    values = [one[key] for history in known for one in history] or [0.0]
    plot = Plot.of(("step", steps), (label, values), SMALL, percent="y" if percent else "")
    for curve, history in zip(curves, known, strict=True):
        plot.line([(one["step"], one[key]) for one in history], series, "thin")
        for one in history:
            if one["step"] == curve["best_step"]:
                text = f"seed {curve['seed']}, step {one['step']}: {show(one[key])}, {_kept(one)}"
                plot.mark(one["step"], one[key], series, text)
    described = "; ".join(
        f"seed {curve['seed']}: {show(history[0][key])} to {show(history[-1][key])}"
        for curve, history in zip(curves, known, strict=True)
        if history
    )
    head = ["Seed", "Step", "Epoch", label.capitalize(), "Weights"]
    rows = [row for curve in curves for row in _learning_rows(curve, key, show)]
    return Figure(system, plot.drawn(name, f"{system}: {measure}", described), head, rows)


def _learning_rows(curve: Mapping[str, Any], key: str, show: Callable[[float | None], str]) -> list[list[str]]:
    return [
        [
            str(curve["seed"]),
            f"{one['step']:,}",
            f"{one['epoch']:.2f}",
            show(one[key]),
            _kept(one) if one["step"] == curve["best_step"] else "",
        ]
        for one in curve["history"]
    ]


def _kept(evaluation: Mapping[str, Any]) -> str:
    """Say that an evaluation's weights were kept, and the loss that chose it, if one did."""
    loss = evaluation.get("dev_loss")
    return "kept" if loss is None else f"kept: lowest loss on dev, {loss:.4f}"


def _decimals(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


BOX, GAP = (154, 46), (26, 14)
"""Size of a stage's box in the flow, and the space between boxes."""


def flow_chart(name: str, stages: list[dict[str, Any]]) -> Markup:
    """Draw the stages in columns, each after those it depends on, with time and work reused.

    :param stages: see :func:`pipeline_lib.base.flow.read_flow`; each with a ``line`` of text.
    """
    columns = _columns({stage["name"]: stage["after"] for stage in stages})
    rows: dict[int, int] = {}
    places = {}
    for name_of_stage, column in columns.items():
        row = rows.setdefault(column, 0)
        rows[column] += 1
        places[name_of_stage] = 1 + column * (BOX[0] + GAP[0]), 1 + row * (BOX[1] + GAP[1])
    parts = []
    for stage in stages:
        for other in stage["after"]:
            (x1, y1), (x2, y2) = places[other], places[stage["name"]]
            a, b = (x1 + BOX[0], y1 + BOX[1] / 2), (x2, y2 + BOX[1] / 2)
            bend = max(18.0, (b[0] - a[0]) / 2)
            path = f"M{a[0]} {a[1]} C{a[0] + bend} {a[1]} {b[0] - bend} {b[1]} {b[0]} {b[1]}"
            parts.append(tag("path", d=path, class_="edge"))
    for stage in stages:
        x, y = places[stage["name"]]
        kind = "box" if stage["runs"] else "box idle"
        parts.append(tag("rect", x=x, y=y, width=BOX[0], height=BOX[1], rx=6, class_=kind))
        parts.append(tag("text", stage["name"], x=x + 9, y=y + 20, class_="name"))
        parts.append(tag("text", stage["line"], x=x + 9, y=y + 38, class_="tick"))
    width = 2 + len(rows) * (BOX[0] + GAP[0]) - GAP[0]
    height = 2 + max(rows.values(), default=1) * (BOX[1] + GAP[1]) - GAP[1]
    described = "; ".join(
        f"{s['name']} ({s['line']})" + (f" after {', '.join(s['after'])}" if s["after"] else "") for s in stages
    )
    return image(name, "The stages", described, width, height, *parts)


def _columns(after: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return each stage's column: after its dependencies, and close to its dependents."""
    columns: dict[str, int] = {}
    for name, others in after.items():
        columns[name] = 1 + max((columns[other] for other in others), default=-1)
    for name in reversed(after):
        waiting = [columns[other] for other, dependencies in after.items() if name in dependencies]
        if not after[name] and waiting:
            columns[name] = min(waiting) - 1
    return columns

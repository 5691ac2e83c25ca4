"""Describes a task's splits: their rows, what was left out, and the texts they share."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeline_lib.shards.columns import SECOND

if TYPE_CHECKING:
    from pipeline_lib.shards.shard_sets import Manifest

REASONS = {"outside_label_ranges": "outside the label ranges", "empty_text": "with empty text"}
_SHOWN = 20


def prepared_line(task: str, manifests: "Mapping[str, Manifest]") -> str:
    """Return a one-line description of a task's prepared splits."""
    rows = ", ".join(f"{name} {manifest.rows:,}" for name, manifest in manifests.items())
    total: Counter[str] = Counter()
    for split, counts in manifests["train"].counts["dropped"].items():
        # Nobody asks for the labels of unlabelled texts.
        reasons = REASONS if split == "unlabelled" else (*REASONS, "hidden_label")
        total.update({name: counts.get(name, 0) for name in reasons})
    left_out = [f"{total[reason]:,} {words}" for reason, words in REASONS.items() if total[reason]]
    facts = [f"{task}: {rows} rows", f"left out: {', '.join(left_out) or 'none'}"]
    if total["hidden_label"]:
        facts.append(f"{total['hidden_label']:,} with a hidden label")
    shared = {name: manifest.counts.get("shared_with", {}) for name, manifest in manifests.items()}
    what = "pair" if f"text{SECOND}" in manifests["train"].schema else "text"
    facts.append(shared_line(shared) or f"no {what} is in two splits")
    if "unlabelled" in manifests:
        counts = manifests["unlabelled"].counts
        twice = f"{counts['in_a_split']:,} that are in a split, {counts['repeated']:,} repeated"
        facts.append(f"unlabelled texts left out: {twice}")
    return "; ".join(facts)


def empty_texts_line(task: str, dropped: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return a warning that names the held-out rows with an empty text, or None if there are none."""
    named = []
    for split, counts in dropped.items():
        if rows := counts.get("kept_empty_text"):
            more = f" and {len(rows) - _SHOWN:,} more" if len(rows) > _SHOWN else ""
            listed = ", ".join(map(str, rows[:_SHOWN]))
            named.append(f"{split}, row{'s' * (len(rows) > 1)} {listed}{more}")
    if not named:
        return None
    return f"warning: {task}: an empty text in {'; '.join(named)}. These rows are kept and answered like any other."


def shared_line(shared: Mapping[str, Mapping[str, Any]]) -> str:
    """Say which splits share texts, or return "" if none do.

    :param shared: split to earlier split to counts, see :func:`pipeline_lib.evaluation.heldout.shared_texts`.
    """
    overlaps = []
    for split, others in shared.items():
        for other, counts in others.items():
            if counts["rows"]:
                conflicts = counts["other_label"]
                note = f" ({conflicts:,} under another label)" if conflicts else ""
                overlaps.append(f"{counts['rows']:,} of {split} also in {other}{note}")
    return f"texts: {', '.join(overlaps)}" if overlaps else ""

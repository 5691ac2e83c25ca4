"""What augmentation changed in a sentence (Tang et al. 2019, section 3.3; Jiao et al. 2020, algorithm 1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline_lib.inspection.captions import RuleName
from pipeline_lib.shards.columns import FIRST, MASKED, REPLACED, SECOND

WORD_RULES: dict[int, RuleName] = {MASKED: "mask", REPLACED: "replace"}


@dataclass(frozen=True)
class Span:
    """A word that a rule changed: characters ``start`` to ``end`` (excluded), and what it replaced, if known."""

    rule: RuleName
    start: int
    end: int
    was: str | None = None


@dataclass(frozen=True)
class Sentence:
    """One sentence of a row.

    :ivar ngram: which words of the original are left, first and last, counted from 1; None: all.
    """

    text: str
    spans: list[Span]
    ngram: tuple[int, int] | None = None


def sentences_of(record: Mapping[str, Any], original: Mapping[str, Any] | None = None) -> list[Sentence]:
    """Return the one or two sentences of a row of a shard, made from an original, if that is known."""
    sides = (FIRST, SECOND) if f"text{SECOND}" in record else (FIRST,)
    return [_sentence(record, side, original) for side in sides if f"text{side}" in record]


def _sentence(record: Mapping[str, Any], side: str, original: Mapping[str, Any] | None) -> Sentence:
    text = record[f"text{side}"]
    rules = record.get(f"rules{side}")
    if rules is None:
        return Sentence(text, [])
    start, length = record[f"ngram_start{side}"], record[f"ngram_length{side}"]
    before = None if original is None else original[f"words{side}"][start if length else 0 :]
    spans = _spans(text, record[f"words{side}"], rules, before)
    return Sentence(text, spans, (start + 1, start + length) if length else None)


def _spans(text: str, words: Sequence[str], rules: Sequence[int], before: Sequence[str] | None) -> list[Span]:
    spans, end = [], 0
    for number, (word, rule) in enumerate(zip(words, rules, strict=True)):
        # Words occur in the text in order, with or without spaces between them.
        start = text.index(word, end)
        end = start + len(word)
        if rule in WORD_RULES:
            was = before[number] if before is not None and number < len(before) else None
            spans.append(Span(WORD_RULES[rule], start, end, was))
    return spans


def rules_of(record: Mapping[str, Any], sentences: Sequence[Sentence]) -> list[RuleName]:
    """Return the rules that made a row, or just ``original``; none outside transfer sets."""
    if "iteration" not in record:
        return []
    used: set[RuleName] = {span.rule for sentence in sentences for span in sentence.spans}
    used |= {"ngram" for sentence in sentences if sentence.ngram}
    return sorted(used) if record["iteration"] else ["original"]


def in_words(sentence: Sentence) -> str:
    """Describe what was changed in a sentence."""
    masked = sum(span.rule == "mask" for span in sentence.spans)
    changes = [f"masked {masked}"] if masked else []
    if new := [sentence.text[s.start : s.end] for s in sentence.spans if s.rule == "replace"]:
        changes.append(f"replaced {len(new)} ({', '.join(new)})")
    if sentence.ngram:
        first, last = sentence.ngram
        changes.append(f"n-gram: words {first}–{last} of the source")
    return " · ".join(changes) or "unchanged"

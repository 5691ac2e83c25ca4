"""Reading a language model's output: class probabilities from its tokens, or a score.

A class name is one token or several.  Its probability is accumulated along the answer's path: at each token the
answer continues with some probability, and an alternative token leads to another class if that class's name starts
with the answer so far plus the alternative.  Probability that leads to no class is not covered.  The path begins
where the reply states its answer: behind its thoughts, or within JSON.

Of several labels, a reply names those that apply, as a list or in words; tokens do not say how probable each is.

A score is the only number in an answer or, if that is a whole number in one token, the
probability-weighted mean of the whole numbers among its alternatives (Liu et al. 2023, section 2).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from pipeline_lib.base.errors import PotstillError
from pipeline_lib.outputs.files.batch_lines import Alternatives, Reply, batch_response, reply_of, token_text
from pipeline_lib.outputs.files.class_names import plain
from pipeline_lib.outputs.files.final_answer import (
    after_marker,
    final_parts,
    stated_class,
    stated_labels,
    stated_number,
)
from pipeline_lib.outputs.files.given_rows import Given
from pipeline_lib.outputs.files.parse_score import said_score
from pipeline_lib.params import Range


@dataclass(frozen=True)
class AnyOf:
    """Labels of which any number can be the answer."""

    names: tuple[str, ...]


Asked = Sequence[str] | Range | AnyOf
"""The answer asked for: one of these classes, a list of these labels, or a score in this range."""
IMPOSSIBLE = 1e-3
"""Alternatives whose probabilities at one position sum to more than 1 by this are rejected."""
NEGLIGIBLE = 0.01
"""Total probability of the classes among a reply's alternatives that tells nothing."""
_LEADING = " \t\n\"'"


def read_batch_line(line: Mapping[str, Any], asked: Asked, where: str) -> Given:
    """Read a line of a batch's output, of any provider's.

    :param where: for messages.
    """
    row, body = batch_response(line, where)
    return row if row.error is not None else _answered(row, reply_of(body, where), asked, where)


def read_vllm_line(line: Mapping[str, Any], asked: Asked, where: str) -> Given:
    """Read a line with the fields of vLLM's ``RequestOutput``, and ``text`` or ``custom_id``.

    ``outputs[0].logprobs`` has for each token the alternatives' ``decoded_token`` and ``logprob``,
    and ``outputs[0].text`` the answer.
    """
    row, _ = batch_response({"response": {}, **line}, where)
    if row.error is not None:
        return row
    output = (line.get("outputs") or [{}])[0]
    places = [
        {token_text(str(t["decoded_token"])): float(t["logprob"]) for t in alternatives.values()}
        for alternatives in output.get("logprobs") or []
    ]
    return _answered(row, Reply(output.get("text"), None, [], places), asked, where)


def _answered(row: Given, reply: Reply, asked: Asked, where: str) -> Given:
    """Complete a row with its answer.

    ``value`` has the classes that were found, or else the class said, or the score; ``coverage`` is
    the total probability of the classes, or whole numbers, that were found.
    """
    if not reply.text:
        return replace(row, error=reply.error or "no answer")
    _check_possible(reply.places, where)
    try:
        if isinstance(asked, Range):
            score, coverage = _score(reply, asked)
            return replace(row, kind="label", value=score, coverage=coverage)
        if isinstance(asked, AnyOf):
            labels = stated_labels(reply.text, asked.names)
            kind = "probs" if isinstance(labels, dict) else "label"
            return replace(row, kind=kind, value=labels)
        return _classified(row, reply, asked)
    except ValueError as error:
        return replace(row, error=str(error))
    except OverflowError:
        return replace(row, error=f"a number that is too large: {reply.text!r:.60}")


def _classified(row: Given, reply: Reply, names: Sequence[str]) -> Given:
    """Return a row with the class that a reply states, or the probabilities of its tokens.

    :raises ValueError: if it states none, or more than one.
    """
    text = reply.text or ""
    try:
        stated = stated_class(text, names)
    except ValueError as error:
        # The alternatives to a reply that names no class may do so.
        places = _places_from(reply, 0) if str(error).startswith("no class") else []
        probs = class_probabilities(text, places, names)
        if (coverage := sum(probs.values())) < NEGLIGIBLE:
            raise
        return replace(row, kind="probs", value=probs, coverage=min(1.0, coverage))
    if isinstance(stated.value, dict):
        return replace(row, kind="probs", value=stated.value)
    if isinstance(stated.value, str) and stated.start is not None:
        places = _places_from(reply, stated.start)
        probs = class_probabilities(text[stated.start :], places, names)
        if probs.get(stated.value):
            coverage = min(1.0, sum(probs.values()))
            return replace(row, kind="probs", value=probs, coverage=coverage)
    value = stated.value if isinstance(stated.value, str) else f"{stated.value:g}"
    return replace(row, kind="label", value=value)


def _places_from(reply: Reply, start: int) -> list[Alternatives]:
    """Return the alternatives at each token from an offset of a reply on.

    The first token may begin earlier; what it has before the offset is taken off its alternatives.
    None if the tokens do not spell the reply.
    """
    text = reply.text or ""
    tokens = [*map(_bytes, reply.tokens or _path_of(text, reply.places))]
    spelled, lead = b"".join(tokens), text[: len(text) - len(text.lstrip())]
    begin = spelled.rfind(_bytes(text.strip()))
    if begin < 0:
        # The last token of a path without an end is all that is known of it.
        begin = 0 if spelled and _bytes(text).startswith(spelled) else -1
        lead = ""
    offset = begin + len(_bytes(text[len(lead) : start]))
    ends = [*accumulate(map(len, tokens))]
    first = next((n for n, end in enumerate(ends) if end > offset), None)
    if begin < 0 or first is None:
        return []
    before = tokens[first][: offset - ends[first] + len(tokens[first])]
    return [_cut(reply.places[first], before), *reply.places[first + 1 :]]


def _path_of(text: str, places: Sequence[Alternatives]) -> list[str]:
    """Return the tokens of a reply, where the file does not say which ones were taken."""
    path: list[str] = []
    for alternatives in places:
        token = _taken(text, "".join(path), alternatives)
        if token is None:
            break
        path.append(token)
    return path


def _cut(alternatives: Alternatives, before: bytes) -> Alternatives:
    """Return alternatives without what comes before the answer: a space, a quote."""
    cut: Alternatives = {}
    for token, logprob in alternatives.items():
        raw = _bytes(token)
        rest = raw[len(before) :] if raw.startswith(before) else None
        text = token.lstrip(_LEADING) if rest is None and before else token
        key = text if not rest or not before else rest.decode("utf-8", "surrogateescape")
        if key:
            known = math.exp(cut[key]) if key in cut else 0.0
            cut[key] = math.log(known + math.exp(logprob)) if known else logprob
    return cut


def _score(reply: Reply, scores: Range) -> tuple[float, float | None]:
    """Return an answer's score, and its coverage.

    :raises ValueError: if it has none; see :func:`said_score`.
    """
    *enclosed, (start, part) = final_parts(reply.text or "")
    for offset, inner in enclosed:
        if any(sign.isdigit() for sign in inner):
            start, part = offset, inner
            break
    answer = part.lstrip()
    stated = stated_number(start, part)
    start += len(part) - len(answer)
    if stated is not None:
        answer, start = f"{stated.value:.10g}", stated.start or 0
    try:
        score = said_score(answer, scores)
    except ValueError:
        # Of several numbers it is the one that is announced.
        if (announced := after_marker(answer)) is None:
            raise
        return said_score(announced, scores), None
    places = _places_from(reply, start)
    taken = _taken(answer, "", places[0]) if places else None
    if taken is None or taken.strip() != answer.strip():
        return score, None
    shares = _whole_numbers(places[0], scores)
    covered = sum(shares.values())
    if len(shares) < 2 or score not in shares or not covered:
        return score, None
    return sum(number * share for number, share in shares.items()) / covered, min(1.0, covered)


def _whole_numbers(alternatives: Alternatives, scores: Range) -> dict[int, float]:
    """Return the probabilities of the whole numbers in a range; none if a number may span tokens.

    A minus sign is a token of its own, and 10 may be two tokens, unless some token has two digits.
    """
    tokens = {token: token.strip() for token in alternatives if token.strip().isdecimal()}
    if scores.min < 0 or (scores.max >= 10 and all(len(digits) == 1 for digits in tokens.values())):
        return {}
    shares: dict[int, float] = {}
    for token, digits in tokens.items():
        if scores.min <= int(digits) <= scores.max:
            shares[int(digits)] = shares.get(int(digits), 0.0) + math.exp(alternatives[token])
    return shares


def class_probabilities(answer: str, places: Sequence[Alternatives], labels: Sequence[str]) -> dict[str, float]:
    """Return the class probabilities along an answer's path.

    The probability of an alternative that several class names start with is split evenly among
    them.  Case and spaces around a name are ignored, and so is any text after it.

    :param places: for each token of the answer, the alternatives, including the token itself.
    """
    probs: dict[str, float] = {}
    path, reached = "", 1.0
    for alternatives in places:
        taken = _taken(answer, path, alternatives)
        for token, logprob in alternatives.items():
            if token == taken or not (path + token).strip():
                continue
            begun = _begun(path + token, labels)
            for name in begun:
                share = reached * math.exp(logprob) / len(begun)
                probs[name] = probs.get(name, 0.0) + share
        if taken is None:
            return probs
        path += taken
        reached *= math.exp(alternatives[taken])
        begun = _begun(path, labels)
        if not begun:
            return probs
        if len(begun) == 1:
            # No later token can lead to another class.
            probs[begun[0]] = probs.get(begun[0], 0.0) + reached
            return probs
    for name in (name for name in labels if plain(name) == plain(_whole(path))):
        probs[name] = probs.get(name, 0.0) + reached
    return probs


def _taken(answer: str, path: str, alternatives: Alternatives) -> str | None:
    """Return the token with which the answer continues: the longest that matches."""
    rest = _bytes(answer)[len(_bytes(path)) :]
    fitting = [token for token in alternatives if token and rest.startswith(_bytes(token))]
    if not fitting and not path:
        # Some tokenizers include a space before the first word in its token.
        fitting = [token for token in alternatives if token.strip() and answer.startswith(token.strip())]
    return max(fitting, key=len, default=None)


def _begun(path: str, labels: Sequence[str]) -> list[str]:
    """Return the classes whose names start with a path, or else those that the path starts with."""
    raw = _bytes(_bytes(path).decode("utf-8", "surrogateescape").strip().casefold())
    if not raw:
        return list(labels)
    names = {name: _bytes(name.strip().casefold()) for name in labels}
    return [name for name in labels if names[name].startswith(raw)] or [
        name for name in labels if raw.startswith(names[name])
    ]


def _bytes(text: str) -> bytes:
    """Return a text's bytes; a token may be a part of a character's."""
    return text.encode("utf-8", "surrogateescape")


def _whole(path: str) -> str:
    return _bytes(path).decode("utf-8", "ignore")


def _check_possible(places: list[Alternatives], where: str) -> None:
    """Reject impossible probabilities, which some providers return."""
    for number, alternatives in enumerate(places):
        total = sum(math.exp(value) for value in alternatives.values())
        if not total <= 1.0 + IMPOSSIBLE:
            raise PotstillError(
                f"{where}: the alternatives of token {number} have a total probability of {total:.3f}. The provider's "
                "log probabilities cannot be right: ask for labels alone, or use another provider."
            )
    if len(places) > 1 and len(places[0]) > 1 and all(alternatives == places[0] for alternatives in places):
        raise PotstillError(
            f"{where}: all {len(places)} tokens have the same alternatives. The provider's log "
            "probabilities cannot be right: ask for labels alone, or use another provider."
        )

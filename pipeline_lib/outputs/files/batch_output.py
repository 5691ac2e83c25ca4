"""Reading a language model's output: class probabilities from its tokens, or a score.

A class name is one token or several.  Its probability is accumulated along the answer's path: at
each token the answer continues with some probability, and an alternative token leads to another
class if that class's name starts with the answer so far plus the alternative.  Probability that
leads to no class is not covered.

A score is the only number in an answer or, if that is a whole number in one token, the
probability-weighted mean of the whole numbers among its alternatives (Liu et al. 2023, section 2).
"""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.outputs.files.given_rows import Given
from pipeline_lib.outputs.files.parse_score import said_score
from pipeline_lib.params import Range

Alternatives = dict[str, float]
"""The possible tokens at one position of an answer, with their log probabilities."""
Asked = Sequence[str] | Range
"""The answer asked for: one of these classes, or a score in this range."""
IMPOSSIBLE = 1e-3
"""Alternatives whose probabilities at one position sum to more than 1 by this are rejected."""


def read_batch_line(line: Mapping[str, Any], asked: Asked, where: str) -> Given:
    """Read a line of an OpenAI batch's output, which ``vllm run-batch`` writes too.

    :param where: for messages.
    :raises DistilleryError: if the line is not from a batch, or its probabilities are impossible.
    """
    row, body = batch_response(line, where)
    if row.error is not None:
        return row
    choices = body.get("choices") or [{}]
    answer = (choices[0].get("message") or {}).get("content") or choices[0].get("text")
    return _answered(row, answer, _places(choices[0].get("logprobs")), asked, where)


def batch_response(line: Mapping[str, Any], where: str) -> tuple[Given, Mapping[str, Any]]:
    """Return the key in a line of an OpenAI batch's output, with its error if any, and its body.

    ``custom_id`` is the content key, as ``distill teacher requests`` wrote it.

    :raises DistilleryError: if it is not.
    """
    key, response = content_key(line.get("custom_id"), where), line.get("response") or {}
    body = batch_body(line)
    error = line.get("error") or body.get("error")
    if not error and response.get("status_code", 200) == 200:
        return Given(key=key), body
    if isinstance(error, Mapping) and error.get("message"):
        return Given(key=key, error=str(error["message"])), body
    reason = json.dumps(error) if error else f"status {response.get('status_code')}"
    return Given(key=key, error=reason), body


def batch_body(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a response's body; a gateway's failure has a page or a sentence instead."""
    response = line.get("response")
    body = response.get("body") if isinstance(response, Mapping) else None
    return body if isinstance(body, Mapping) else {}


def content_key(custom_id: Any, where: str) -> int:
    """Return a ``custom_id`` as a content key.

    :raises DistilleryError: if it is not one.
    """
    with suppress(ValueError):
        if 0 <= (key := int(str(custom_id), 16)) < 2**64:
            return key
    raise DistilleryError(
        f"{where}: custom_id {custom_id!r:.40} is not a content key. Make the batch with `distill "
        "teacher requests`, or give the text instead."
    )


def read_vllm_line(line: Mapping[str, Any], asked: Asked, where: str) -> Given:
    """Read a line with the fields of vLLM's ``RequestOutput``, and ``text`` or ``custom_id``.

    ``outputs[0].logprobs`` has for each token the alternatives' ``decoded_token`` and ``logprob``,
    and ``outputs[0].text`` the answer.

    :raises DistilleryError: see :func:`read_batch_line`.
    """
    texts = tuple(line[name] for name in ("text", "text_pair") if name in line) or None
    key = None if texts else content_key(line.get("custom_id", line.get("request_id")), where)
    if line.get("error"):
        return Given(texts, key, error=str(line["error"]))
    output = (line.get("outputs") or [{}])[0]
    places = [
        {str(token["decoded_token"]): float(token["logprob"]) for token in alternatives.values()}
        for alternatives in output.get("logprobs") or []
    ]
    return _answered(Given(texts, key), output.get("text"), places, asked, where)


def _answered(
    row: Given, answer: str | None, places: list[Alternatives], asked: Asked, where: str
) -> Given:
    """Complete a row with its answer.

    ``value`` has the classes that were found, or else the class said, or the score; ``coverage`` is
    the total probability of the classes, or whole numbers, that were found.
    """
    if not answer:
        return replace(row, error="no answer")
    _check_possible(places, where)
    if isinstance(asked, Range):
        try:
            score, coverage = _score(answer, places, asked)
        except ValueError as error:
            return replace(row, error=str(error))
        return replace(row, kind="label", value=score, coverage=coverage)
    if places:
        probs = class_probabilities(answer, places, asked)
        if coverage := sum(probs.values()):
            return replace(row, kind="probs", value=probs, coverage=min(1.0, coverage))
    else:
        named = [name for name in asked if _plain(name) == _plain(answer)]
        if named:
            return replace(row, kind="label", value=named[0])
    return replace(row, error=f"no class: {answer!r:.60}")


def _score(
    answer: str, places: Sequence[Alternatives], scores: Range
) -> tuple[float, float | None]:
    """Return an answer's score, and its coverage.

    :raises ValueError: if it has none; see :func:`said_score`.
    """
    score = said_score(answer, scores)
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


def class_probabilities(
    answer: str, places: Sequence[Alternatives], labels: Sequence[str]
) -> dict[str, float]:
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
    for name in (name for name in labels if _plain(name) == _plain(path)):
        probs[name] = probs.get(name, 0.0) + reached
    return probs


def _taken(answer: str, path: str, alternatives: Alternatives) -> str | None:
    """Return the token with which the answer continues: the longest that matches."""
    rest = answer[len(path) :]
    fitting = [token for token in alternatives if token and rest.startswith(token)]
    if not fitting and not path:
        # Some tokenizers include a space before the first word in its token.
        fitting = [
            token for token in alternatives if token.strip() and answer.startswith(token.strip())
        ]
    return max(fitting, key=len, default=None)


def _begun(path: str, labels: Sequence[str]) -> list[str]:
    """Return the classes whose names start with a path, or else those that the path starts with."""
    plain = path.strip().casefold()
    if not plain:
        return list(labels)
    begun = [name for name in labels if _plain(name).startswith(plain)]
    return begun or [name for name in labels if plain.startswith(_plain(name))]


def _plain(name: str) -> str:
    return name.strip().strip(".\"'").casefold()


def _places(logprobs: Mapping[str, Any] | None) -> list[Alternatives]:
    """Return the alternatives at each token of a chat answer, or of a completion."""
    if not logprobs:
        return []
    if "content" in logprobs:
        return [
            {
                alternative["token"]: float(alternative["logprob"])
                for alternative in [*(part.get("top_logprobs") or []), part]
            }
            for part in logprobs["content"] or []
        ]
    tokens = zip(logprobs["tokens"], logprobs["token_logprobs"], strict=True)
    tops = logprobs.get("top_logprobs") or [{}] * len(logprobs["tokens"])
    return [
        {**(top or {}), token: float(value)}
        for (token, value), top in zip(tokens, tops, strict=True)
    ]


def _check_possible(places: list[Alternatives], where: str) -> None:
    """Reject impossible probabilities, which some providers return."""
    for number, alternatives in enumerate(places):
        total = sum(math.exp(value) for value in alternatives.values())
        if not total <= 1.0 + IMPOSSIBLE:
            raise DistilleryError(
                f"{where}: the alternatives of token {number} have a total probability of "
                f"{total:.3f}. The provider's log probabilities cannot be right: ask for labels "
                "alone, or use another provider."
            )
    if (
        len(places) > 1
        and len(places[0]) > 1
        and all(alternatives == places[0] for alternatives in places)
    ):
        raise DistilleryError(
            f"{where}: all {len(places)} tokens have the same alternatives. The provider's log "
            "probabilities cannot be right: ask for labels alone, or use another provider."
        )

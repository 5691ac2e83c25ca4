"""What a language model's output says: probabilities of classes out of its tokens, or a score.

A class's name is one token or several.  Its probability is put together along the answered path: at
each token the answer goes on with a probability, and the alternatives there lead to other classes,
as far as their names begin with what was answered so far and the alternative.  What leads to no
class is not covered.

A score is the one number that an answer holds or, where that is a whole number in one token, the
mean of all those among the alternatives, by their probabilities (Liu et al. 2023, section 2).
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline_lib.base.errors import DistilleryError
from pipeline_lib.params import Range
from pipeline_lib.teachers.said_scores import said_score

Alternatives = dict[str, float]
"""Tokens at one place of an answer, with their log probabilities."""
Asked = Sequence[str] | Range
"""What was asked for: one of these classes, or a score in this range."""
IMPOSSIBLE = 1e-3
"""Alternatives at one place whose probabilities add up to more than 1 by this are refused."""


@dataclass(frozen=True)
class BatchAnswer:
    """One line of a batch's output.

    :ivar key: the content key, where the line has no texts; :ivar probs: by class, as far as found.
    :ivar said: the class, where no more than the answer is known; of a regression the score.
    :ivar coverage: what the classes found, or the whole numbers, have of the whole probability.
    """

    key: int | None
    texts: tuple[str, ...] | None
    probs: dict[str, float] | None = None
    said: str | float | None = None
    coverage: float | None = None
    error: str | None = None


def read_batch_line(line: Mapping[str, Any], asked: Asked, where: str) -> BatchAnswer:
    """Read a line of an OpenAI batch's output, which ``vllm run-batch`` writes too.

    ``custom_id`` is the content key, as ``distill teacher requests`` wrote it.

    :param where: for messages.
    :raises DistilleryError: if the line is none of a batch, or its tokens' probabilities cannot be.
    """
    key = content_key(line.get("custom_id"), where)
    response = line.get("response") or {}
    body = response.get("body") or {}
    failed = line.get("error") or body.get("error")
    if failed or response.get("status_code", 200) != 200:
        return BatchAnswer(key, None, error=failure(failed, response))
    choices = body.get("choices") or [{}]
    answer = (choices[0].get("message") or {}).get("content") or choices[0].get("text")
    return _answered(key, None, answer, _places(choices[0].get("logprobs")), asked, where)


def read_vllm_line(line: Mapping[str, Any], asked: Asked, where: str) -> BatchAnswer:
    """Read a line with the fields of vLLM's ``RequestOutput``, and ``text`` or ``custom_id``.

    ``outputs[0].logprobs`` has for each token the alternatives' ``decoded_token`` and ``logprob``,
    and ``outputs[0].text`` the answer.

    :raises DistilleryError: see :func:`read_batch_line`.
    """
    texts = tuple(line[name] for name in ("text", "text_pair") if name in line) or None
    key = None if texts else content_key(line.get("custom_id", line.get("request_id")), where)
    if line.get("error"):
        return BatchAnswer(key, texts, error=str(line["error"]))
    output = (line.get("outputs") or [{}])[0]
    places = [
        {str(own["decoded_token"]): float(own["logprob"]) for own in place.values()}
        for place in output.get("logprobs") or []
    ]
    return _answered(key, texts, output.get("text"), places, asked, where)


def _answered(
    key: int | None,
    texts: tuple[str, ...] | None,
    answer: str | None,
    places: list[Alternatives],
    asked: Asked,
    where: str,
) -> BatchAnswer:
    if not answer:
        return BatchAnswer(key, texts, error="no answer")
    _check_possible(places, where)
    if isinstance(asked, Range):
        try:
            score, coverage = _score(answer, places, asked)
        except ValueError as error:
            return BatchAnswer(key, texts, error=str(error))
        return BatchAnswer(key, texts, said=score, coverage=coverage)
    if places:
        probs = class_probabilities(answer, places, asked)
        if coverage := sum(probs.values()):
            return BatchAnswer(key, texts, probs, coverage=min(1.0, coverage))
    else:
        named = [name for name in asked if _plain(name) == _plain(answer)]
        if named:
            return BatchAnswer(key, texts, said=named[0])
    return BatchAnswer(key, texts, error=f"no class: {answer!r:.60}")


def _score(
    answer: str, places: Sequence[Alternatives], scores: Range
) -> tuple[float, float | None]:
    """Return an answer's score, and its coverage.

    :raises ValueError: if it has none; see :func:`said_score`.
    """
    said = said_score(answer, scores)
    taken = _taken(answer, "", places[0]) if places else None
    if taken is None or taken.strip() != answer.strip():
        return said, None
    shares = _whole_numbers(places[0], scores)
    covered = sum(shares.values())
    if len(shares) < 2 or said not in shares or not covered:
        return said, None
    return sum(number * share for number, share in shares.items()) / covered, min(1.0, covered)


def _whole_numbers(place: Alternatives, scores: Range) -> dict[int, float]:
    """Return the probabilities of the whole numbers in a range; none where tokens may go on.

    A minus is a token of its own, and 10 may be two: it is one where a token has two digits.
    """
    tokens = {token: token.strip() for token in place if token.strip().isdecimal()}
    if scores.min < 0 or (scores.max >= 10 and all(len(own) == 1 for own in tokens.values())):
        return {}
    shares: dict[int, float] = {}
    for token, own in tokens.items():
        if scores.min <= int(own) <= scores.max:
            shares[int(own)] = shares.get(int(own), 0.0) + math.exp(place[token])
    return shares


def class_probabilities(
    answer: str, places: Sequence[Alternatives], labels: Sequence[str]
) -> dict[str, float]:
    """Return the probabilities of classes along the path of an answer.

    An alternative that begins several classes is shared out among them evenly.  Case and spaces
    around a name do not count, nor what the answer says behind it.

    :param places: for each token of the answer the alternatives, itself among them.
    """
    found: dict[str, float] = {}
    path, reached = "", 1.0
    for place in places:
        taken = _taken(answer, path, place)
        for token, logprob in place.items():
            if token == taken or not (path + token).strip():
                continue
            begun = _begun(path + token, labels)
            for name in begun:
                share = reached * math.exp(logprob) / len(begun)
                found[name] = found.get(name, 0.0) + share
        if taken is None:
            return found
        path += taken
        reached *= math.exp(place[taken])
        begun = _begun(path, labels)
        if not begun:
            return found
        if len(begun) == 1:
            # No token to come can lead to another class.
            found[begun[0]] = found.get(begun[0], 0.0) + reached
            return found
    for name in (name for name in labels if _plain(name) == _plain(path)):
        found[name] = found.get(name, 0.0) + reached
    return found


def _taken(answer: str, path: str, place: Alternatives) -> str | None:
    """Return the token that the answer goes on with: the longest that fits."""
    rest = answer[len(path) :]
    fitting = [token for token in place if token and rest.startswith(token)]
    if not fitting and not path:
        # Some tokenizers write the space before the first word into the token.
        fitting = [token for token in place if token.strip() and answer.startswith(token.strip())]
    return max(fitting, key=len, default=None)


def _begun(path: str, labels: Sequence[str]) -> list[str]:
    """Return the classes whose names begin with a path, or that the path names and goes on."""
    plain = path.strip().casefold()
    if not plain:
        return list(labels)
    begun = [name for name in labels if _plain(name).startswith(plain)]
    return begun or [name for name in labels if plain.startswith(_plain(name))]


def _plain(name: str) -> str:
    return name.strip().strip(".\"'").casefold()


def _places(logprobs: Mapping[str, Any] | None) -> list[Alternatives]:
    """Return the alternatives of a chat's answer, or of a completion's."""
    if not logprobs:
        return []
    if "content" in logprobs:
        return [
            {own["token"]: float(own["logprob"]) for own in [*part.get("top_logprobs", []), part]}
            for part in logprobs["content"] or []
        ]
    tokens = zip(logprobs["tokens"], logprobs["token_logprobs"], strict=True)
    tops = logprobs.get("top_logprobs") or [{}] * len(logprobs["tokens"])
    return [
        {**(top or {}), token: float(value)}
        for (token, value), top in zip(tokens, tops, strict=True)
    ]


def _check_possible(places: list[Alternatives], where: str) -> None:
    """Refuse probabilities that cannot be, as some providers return them."""
    for number, place in enumerate(places):
        total = sum(math.exp(value) for value in place.values())
        if not total <= 1.0 + IMPOSSIBLE:
            raise DistilleryError(
                f"{where}: the alternatives of token {number} have a probability of {total:.3f} "
                "together. The provider's log probabilities cannot be right: ask for labels alone, "
                "or take another."
            )
    if len(places) > 1 and len(places[0]) > 1 and all(place == places[0] for place in places):
        raise DistilleryError(
            f"{where}: the same alternatives stand at all {len(places)} tokens. The provider's log "
            "probabilities cannot be right: ask for labels alone, or take another."
        )


def content_key(given: Any, where: str) -> int:
    """Return the content key that a ``custom_id`` is.

    :raises DistilleryError: if it is none.
    """
    try:
        return int(str(given), 16)
    except ValueError as error:
        raise DistilleryError(
            f"{where}: custom_id {given!r:.40} is no content key. Make the batch with `distill "
            "teacher requests`, or give the text instead."
        ) from error


def failure(error: Any, response: Mapping[str, Any]) -> str:
    """Return why a line has no answer: the error's message, or the response's status."""
    if isinstance(error, Mapping) and error.get("message"):
        return str(error["message"])
    return json.dumps(error) if error else f"status {response.get('status_code')}"

"""A causal language model as the teacher against asking it by `generate`: rows per second, in turns.

    python benchmarks/scored_pass.py MODEL TEXTS.txt 'world;sports;business;technology'

MODEL is a folder in the hub's layout.  The plain loop asks for one text at a time, the batched one for 16, sorted by
length and padded; both generate four tokens.  Writes benchmarks/results/scored_pass.json.
"""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import typer
from harness import (
    RESULTS,
    Out,
    Repeats,
    facts,
    lines_of,
    rate,
    ratio,
    spread,
    summary,
    table,
    take_turns,
    write_results,
)

from pipeline_lib.base.devices import resolve_precision
from pipeline_lib.base.files import link_or_copy, write_json
from pipeline_lib.base.model_config import name_outputs
from pipeline_lib.base.processor import usable_cores
from pipeline_lib.models.scored import Prompt, ScoredTeacher
from pipeline_lib.models.teacher import PROMPT

NEW, BATCH, BATCH_TOKENS, EXAMPLES = 4, 16, 4096, 8
"""Tokens that `generate` adds, texts that it is given at a time, tokens of one of our batches, answered examples."""


def main(
    model: Path, texts: Path, labels: str, rows: int = 60, repeats: Repeats = 3, device: str = "cpu", out: Out = RESULTS
) -> None:
    """Time the three on the first ``rows`` lines, without examples and with the next eight; labels are split at ;."""
    lines, names = lines_of(texts), labels.split(";")
    sentences, shown = lines[:rows], lines[rows : rows + EXAMPLES]
    results: dict[str, Any] = {"facts": facts(("torch", "transformers"), usable_cores(), torch.get_num_threads())}
    results |= {"model": model.name, "rows": len(sentences), "labels": names, "prompts": []}
    cells = []
    for examples in (0, len(shown)):
        answered = [f"Text: {text}\nLabel: {names[n % len(names)]}\n\n" for n, text in enumerate(shown[:examples])]
        begin = f"Which of these labels fits best: {', '.join(names)}?\n\n" + "".join(answered)
        prompt = Prompt(begin, "Text: {text}\nLabel:", {label: label for label in names}, False, False)
        rates = timed(model, prompt, sentences, repeats, device)
        ratios = {other: ratio(rates["scored"], values) for other, values in rates.items() if other != "scored"}
        medians = {each: summary(values, 2) for each, values in rates.items()}
        results["prompts"].append({"examples": examples, "rates": medians, "ratios": ratios})
        cells += [[f"{each}, {examples} examples", spread(value, "{:,.2f}")] for each, value in medians.items()]
        cells += [[f"ours to {other}, {examples} examples", spread(value, "{:.2f}")] for other, value in ratios.items()]
    write_results("scored_pass", results, table([f"{model.name}, {rows} texts", "rows/s"], cells), out)


def timed(model: Path, prompt: Prompt, texts: list[str], repeats: int, device: str) -> dict[str, list[float]]:
    """Return the rates of all turns."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for path in model.iterdir():
            link_or_copy(path, folder / path.name)
        name_outputs(folder, [*prompt.answers])
        write_json(folder / PROMPT, asdict(prompt))
        teacher = ScoredTeacher.read(folder, device, resolve_precision("auto", torch.device(device)))
        contestants = {
            "scored": lambda: rate(lambda rows: teacher.predict(rows, 256, BATCH_TOKENS), texts),
            "generate, one by one": lambda: rate(lambda rows: generated(teacher, rows, 1), texts),
            f"generate, batches of {BATCH}": lambda: rate(lambda rows: generated(teacher, rows, BATCH), texts),
        }
        return take_turns(contestants, repeats)


def generated(teacher: ScoredTeacher, texts: list[str], size: int) -> list[str]:
    """Return what the model writes after each text's prompt."""
    tokenizer, answers = teacher.tokenizer, []
    tokenizer.padding_side, tokenizer.pad_token = "left", tokenizer.pad_token or tokenizer.eos_token
    prompts = sorted((teacher.prompt.filled(text) for text in texts), key=len)
    for start in range(0, len(prompts), size):
        inputs = tokenizer(prompts[start : start + size], return_tensors="pt", padding=True).to(teacher.device)
        with torch.inference_mode():
            ids = teacher.model.generate(
                **inputs, max_new_tokens=NEW, do_sample=False, pad_token_id=tokenizer.pad_token_id
            )
        answers += tokenizer.batch_decode(ids[:, inputs["input_ids"].shape[1] :])
    return answers


if __name__ == "__main__":
    typer.run(main)

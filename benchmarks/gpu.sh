#!/usr/bin/env bash
# What a card does: the pipeline itself, the teacher pass beside sentence-transformers, and training
# steps beside transformers' Trainer.
#
#     benchmarks/gpu.sh OUT                     # in a clone, with its environment active
#     WHEELS=DIR benchmarks/gpu.sh OUT          # without network: requirements from wheels alone
#
# Within 13 minutes, of which each part has its own share, OUT gets account.json (dvc repro: seconds, rows,
# tokens, memory of each stage), metrics.json, teacher_pass.{json,md}, training_rates.{json,md}, a log of
# each part, and summary.json, which says what each part took and whether it succeeded.  A part that fails,
# or whose time ends, does not keep the others from running.
#
# Also: LANGUAGE_MODEL (a causal one's folder: it is asked as a teacher) with LABELS, PROFILE (gpu), DEVICE (cuda), INPUT (a folder copied to data/input), MODEL (an encoder's folder, by
# default the pipeline's), TEXTS, GRID_TEXTS, SHARD_ROWS, STEPS, PAIRS, REPEATS: sizes of the benchmarks; SIZES
# (benchmarks/mtl.yaml): the parameters of what is trained; PATIENCE (1): how many times 13 minutes there are.
. "$(dirname "$0")/on_card.sh" "$@"

transfer_texts() { # TASK: a line per row of its transfer set: the task itself has too few to fill a card
    python - "$1" <<'PY'
import sys
from pathlib import Path
from pipeline_lib.shards.shard_sets import ShardSet

for text in ShardSet.open(Path("data/transfer") / sys.argv[1] / "full").to_table()["text"].to_pylist():
    print(" ".join(text.split()))
PY
}

cd "$work" || exit 1
workspace "${PROFILE:-gpu}" >"$out/workspace.log" 2>&1 || { cat "$out/workspace.log"; exit 1; }
part repro 480 python -m dvc repro
distill results --account --json >"$out/account.json" 2>>"$out/repro.log"
[ -f metrics.json ] && cp metrics.json "$out/"
model=${MODEL:-$(find data/raw/models -name config.json -printf '%h\n' 2>/dev/null | head -n 1)}
task=$(find data/tasks -mindepth 1 -maxdepth 1 -printf '%f\n' 2>/dev/null | sort | head -n 1)
transfer_texts "$task" >texts.txt 2>>"$out/repro.log"
part teacher_pass 150 python "$code/benchmarks/teacher_pass.py" --device "$device" --sentences texts.txt \
    --model "$model" --texts "${TEXTS:-30000}" --grid-texts "${GRID_TEXTS:-3000}" \
    --shard-rows "${SHARD_ROWS:-10000}" --repeats "${REPEATS:-2}" --out "$out"
part training_rates 120 python "$code/benchmarks/training_rates.py" --device "$device" --task "$task" \
    --model "$model" --pairs "${PAIRS:-12800}" --steps "${STEPS:-50}" --teacher-steps "${STEPS:-50}" \
    --repeats "${REPEATS:-2}" --params-file "${SIZES:-$code/benchmarks/mtl.yaml}" --out "$out"
[ -z "${LANGUAGE_MODEL:-}" ] || part scored_pass 60 python "$code/benchmarks/scored_pass.py" "$LANGUAGE_MODEL" texts.txt \
    "${LABELS:-positive;negative}" --rows 2000 --device "$device" --out "$out"
exit $failed

#!/usr/bin/env bash
# What the papers' tables need a card for: three runs of the pipeline, each in a folder of its own.
#
#     PARTS=mkd INPUT=GLUE benchmarks/gpu_papers.sh OUT        # in a clone, with its environment active
#     PARTS="dse pkd" INPUT=GLUE benchmarks/gpu_papers.sh OUT  # by default all three, which take more than one call
#     WHEELS=DIR ...                                           # without network: requirements from wheels alone
#
# - mkd, 10 minutes: three layers for seven tasks at once, at low rates (thesis, table 4.1): gpu_mkd.yaml.
# - dse, 6 minutes: DSE with and without its teacher on QNLI and MNLI, eight epochs (Barkan et al. 2019, table 1):
#   gpu_dse.yaml.
# - pkd, 7 minutes: three layers under a teacher of twelve, with patience and without (Wu et al. 2020, table 1): gpu_pkd.yaml.
#
# The times are limits, reckoned from the speeds in multitask.md and not yet tried on a card.  A call ends within 13
# minutes: a part gets what those before it have left.  OUT gets of each part its log, PART.account.json (seconds,
# rows, memory of each stage) and gpu_PART.{json,md}, the scores of the tasks that have finished; and summary.json,
# which says what each part took and whether it succeeded.
#
# INPUT is a folder with GLUE's, as in multitask.md, which is copied to data/input.  Also: DEVICE (cuda); PROFILE
# (benchmarks/gpu_PART.yaml): the parameters, where PART stands for the part's name; MODEL: a folder that takes the
# place of all models; POTSTILL_HOME: the store, whose `downloads` may hold the models' wheels; AT_ONCE (8): how many
# stages share the card; PATIENCE (1): how many times 13 minutes there are.
. "$(dirname "$0")/on_card.sh" "$@"
export POTSTILL_HOME=${POTSTILL_HOME:-$work/.potstill}
declare -A limits=([mkd]=600 [dse]=360 [pkd]=420)

parameters() { # PROFILE: its parameters on this device, and with MODEL, if there is one
    python - "$1" "$device" "${MODEL:-}" <<'PY'
import sys
from pathlib import Path

from pipeline_lib.params.profiles import read_values

profile, device, folder = sys.argv[1:]
print(f"extends: {Path(profile).resolve()}\ndevice: {device}")
if folder:
    print("models:")
    for name in read_values(Path(profile))["models"]:
        print(f"  {name}: {{kind: path, path: {Path(folder).resolve()}}}")
PY
}

stages() { # all up to the scores: those of one name at once, since one alone leaves most of a card idle
    local all name
    all=$(python -m dvc stage list --name-only) || return
    for name in $(sed 's/@.*//' <<<"$all" | uniq); do
        # xargs would end at DVC's exit status of a failure, 255, and leave out the other tasks.
        grep -E "^$name(@|\$)" <<<"$all" | xargs -P "${AT_ONCE:-8}" -I{} \
            sh -c 'python -m dvc --wait-for-lock repro --single-item "$1" || exit 1' sh {}
        [ "$name" != evaluate ] || break
    done
    python -m dvc repro --keep-going evaluate
}

measure() { # PROFILE: all of a part
    parameters "$1" >profile.yaml && workspace profile.yaml && stages
}

export device
export -f distill workspace parameters stages measure
profile=$(realpath -m "${PROFILE:-$code/benchmarks/gpu_PART.yaml}")
for name in ${PARTS:-mkd dse pkd}; do
    mkdir "$work/$name" && cd "$work/$name" || exit 1
    part "$name" "${limits[$name]:?"no such part"}" bash -c 'measure "$1"' measure "${profile//PART/$name}"
    distill results --account --json >"$out/$name.account.json" 2>>"$out/$name.log"
    python "$code/benchmarks/glue_table.py" --name "gpu_$name" --out "$out" >>"$out/$name.log" 2>&1 || failed=1
done
exit $failed

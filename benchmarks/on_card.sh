# What gpu.sh and gpu_papers.sh share.  It is sourced with the folder for the results, sets $code, $out, $device and
# $work, an empty folder, and installs the requirements where WHEELS names a folder of theirs.
set -u
code=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "${1:?"give the folder for the results: $0 OUT"}"
out=$(cd "$1" && pwd)
device=${DEVICE:-cuda}
for name in INPUT MODEL; do # Both are named from where the script was started.
    [ -z "${!name:-}" ] || export "$name=$(realpath "${!name}")"
done
export PYTHONUNBUFFERED=1 PYTHONPATH="$code${PYTHONPATH:+:$PYTHONPATH}"

if [ -n "${WHEELS:-}" ]; then
    python3 -m venv --system-site-packages "$out/venv"
    . "$out/venv/bin/activate"
    python -m pip install --quiet --no-index --no-deps "$WHEELS"/*.whl || exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
parts=()
failed=0

part() { # NAME SECONDS COMMAND...: run a part within its time, which ends with all parts' 13 minutes, and note how it ended
    local name=$1 limit=$(($2 * ${PATIENCE:-1})) left=$((750 * ${PATIENCE:-1} - SECONDS)) start=$SECONDS status
    shift 2
    # Half a minute is left for ending a part and for its results; `timeout 0` would be no limit.
    [ $limit -le $left ] || limit=$((left > 1 ? left : 1))
    timeout --signal=INT --kill-after=10 "$limit" "$@" >"$out/$name.log" 2>&1
    status=$?
    [ $status = 0 ] || failed=1
    parts+=("\"$name\": {\"status\": $status, \"seconds\": $((SECONDS - start)), \"limit\": $limit}")
    (IFS=,; echo "{${parts[*]}}") >"$out/summary.json"
    echo "$name: exit status $status after $((SECONDS - start)) s"
}

distill() { python -m pipeline_lib.cli "$@"; }

workspace() { # PROFILE: make this folder a workspace, with the files of INPUT
    distill init --no-scm && distill profile use "$1" || return
    [ -z "${INPUT:-}" ] || cp -r "$INPUT"/. data/input/
}

#!/usr/bin/env bash
# What the GPU bundle does on a GPU machine. Results go to $OUT (default: out beside this script).
# EMULATE=h200 runs everything on the emulated GPU instead; its figures are never GPU figures.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(mkdir -p "${OUT:-$here/out}" && cd "${OUT:-$here/out}" && pwd) || exit 1
emulate=${EMULATE:-}
# Winners of an earlier run would make this one skip its search.
export TTT_STORE=$out/store
unset LD_PRELOAD

usage() {
    cat <<TXT
usage: [OUT=FOLDER] [EMULATE=h200] ./run.sh COMMAND [ARGUMENTS]
  doctor   is everything there that tuning needs
  exec     the instruction tests on the driver                  -> exec.json
  tests    hazards and programs through the whole chain         -> tests.json
  suite    ttt tune over the development suite (--repeat N …)   -> suite.md, suite.json
  demo     the digits server with and without libttt.so         -> demo/report.json
  all      these five, then a table of exit codes
TXT
}

with_driver() { if [ -n "$emulate" ]; then TTT_EMU_PROFILE=$emulate LD_LIBRARY_PATH=$here/emulator "$@"; else "$@"; fi; }

run() {
    local command=$1; shift
    case $command in
        doctor) with_driver "$here/bin/ttt" doctor --json >"$out/doctor.json"; with_driver "$here/bin/ttt" doctor ;;
        exec) with_driver "$here/bin/exec_driver" --json "$out/exec.json" "$here/tests/exec" "$@" ;;
        tests) python3 "$here/tests/e2e/chain.py" --bin "$here/bin" --data "$here/tests/data" --out "$out/tests.json" ${emulate:+--emulate "$emulate"} "$@" ;;
        suite) python3 "$here/tools/bench/suite.py" --bin "$here/bin" --data "$here/tests/data/suite" --out "$out" ${emulate:+--emulate "$emulate"} "$@" ;;
        demo) python3 "$here/tools/demo/run.py" --build "$here" --out "$out/demo/report.json" --device "$([ -n "$emulate" ] && echo emulated || echo gpu)" "$@" ;;
        *) usage >&2; return 2 ;;
    esac
}

all() {
    local worst=0 rc table=""
    for command in doctor exec tests suite demo; do
        echo "== $command"
        local start=$SECONDS
        run "$command" 2>&1 | tee "$out/$command.log"
        rc=${PIPESTATUS[0]}
        [ "$rc" = 0 ] || worst=1
        table+=$(printf '%-8s exit code %-3s %5d s' "$command" "$rc" $((SECONDS - start)))$'\n'
    done
    printf '== results in %s\n%s' "$out" "$table" | tee "$out/table.txt"
    return $worst
}

case ${1:-help} in
    all) all ;;
    help|-h|--help) usage ;;
    *) run "$@" ;;
esac

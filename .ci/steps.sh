# Sourced by .ci/run and bench/nightly: runs steps, some side by side. It needs
# bash with errexit.

work=$(mktemp -d)
declare -A jobs=() # process group of each job that was not awaited
failed=()          # jobs that failed

# clean ends the jobs that still run, with all of their processes.
clean() {
  local name
  for name in "${!jobs[@]}"; do kill -TERM -- "-${jobs[$name]}" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM

# run_step NAME COMMAND… runs a step, prints its output whole when it ends, and
# adds a line to $work/table. It must not be part of a condition, as errexit
# does not hold there.
run_step() {
  local name=$1 began=$SECONDS status result=passed
  shift
  set +e
  (
    set -e
    "$@"
  ) >"$work/$name.log" 2>&1 </dev/null
  status=$?
  [ "$status" -eq 0 ] || result="FAILED with $status"
  {
    flock 9
    printf '\n== %s: %s, %d s (ended after %d s)\n' "$name" "$result" $((SECONDS - began)) "$SECONDS"
    cat "$work/$name.log"
    printf '%-10s %6d s  %s\n' "$name" $((SECONDS - began)) "$result" >>"$work/table"
  } 9>"$work/lock"
  rm "$work/$name.log"
  return "$status"
}

# background NAME COMMAND… starts a job that await waits for.
background() {
  local name=$1
  shift
  set -m # a process group for each job
  (
    set +m
    "$@"
  ) &
  jobs[$name]=$!
  set +m
}

# start NAME COMMAND… runs a step beside the others.
start() { background "$1" run_step "$@"; }

# await NAME… waits for jobs.
await() {
  local name
  for name in "$@"; do
    wait "${jobs[$name]}" || failed+=("$name")
    unset "jobs[$name]"
  done
}

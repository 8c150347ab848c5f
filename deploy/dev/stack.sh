# shellcheck shell=bash
# Functions shared by the scripts in this folder: steps, errors and builds. Programs that run until
# a script ends are started by bench/system/stack. This file is sourced, never executed.

set -euo pipefail

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd -- "$root"

dev=$root/.dev   # all generated files; `make clean-all` removes it
bin=$dev/bin     # programs
state=${STACK_STATE:-$dev} # logs; with_services gives them a folder of their own
arguments=("$@")
modules=(bench core edge shared) # the slowest first

PATH=$PATH:/usr/sbin # where Debian installs servers; not in every user's PATH

# Tools that are built from source, with pinned versions.
declare -A tools=(
  [golangci-lint]=github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.13.1
  [govulncheck]=golang.org/x/vuln/cmd/govulncheck@v1.9.0
  [benchstat]=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
  [kustomize]=sigs.k8s.io/kustomize/kustomize/v5@v5.8.1
  [minio]=github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
  [mc]=github.com/minio/mc@v0.0.0-20250313080218-cf909e1063a9
)

# VCS stamping fails where git distrusts the owner of the checkout. build_programs sets the
# version itself.
export GOFLAGS="${GOFLAGS:+$GOFLAGS }-buildvcs=false"

# ---- Steps ------------------------------------------------------------------

# die MESSAGE [LOG] prints the last lines of the log, then the message, and ends the script.
die() {
  [[ -z ${step:-} ]] || echo failed
  if [[ -n ${2:-} ]]; then
    tail -n 20 -- "$2" | sed 's/^/    /' >&2
    set -- "$1 (the end of the log is above; all of it: $2)"
  fi
  printf 'make %s: %s\n' "${0##*/}" "$1" >&2
  exit 1
}

# begin NAME announces a step; finish prints how long it took.
begin() {
  step=$1
  step_began=${EPOCHREALTIME//[.,]/}
  printf '==> %s … ' "$step"
}

finish() {
  local tenths=$(((${EPOCHREALTIME//[.,]/} - step_began) / 100000))
  printf '%d.%d s\n' $((tenths / 10)) $((tenths % 10))
  step=
}

# run_step NAME COMMAND… runs a command with its output redirected to a log.
run_step() {
  local log=$state/logs/step-${1//[^[:alnum:]]/-}.log status=0
  mkdir -p "$state/logs"
  begin "$1"
  shift
  run "$@" >"$log" 2>&1 || status=$?
  ((status == 0)) || die "$step failed with exit status $status" "$log"
  finish
}

# run COMMAND… runs a command to its end. If the script is killed, the kernel ends the command.
run() {
  setpriv --pdeathsig TERM "$@" </dev/null
}

# own_dev creates .dev. It has a single owner, since another user could not replace its files.
own_dev() {
  mkdir -p "$bin" "$dev/logs" || die "cannot make $dev"
  [[ -O $dev ]] || die "$dev belongs to $(stat -c %U "$dev"): run this as that user, or remove it"
}

# ---- Builds -----------------------------------------------------------------

# build_programs builds core and edge, and exports their paths for tests. REVISION, the name
# of a release or a commit, is linked in.
build_programs() {
  local program revision
  revision=${REVISION:-$(git describe --always --dirty 2>/dev/null || true)}
  for program in core edge; do
    run_step "building $program" go build -ldflags="-X github.com/veneer-skins/veneer/shared/version.linked=$revision" -o "$bin/$program" "./$program/cmd/$program"
  done
  export TEST_CORE_BIN=$bin/core TEST_EDGE_BIN=$bin/edge
}

# build_tool NAME builds a pinned tool once and sets tool to its path. A link has the name without
# the version. In CI MinIO and its client are built without optimisations, which takes two thirds
# of the time; the tests do not run long enough to make up for the rest.
build_tool() {
  local flags=(-ldflags="-s -w -X github.com/minio/$1/cmd.ReleaseTag=${tools[$1]#*@}")
  [[ -z ${CI:-} || ! $1 =~ ^(minio|mc)$ ]] || flags+=(-gcflags='all=-N -l')
  tool=$bin/$1@${tools[$1]#*@}
  if [[ ! -x $tool ]]; then
    run_step "building $1, once" \
      env GOBIN="$bin/new.$$" GOWORK=off GOFLAGS=-mod=mod go install "${flags[@]}" "${tools[$1]}"
    mv "$bin/new.$$/$1" "$tool"
    rmdir "$bin/new.$$"
  fi
  ln -sfn "${tool##*/}" "$bin/$1"
}

# ---- Programs ---------------------------------------------------------------

# with_services [-memory] [SETTING=VALUE…] starts the script again, with a PostgreSQL with these
# settings and a MinIO, unless it has them. They are stopped when it ends.
# shellcheck disable=SC2120
with_services() {
  [[ -z ${STACK_STATE:-} ]] || return 0
  run_step "building stack" go build -o "$bin/stack" ./bench/system/cmd/stack
  exec "$bin/stack" services "$@" -- "$root/deploy/dev/${0##*/}" "${arguments[@]}"
}

# quarter_of_memory prints the setting that gives PostgreSQL a quarter of the memory for its
# buffers, as docs/operations/postgresql.md recommends. Unused buffers take no memory.
quarter_of_memory() {
  awk '/^MemTotal:/ {print "shared_buffers=" int($2 / 4096) "MB"}' /proc/meminfo
}

# packages ARGUMENT… sets packages to all of the workspace, unless an argument names some.
packages() {
  packages=()
  [[ " $*" != *' ./'* ]] || return 0
  packages=("${modules[@]/#/./}")
  packages=("${packages[@]/%//...}")
}

# benchmarked prints the folders in core, edge and shared that have Go benchmarks, sorted.
benchmarked() {
  grep -rl --include='*_test.go' '^func Benchmark' core edge shared | sed 's,^\(.*\)/.*,./\1,' | sort -u
}

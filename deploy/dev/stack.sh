# shellcheck shell=bash
# Functions shared by the scripts in this folder: steps, errors, and background programs.
# It is sourced, never executed.

set -euo pipefail

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd -- "$root"

dev=$root/.dev   # all generated files; `make clean-all` removes it
bin=$dev/bin     # programs
state=$dev       # data, logs and process IDs of programs that this script runs
modules=(bench core edge shared) # the slowest first

PATH=$PATH:/usr/sbin # where Debian installs servers; not in every user's PATH

# Tools that are built from source, with pinned versions.
# shellcheck disable=SC2034 # used by lint and tools
golangci_lint=github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.13.1
# shellcheck disable=SC2034 # used by bench-compare
benchstat=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
# shellcheck disable=SC2034 # used by lint and tools
kustomize=sigs.k8s.io/kustomize/kustomize/v5@v5.8.1
minio=github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
mc=github.com/minio/mc@v0.0.0-20250313080218-cf909e1063a9

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

# run COMMAND… runs a command to its end. It runs in the background, because bash handles
# signals at once while it waits, but only after the end of a foreground command.
run() {
  local status=0
  spawn TERM "$@"
  current=$spawned
  wait "$current" || status=$?
  current=
  return "$status"
}

# spawn SIGNAL COMMAND… starts a command in a session of its own, so that Ctrl-C reaches
# only the script, which then stops everything in order. If the script is killed, the
# kernel sends SIGNAL to the command. Descriptors 8 and 9 are locks of the script, which a
# child must not hold.
spawn() {
  local signal=$1
  shift
  setsid setpriv --pdeathsig "$signal" "$@" </dev/null 8>&- 9>&- &
  spawned=$!
}

# own_dev creates .dev. It has a single owner, since another user could not replace its
# files.
own_dev() {
  mkdir -p "$bin" "$dev/logs" || die "cannot make $dev"
  [[ -O $dev ]] || die "$dev belongs to $(stat -c %U "$dev"): run this as that user, or remove it"
}

# ---- Background programs ----------------------------------------------------

declare -A pids=() # process IDs by name
started=()         # names in the order they were started

# start NAME COMMAND… starts a program that runs until stop_all.
start() {
  local name=$1
  shift
  mkdir -p "$state/logs" "$state/pids"
  spawn "$(stop_signal "$name")" "$@" >"$state/logs/$name.log" 2>&1
  echo "$spawned" >"$state/pids/$name"
  pids[$name]=$spawned
  started+=("$name")
}

# await NAME COMMAND… waits until the command succeeds, which means that the program is
# ready.
await() {
  local name=$1 log=$state/logs/$1.log deadline=$((SECONDS + 60))
  shift
  until "$@" >/dev/null 2>&1; do
    running "${pids[$name]}" || die "$name ended while it started" "$log"
    ((SECONDS < deadline)) || die "$name was not ready within 60 s" "$log"
    sleep 0.1
  done
}

# answers URL sends a request to a program on this machine, bypassing any HTTP proxy.
answers() {
  curl --fail --silent --noproxy '*' --max-time 2 --output /dev/null "$1"
}

# forbids URL reports whether a MinIO is initialised: it then answers an unsigned request
# with 403, and with 503 before that, while its /minio/health/ready already answers 200.
forbids() {
  [[ $(curl --silent --noproxy '*' --max-time 2 --output /dev/null --write-out '%{http_code}' "$1") == 403 ]]
}

# stop_signal NAME prints the signal to stop a program: on SIGTERM, PostgreSQL would wait for
# its clients.
stop_signal() {
  if [[ $1 == postgres ]]; then echo INT; else echo TERM; fi
}

# running PID reports whether a process exists and is no zombie.
running() {
  local stat
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null && [[ $stat != *') Z '* ]]
}

# stop NAME PID sends a program and its children their stop signal, and SIGKILL after 30 s.
stop() {
  local deadline=$((SECONDS + 30)) signal
  signal=$(stop_signal "$1")
  # A process that was just spawned may not have its session yet.
  kill -s "$signal" -- "-$2" || kill -s "$signal" "$2" || true
  while running "$2"; do
    ((SECONDS < deadline)) || kill -s KILL -- "-$2"
    sleep 0.05
  done
  rm -f "$state/pids/$1"
}

# stop_all stops the current step and every program, the last started first. It ignores
# errors, such as a closed terminal.
stop_all() {
  set +e
  trap '' HUP INT TERM
  [[ -z ${current:-} ]] || stop step "$current"
  local i name
  for ((i = ${#started[@]} - 1; i >= 0; i--)); do
    name=${started[i]}
    stop "$name" "${pids[$name]}"
  done
} 2>/dev/null

# stop_leftovers stops programs that a killed script left running. As process IDs are
# reused, it checks that the command line contains .dev.
stop_leftovers() {
  local name pid
  for name in edge core minio postgres; do
    [[ -s $state/pids/$name ]] || continue
    pid=$(<"$state/pids/$name")
    if tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF "$dev/"; then
      stop "$name" "$pid" 2>/dev/null
    fi
    rm -f "$state/pids/$name"
  done
}

# stop_at_end stops everything when the script ends for any reason.
stop_at_end() {
  trap stop_all EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# ---- Ports and secrets ------------------------------------------------------

# listening PORT reports whether a program listens there.
listening() {
  (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# holder PORT prints which program listens there, if ss exists and has the permission.
holder() {
  { ss -Hltnp "sport = :$1" 2>/dev/null || true; } | sed -n 's/.*(("\([^"]*\)",pid=\([0-9]*\).*/ by \1, process \2/p;q'
}

# free_port NAME prints a free port below the ephemeral range of the kernel. It depends on
# the name and the checkout only, unless that port is taken.
free_port() {
  local port
  port=$(cksum <<<"$root $1")
  port=$((20000 + ${port%% *} % 12000))
  while listening "$port"; do port=$((20000 + RANDOM % 12000)); done
  echo "$port"
}

# hex BYTES prints that many random bytes.
hex() {
  od -An -N "$1" -tx1 -v /dev/urandom | tr -d ' \n'
}

# token_key prints a random signing key for bearer tokens.
token_key() {
  printf 'key1:%s' "$(head -c 32 /dev/urandom | base64 -w 0)"
}

# secret NAME COMMAND… stores the command's output as a secret, unless that exists.
secret() {
  local file=$state/secrets/$1
  shift
  [[ ! -s $file ]] || return 0
  (umask 077 && mkdir -p "$state/secrets" && "$@" >"$file.new" && mv "$file.new" "$file")
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

# build_tool PACKAGE@VERSION [FLAG…] builds a pinned tool once, with flags of go
# install, and sets tool to its path.
build_tool() {
  local name=${1%@*}
  name=${name%/v[0-9]} # the major version in a module path is not the program's name
  name=${name##*/}
  tool=$bin/$name@${1#*@}
  [[ ! -x $tool ]] || return 0
  run_step "building $name, once" \
    env GOBIN="$bin/new.$$" GOWORK=off GOFLAGS=-mod=mod go install "${@:2}" "$1"
  mv "$bin/new.$$/$name" "$tool"
  rmdir "$bin/new.$$"
}

# ---- PostgreSQL -------------------------------------------------------------

# start_postgres PORT DATABASE [SETTING=VALUE…] starts this checkout's cluster, which it
# creates if necessary, and sets database_url.
start_postgres() {
  local port=$1 database=$2 home=$state/postgres data=$state/postgres/data programs version setting settings=()
  shift 2
  secret database_password hex 24

  programs=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
  if [[ -e $data/PG_VERSION ]]; then
    version=$(<"$data/PG_VERSION")
    programs=/usr/lib/postgresql/$version/bin
    [[ -x $programs/postgres ]] || die "$data was made by PostgreSQL $version, which is not installed: install postgresql-$version, or start afresh after make reset"
  fi

  mkdir -p "$home"
  become_postgres "$home"
  if [[ ! -e $data ]]; then
    secret postgres_password hex 24
    make_cluster "$programs" "$home"
  elif [[ ! -s $state/secrets/postgres_password ]]; then
    separate_superuser "$programs" "$home"
  fi

  # No Unix socket: the path of the checkout may exceed the maximum length of its name.
  for setting in listen_addresses=127.0.0.1 "port=$port" unix_socket_directories= "$@"; do
    settings+=(-c "$setting")
  done
  begin "starting PostgreSQL"
  start postgres "${as_postgres[@]}" "$programs/postgres" -D "$data" "${settings[@]}"
  await postgres "$programs/pg_isready" -q -h 127.0.0.1 -p "$port"
  finish
  database_url="postgres://veneer:$(<"$state/secrets/database_password")@127.0.0.1:$port/$database?sslmode=disable"
}

# become_postgres HOME sets as_postgres, the prefix of commands that run PostgreSQL's server.
# The server refuses to run as root, so root runs it as the system user postgres, which
# becomes the owner of HOME.
become_postgres() {
  as_postgres=(env -C / LC_ALL=C.UTF-8)
  ((EUID == 0)) || return 0

  local user=postgres
  id -u "$user" >/dev/null 2>&1 || user=nobody
  chown "$user:$(id -g "$user")" "$1"
  chmod 700 "$1"
  # Changing the user resets the parent death signal that spawn set, so it is set again.
  as_postgres+=(setpriv --pdeathsig INT --reuid "$user" --regid "$(id -g "$user")" --clear-groups)
  if ! "${as_postgres[@]}" env -C "$1" true 2>/dev/null; then
    # A parent folder is not accessible to that user, such as root's home. The server then
    # gets the least capability that helps, or the next one in a container without that.
    local power
    for power in dac_read_search dac_override; do
      if "${as_postgres[@]}" --inh-caps "+$power" --ambient-caps "+$power" env -C "$1" true 2>/dev/null; then
        as_postgres+=(--inh-caps "+$power" --ambient-caps "+$power")
        return
      fi
    done
    die "PostgreSQL must run as the user $user, which cannot access $1: move the checkout to an accessible folder"
  fi
}

# separate_superuser PROGRAMS HOME sets a password for the superuser of a cluster. Older
# clusters use the application's password for it.
separate_superuser() {
  hex 24 | install -m 600 /dev/stdin "$2/superuser"
  chown --reference="$2" "$2/superuser"
  # shellcheck disable=SC2016 # it is the inner shell that expands
  run_step "giving PostgreSQL's superuser its own password" "${as_postgres[@]}" bash -euo pipefail -c '
    printf "%s\n" "ALTER ROLE postgres PASSWORD '\''$(<"$2/superuser")'\''" |
      "$1/postgres" --single -c exit_on_error=on -D "$2/data" postgres
  ' separate_superuser "$1" "$2"
  secret postgres_password cat "$2/superuser"
  rm "$2/superuser"
}

# make_cluster PROGRAMS HOME creates a cluster with the role "veneer", of which it checks the
# password by POSTGRES_AUTH, and a database for each object store, since rows and their objects
# belong together. The folder is renamed when the cluster is complete, so that an interruption
# leaves no partial cluster.
make_cluster() {
  rm -rf "$2/new"
  install -m 600 "$state/secrets/database_password" "$2/password"
  install -m 600 "$state/secrets/postgres_password" "$2/superuser"
  chown --reference="$2" "$2/password" "$2/superuser"
  # shellcheck disable=SC2016 # it is the inner shell that expands
  run_step "making a PostgreSQL cluster" "${as_postgres[@]}" bash -euo pipefail -c '
    "$1/initdb" -D "$2/new" --username=postgres --pwfile="$2/superuser" \
      --auth="$3" --encoding=UTF8 --locale=C.UTF-8
    printf "%s\n" \
      "CREATE ROLE veneer LOGIN CREATEDB PASSWORD '\''$(<"$2/password")'\''" \
      "CREATE DATABASE veneer_file OWNER veneer" \
      "CREATE DATABASE veneer_minio OWNER veneer" |
      "$1/postgres" --single -c exit_on_error=on -D "$2/new" postgres
  ' make_cluster "$1" "$2" "${POSTGRES_AUTH:-scram-sha-256}"
  rm "$2/password" "$2/superuser"
  mv "$2/new" "$2/data"
}

# ---- MinIO ------------------------------------------------------------------

# build_of_minio PACKAGE builds MinIO or its client and sets tool to the path. In CI they are
# built without optimisations, which takes two thirds of the time; the tests do not run long
# enough to make up for the rest.
build_of_minio() {
  local flags=()
  [[ -z ${CI:-} ]] || flags=(-gcflags='all=-N -l')
  build_tool "$1" "${flags[@]}"
}

# start_minio PORT starts this checkout's MinIO.
start_minio() {
  secret s3_access_key hex 10
  secret s3_secret_key hex 20
  build_of_minio "$minio"
  mkdir -p "$state/minio/data"
  begin "starting MinIO"
  start minio env HOME="$state/minio" MINIO_BROWSER=off MINIO_UPDATE=off \
    MINIO_ROOT_USER_FILE="$state/secrets/s3_access_key" \
    MINIO_ROOT_PASSWORD_FILE="$state/secrets/s3_secret_key" \
    "$tool" server --address "127.0.0.1:$1" "$state/minio/data"
  await minio forbids "http://127.0.0.1:$1"
  finish
}

# prepare_minio PORT creates the bucket, a user for core, and a read-only user for the edges.
prepare_minio() {
  local role
  for role in writer reader; do
    secret "s3_${role}_access_key" hex 10
    secret "s3_${role}_secret_key" hex 20
  done
  build_of_minio "$mc"
  run_step "preparing MinIO" deploy/minio/prepare "http://127.0.0.1:$1" "$state/secrets" "$tool"
}

# ---- Environment of tests and benchmarks ------------------------------------

# start_services [SETTING=VALUE…] starts a PostgreSQL with these settings and a MinIO, which are
# stopped when the script ends, and exports their addresses for tests. Several scripts may do
# so at once. Leftovers of killed scripts are removed first.
# shellcheck disable=SC2120
start_services() {
  local old
  mkdir -p "$dev/test"
  exec 8>"$dev/test.lock"
  flock 8
  for old in "$dev"/test/*/; do
    if [[ -d $old ]] && flock -n "$old/lock" true; then
      state=${old%/} stop_leftovers
      remove_data "${old%/}"
      rm -rf "$old"
    fi
  done
  state=$(mktemp -d "$dev/test/XXXXXX")
  chmod 755 "$state"
  exec 9>"$state/lock"
  flock 9
  stop_at_end
  trap stop_services EXIT

  # Secrets and, if possible, ports are the same for every run: go test's cache of results
  # depends on the environment variables that a test reads.
  (umask 077 && mkdir -p "$dev/test-secrets")
  ln -s "$dev/test-secrets" "$state/secrets"
  [[ -z ${IN_MEMORY:-} ]] || data_in_memory
  # The data are removed with the script, so nothing needs to be synced to disk.
  # Tests make many connections, so their passwords are checked without the 4,096 rounds of SCRAM.
  POSTGRES_AUTH=md5 start_postgres "$(free_port postgres)" veneer_minio fsync=off synchronous_commit=off full_page_writes=off max_connections=300 "$@"
  local port
  port=$(free_port minio)
  start_minio "$port"
  exec 8>&- # the ports are in use now, so the next script will choose others
  export TEST_MINIO_BIN=$tool

  export TEST_DATABASE_URL=$database_url
  export TEST_S3_ENDPOINT=127.0.0.1:$port
  TEST_S3_ACCESS_KEY=$(<"$state/secrets/s3_access_key")
  TEST_S3_SECRET_KEY=$(<"$state/secrets/s3_secret_key")
  export TEST_S3_ACCESS_KEY TEST_S3_SECRET_KEY
}

# quarter_of_memory prints the setting that gives PostgreSQL a quarter of the memory for its
# buffers, as docs/operations/postgresql.md
# recommends. Unused buffers take no memory.
quarter_of_memory() {
  awk '/^MemTotal:/ {print "shared_buffers=" int($2 / 4096) "MB"}' /proc/meminfo
}

# data_in_memory puts the database of start_services and the texture stores of tests into a tmpfs
# with 4 GiB to spare, if there is one: tests make some thousand databases, and each file is
# synced.
data_in_memory() {
  local free memory
  free=$(df --output=avail --type=tmpfs /dev/shm 2>/dev/null | tail -n 1)
  ((${free:-0} >= 4 << 20)) && memory=$(mktemp -d /dev/shm/veneer-test.XXXXXX 2>/dev/null) || return 0
  chmod 711 "$memory"
  mkdir "$memory"/{postgres,textures}
  ln -s "$memory" "$state/memory"
  ln -s memory/postgres "$state"
  export TEST_TEXTURES=$memory/textures
}

# remove_data STATE removes the data of start_services.
remove_data() {
  [[ ! -L $1/memory ]] || rm -rf "$(readlink "$1/memory")"
  rm -rf "$1"/{memory,postgres,minio}
}

# stop_services stops the programs of start_services. After a failure the logs stay until the next
# run.
stop_services() {
  local status=$?
  stop_all
  remove_data "$state"
  ((status != 0)) || rm -rf "$state"
}

# packages ARGUMENT… sets packages to all of the workspace, unless an argument names
# packages.
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

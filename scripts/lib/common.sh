# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2034	# scripts that source this use what it sets
# Sourced by the other scripts: names of things, messages, the clock.

set -euo pipefail

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}
JOBS=${JOBS:-$(nproc)}
BUILD=$TOP/build
LINUX=$BUILD/linux
# For CMake, so that it is fast without a cache: what a backtrace needs, and not the
# types, which take a third of the compiler's time; and a cache that looks at the files
# that were included, and does not run the preprocessor.
FAST_CMAKE=(-DCMAKE_BUILD_TYPE=RelWithDebInfo
	"-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG"
	"-DCMAKE_CXX_COMPILER_LAUNCHER=env;CCACHE_DEPEND=1;ccache")
# programs of the suite amdgpu that need no patch: what is built for the base
DRIVER_TESTS="amdgpu_bad_job amdgpu_fault amdgpu_irq amdgpu_memory amdgpu_svm svm_xnack"

die()
{
	echo "sluice: $*" >&2
	exit 1
}

# The comment at the head of a script, which says how it is called.
head_of() { sed -n '/^# SPDX/d; /^#!/d; /^#/!Q; s/^# \{0,1\}//p' "$1"; }

if [ "${1:-}" = --help ]; then
	head_of "$0"
	exit
fi

# A step the user waits for: seconds since the start of this script.
say()
{
	printf '[%4ds] %s\n' "$SECONDS" "$*" >&2
}

# The value of KEY in the KERNEL_BASE file.
base()
{
	sed -n "s/^$1=//p" "$TOP/KERNEL_BASE"
}

locks=()	# what this script holds
# hold shared|exclusive NAME [wait]: keep the lock build/NAME until this script ends. If
# another script holds it, and one of the two wants it for itself, this one ends at once, or
# waits. What this script starts has the lock, too, as it is: HELD names the locks. So the
# lab, in a run of suites, may check the series. The file has a line for each script that
# has shared the lock, until one has it for itself. These are 40 bytes a run, and it would
# take another lock to remove them.
hold()
{
	local file=$BUILD/$2 fd
	[[ " ${HELD:-} " != *" $file "* ]] || return 0
	mkdir -p "$BUILD"
	exec {fd}>>"$file"
	if ! flock --nonblock "--$1" $fd; then
		[ "${3:-}" = wait ] || die "$(this_script) cannot run beside $(holders "$file")"
		say "waiting for $(holders "$file")"
		flock "--$1" $fd
	fi
	[ "$1" = shared ] || : >"$file"
	echo "$$ $(this_script)" >>"$file"
	locks+=("$fd")
	export HELD="${HELD:-} $file"
}

this_script() { echo "scripts/${0##*scripts/}"; }

# holders FILE: the scripts that hold that lock. Another process may have the number of one
# that has ended. What such a script has left behind may hold the lock, too.
holders()
{
	local pid script found=
	while read -r pid script; do
		! grep -qaF -- "$script" "/proc/$pid/cmdline" 2>/dev/null ||
			found+="${found:+,}$script (process $pid)"
	done <"$1"
	echo "${found:-what holds ${1#"$TOP"/}: fuser ${1#"$TOP"/} tells the process}"
}

# over_usr DIR COMMAND ...: run it with packages that scripts/fetch/debs has unpacked in DIR
# laid over /usr. No other process sees them.
over_usr()
{
	dir=$1 unshare --mount bash -c '
		mount -t overlay -o "ro,lowerdir=$dir/usr:/usr" overlay /usr || exit 4
		shift
		exec "$@"' over_usr "$@"
}

# Whether a user looks on, at one thing that runs at a time.
on_terminal() { [ -t 2 ] && [ -z "${side_by_side:-}" ]; }

# While it runs: on a terminal the last line of a log and the seconds since then, elsewhere
# a line each minute. Runs beside a command: followed().
follow()
{
	local what=$1 log=$2 start=$SECONDS every=60 sleeper= fd
	# what sleeps here may outlive the script, and must not keep its locks
	for fd in "${locks[@]}"; do
		exec {fd}>&-
	done
	! on_terminal || every=1
	trap 'kill $sleeper 2>/dev/null; exit' TERM
	while :; do
		sleep $every &
		sleeper=$!
		wait $sleeper || :
		if on_terminal; then
			printf '\r\033[K  %4ds  %.90s' $((SECONDS - start)) \
				"$(last_line "$log")" >&2
		else
			say "$what, for $((SECONDS - start)) s: $(last_line "$log")"
		fi
	done
}

last_line()
{
	tail -n 1 "$1" 2>/dev/null | tr -cd '[:print:]' | cut -c -90
}

# followed WHAT LOG COMMAND ...: run a command that writes LOG, and follow that.
followed()
{
	local what=$1 log=$2 follower rc=0
	shift 2
	follow "$what" "$log" &
	follower=$!
	"$@" || rc=$?
	kill "$follower" 2>/dev/null || :
	wait "$follower" 2>/dev/null || :
	! on_terminal || printf '\r\033[K' >&2
	return $rc
}

# Run a long command with its output in a log, and say how far it is. The log's tail is
# printed if the command fails.
quietly()
{
	local what=$1 log=$2 rc=0
	shift 2
	mkdir -p "$(dirname "$log")"
	say "$what"
	# in the background a function ends where one of its commands fails
	"$@" >"$log" 2>&1 </dev/null &
	followed "$what" "$log" wait $! || rc=$?
	if [ $rc -ne 0 ]; then
		tail -n 40 "$log" >&2
		die "$what: exit status $rc; the whole log is ${log#"$TOP"/}"
	fi
}

# The config fragments that make a kernel flavour. A flavour "X-stock" is X
# without the series and what only the series configures.
fragments()
{
	local common="base.config iommu.config kunit.config lab.config"
	local ours=sluice.config
	[[ $1 != *-stock ]] || ours=
	case ${1%-stock} in
	test)	echo "$common $ours" ;;
	debug)	echo "$common $ours debug.config" ;;
	check)	echo "$common $ours check.config" ;;
	*)	die "unknown kernel flavour '$1' (test, debug)" ;;
	esac
}

# Object targets of the C files on standard input. amdkfd has no Makefile of its
# own: its objects are built by amdgpu's.
objects()
{
	sed 's|\.c$|.o|; s|drm/amd/amdkfd/|drm/amd/amdgpu/../amdkfd/|'
}

# seen_as PLACE DIR COMMAND ...: run a command that finds the directory DIR at PLACE, too.
seen_as() { unshare --mount bash -ec 'mount --bind "$2" "$1"; shift 2; exec "$@"' bash "$@"; }

# see_as_linux TREE COMMAND ...: run a command that finds TREE where build/linux is. The
# compiler cache looks at paths: this way it serves all trees.
see_as_linux() { seen_as "$LINUX" "$@"; }

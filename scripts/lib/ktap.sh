# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2154	# a script that sources this has set work
# Results of shell scripts as KTAP: sourced by scripts that are tests themselves, whose
# $work is a directory for what a test writes, and by test/run, for what it boots.

n=0 failed=0

# ok NAME COMMAND ...: a test. What it prints is shown if it fails.
ok()
{
	local name=$1
	shift
	n=$((n + 1))
	if "$@" >"$work/log" 2>&1; then
		echo "ok $n $name"
	else
		sed 's/^/# /' "$work/log"
		echo "not ok $n $name"
		failed=$((failed + 1))
	fi
}

# What cannot be tested here.
skip()
{
	n=$((n + 1))
	echo "ok $n $1 # SKIP $2"
}

fails() { ! "$@"; }

# boot_result STATUS LOG: the boot of a guest, or a program of the host, as a test
boot_result()
{
	local what
	case $1 in
	98) what="the guest died or hung" ;;
	97) what="the emulator complains" ;;
	99) what="the kernel log holds a warning" ;;
	*)  what="the command's exit status is $1" ;;
	esac
	echo "KTAP version 1"
	echo "1..1"
	[ "$1" != 0 ] || { echo "ok 1 boot"; return; }
	{ echo "$what"; reason_in "$2"; } | sed 's/^/# /'
	echo "not ok 1 boot"
}

# What boot/splat shows of the kernel's log, or else how LOG ends.
reason_in() { grep -a -m 1 -A 15 '^kernel log: ' "$1" || tail -n 8 "$1"; }

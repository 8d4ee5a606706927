# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2154	# who sources this has set work
# Sourced by scripts that are tests themselves: results as KTAP. $work is a directory for
# what a test writes.

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

# SPDX-License-Identifier: GPL-2.0
# Sourced by scripts/test/lab: what runs tests notices those that leave no results, and
# emulators that do not end well; and what must not run beside each other does not.

# shellcheck disable=SC2034,SC2154	# scripts/test/lab sets and uses them

# started_counts WANT FILE ...: report on a suite that test/run has started and that has left
# these files of one test each
started_counts()
{
	local want=$1 file
	shift
	rm -rf "$work/results"
	mkdir -p "$work/results"
	echo suite >"$work/results/started"
	for file; do
		mkdir -p "$work/results/suite"
		printf '1..1\nok 1 a\n' >"$work/results/suite/$file"
	done
	tell
	cat "$work/told"
	[ "$(tail -n 1 "$work/told")" = "$want" ]
}

missing_gtest()
{
	! OUT=$work/guest "$TOP/scripts/guest/gtest" "$work/no-tests" &&
		report "0 passed, 1 failed, 0 skipped" <"$work/guest/ktap/no-tests"
}

# Its exit status is good, and its second test has no result.
script_dies()
{
	cat >"$work/script" <<-'END'
		import os
		from lab import Ktap

		def one(): pass
		def two(): os._exit(0)

		results = Ktap()
		results.run(one)
		results.run(two)
		results.keep("script")
	END
	OUT=$work/guest python3 "$work/script" &&
		report "1 passed, 1 failed, 0 skipped" <"$work/guest/ktap/script"
}

# in_guest PART SCRIPT ...: a script of scripts/guest where the others do nothing, and PART
# fails
in_guest()
{
	local dir=$work/parts part
	mkdir -p "$dir/scripts/guest" "$work/guest/ktap"
	for part in c-api python examples gtest ktap rdma streams tools; do
		ln -sf /bin/true "$dir/scripts/guest/$part"
	done
	[ -z "$1" ] || ln -sf /bin/false "$dir/scripts/guest/$1"
	(cd "$dir" && OUT=$work/guest GPUS=0 "$TOP/scripts/guest/$2" "${@:3}")
}

guest_part_fails() { in_guest '' "${@:2}" && ! in_guest "$@"; }

library_notices()
{
	local part
	for part in c-api python examples gtest streams tools; do
		guest_part_fails $part library || return
	done
	guest_part_fails rdma library rdma
}

# ctest_counts WANT COMMAND PROPERTY: host-ctest on one test
ctest_counts()
{
	mkdir -p "$work/ctest"
	printf 'add_test(a %s)\nset_tests_properties(a PROPERTIES %s)\n' "$2" "$3" \
		>"$work/ctest/CTestTestfile.cmake"
	"$TOP/scripts/test/host-ctest" "$work/ctest" | report "$1"
}

# A ctest that says of all tests that they passed.
ctest_fails()
{
	mkdir -p "$work/ctest" "$work/bin"
	cat >"$work/bin/ctest" <<-'END'
		#!/bin/bash
		echo '<testsuite><testcase name="a" status="run"/></testsuite>' >"$4"
		exit 8
	END
	chmod +x "$work/bin/ctest"
	PATH=$work/bin:$PATH "$TOP/scripts/test/host-ctest" "$work/ctest" |
		report "1 passed, 1 failed, 0 skipped"
}

# twice COMMAND ...: run it twice at the same time. Both must pass.
twice()
{
	local first rc=0
	"$@" &
	first=$!
	"$@" || rc=1
	wait $first || rc=1
	return $rc
}

# A program that fails if another one like it runs.
loner()
{
	printf '#!/bin/bash\nmkdir %s || exit\nsleep 1\nrmdir %s\n' "$work/alone" "$work/alone"
	echo "$1"
}

ctest_runs_alone()
{
	mkdir -p "$work/ctest" "$work/bin"
	loner "echo '<testsuite><testcase name=\"a\" status=\"run\"/></testsuite>' >\"\$4\"" \
		>"$work/bin/ctest"
	chmod +x "$work/bin/ctest"
	PATH=$work/bin:$PATH twice "$TOP/scripts/test/host-ctest" "$work/ctest"
}

emulator_without_planner()
{
	cmake -S "$TOP/userspace/emu" -B "$work/emu" -G Ninja -DKERNEL_TREE="$work/none"
}

# scripts/build/NAME, where cmake is such a program
build_runs_alone()
{
	local dir=$work/builds
	mkdir -p "$dir"/{bin,userspace,scripts/build,scripts/lib}
	ln -sf "$TOP/scripts/build/$1" "$dir/scripts/build/"
	ln -sf "$TOP/scripts/lib/common.sh" "$dir/scripts/lib/"
	touch "$dir/userspace/CMakeLists.txt"
	loner "" >"$dir/bin/cmake"
	chmod +x "$dir/bin/cmake"
	PATH=$dir/bin:$PATH twice "$dir/scripts/build/$1"
}

# debs_exits STATUS UPDATE DOWNLOAD: fetch/debs, where apt-get does that
debs_exits()
{
	local dir=$work/debs rc=0
	rm -rf "$dir"
	mkdir -p "$dir"/{bin,thing/DEBIAN}
	printf '%s\n' "Package: thing" "Version: 1" "Architecture: all" \
		"Maintainer: Sluice <sluice@sluice.example>" "Description: thing" \
		>"$dir/thing/DEBIAN/control"
	dpkg-deb -b "$dir/thing" "$dir/thing_1_all.deb"
	printf '#!/bin/bash\ncase "$*" in\n*" update") %s ;;\n*) %s ;;\nesac\n' "$2" "$3" \
		>"$dir/bin/apt-get"
	chmod +x "$dir/bin/apt-get"
	SLUICE_CACHE=$dir/cache PATH=$dir/bin:$PATH "$TOP/scripts/fetch/debs" thing trixie thing ||
		rc=$?
	[ $rc = "$1" ]
}

# fetch_counts WANT STATUS: report on a suite whose script of scripts/fetch ends like that
fetch_counts()
{
	local fetch=$work/fetch/scripts/fetch
	mkdir -p "$fetch"
	printf '#!/bin/bash\nexit %s\n' "$2" >"$fetch/thing"
	chmod +x "$fetch/thing"
	rm -rf "$work/results"
	(
		eval "$(sed -n '/^any_wanted()/,/^}/p; /^fetched()/,/^}/p' "$TOP/scripts/test/suites")"
		wanted() { [ "$1" = one ]; }
		TOP=$work/fetch results=$work/results
		! fetched "one two" thing
	) || return
	tell
	cat "$work/told"
	[ "$(tail -n 1 "$work/told")" = "$1" ]
}

good_server='trap "exit 0" TERM; while :; do sleep 0.1; done'

# gpu_vm_exits STATUS SERVER: gpu-vm where the guest is a script, and so is the emulator, which
# does that when it is ready
gpu_vm_exits()
{
	local dir=$work/gpu-vm rc=0
	mkdir -p "$dir/scripts"/{boot,build,lib} "$dir/build/emu"
	ln -sf "$TOP/scripts/boot/gpu-vm" "$dir/scripts/boot/"
	ln -sf "$TOP/scripts/lib"/{common,options}.sh "$dir/scripts/lib/"
	ln -sf /bin/true "$dir/scripts/build/emulator"
	ln -sf /bin/true "$dir/build/emu/sluice-emu-firmware"
	printf '#!/bin/bash\nsleep 0.5\n' >"$dir/scripts/boot/vm"
	printf '#!/bin/bash\necho ready\n%s\n' "$2" >"$dir/build/emu/sluice-emu"
	chmod +x "$dir/scripts/boot/vm" "$dir/build/emu/sluice-emu"
	"$dir/scripts/boot/gpu-vm" || rc=$?
	[ $rc = "$1" ]
}

# refused [--shared] FILE SCRIPT ...: while another holds that lock
refused() { { flock "$@" 2>&1 || :; } | grep "cannot run beside"; }

lock_names_its_holder()
(
	BUILD=$work/held
	hold exclusive lock
	hold shared lock
	env | grep "^HELD=.*$BUILD/lock" || return
	{ (HELD='' hold shared lock 2>&1) || :; } | grep "beside $(this_script) (process $$)"
)

# What a script has left behind holds the lock, and its number is that of another process.
lock_of_a_dead_script()
(
	BUILD=$work/left
	mkdir -p "$BUILD"
	echo "1 scripts/test/run" >"$BUILD/lock"
	exec {fd}>>"$BUILD/lock"
	flock $fd
	{ (hold shared lock 2>&1) || :; } | grep "cannot run beside what holds .*fuser $BUILD/lock"
)

# scripts/test/run in a directory where guests are scripts that sleep: four suites, of
# which three run side by side on two cores. ^C is sent to all that a terminal would send
# it to.
suites_of_scripts()
{
	local dir=$work/suites script
	mkdir -p "$dir"/scripts/{boot,build,lib,test} "$dir/build/linux" "$dir/pids"
	ln -sf "$TOP/scripts/lib"/{common,ktap,options,series}.sh "$dir/scripts/lib/"
	ln -sf "$TOP/scripts/test/run" "$dir/scripts/test/"
	for script in selftests userspace emulator kernel; do
		ln -sf /bin/true "$dir/scripts/build/$script"
	done
	echo 'core_suites="one three"' >"$dir/scripts/test/suites"
	printf 'suite %s "" 1G 1000 none\n' one two three four >>"$dir/scripts/test/suites"
	cat >"$dir/scripts/boot/vm" <<-END
		sleep 1000 &
		echo \$! >$dir/pids/\$2
		trap 'sleep 0.5; kill %1; echo >>$dir/cleaned' EXIT
		wait
	END
	chmod +x "$dir/scripts/boot/vm"
}

interrupted()
{
	local dir=$work/suites rc=0 pid
	suites_of_scripts
	set -m
	# the caller may ignore ^C, as background processes do
	JOBS=2 env --default-signal=INT "$dir/scripts/test/run" test one two three four \
		>"$work/said" 2>"$work/errors" &
	set +m
	pid=$!
	until [ "$(cat "$dir/pids"/* | wc -l)" = 3 ] || ! kill -0 $pid; do
		sleep 0.1
	done
	kill -INT -- -$pid
	timeout 60 tail --pid=$pid -f /dev/null || kill -KILL -- -$pid
	wait $pid || rc=$?
	cat "$work/errors" "$work/said"
	[ $rc = 130 ] && [ "$(wc -l <"$dir/cleaned")" = 3 ] &&
		! ps -o pid,args -p "$(cat "$dir/pids"/* | paste -sd,)"
}

says_interrupted()
{
	cat "$work/said"
	grep -q '^interrupted: 0 suites have ended, these have not:' "$work/said" &&
		grep -qw one "$work/said" && grep -qw two "$work/said" &&
		grep -qw three "$work/said" && ! grep -qw 'four\|passed' "$work/said"
}

# Do suites that boot so many guests of 1G run side by side?
side_by_side()
{
	local dir=$work/suites
	suites_of_scripts
	sed -i "1i guests=$1" "$dir/scripts/test/suites"
	cat >"$dir/scripts/boot/vm" <<-END
		mkdir $dir/one || touch $dir/two
		sleep 2
		rmdir $dir/one
	END
	rm -f "$dir/two"
	JOBS=2 "$dir/scripts/test/run" test >"$work/said" 2>&1 || :
	[ -e "$dir/two" ]
}

# Those that test/run runs, called like that; in $ran.
run_suites()
{
	local dir=$work/suites
	printf '%s\n' '#!/bin/bash' "touch $dir/ran/\${2#*-}" >"$dir/scripts/boot/vm"
	rm -rf "$dir/ran"
	mkdir "$dir/ran"
	"$dir/scripts/test/run" "$@" >"$work/said" 2>&1 || :
	ran=$(cd "$dir/ran" && echo *)
}

# suites_that_run WANT FLAVOUR [WORD ...]: of the four, where two and four are not core.
suites_that_run()
{
	local want=$1
	shift
	suites_of_scripts
	run_suites "$@"
	[ "$ran" = "$want" ]
}

# The sanitizers' suites, of which a stand-in runs, beside the suites of other scripts.
sanitizers_run()
{
	local dir=$work/suites
	suites_of_scripts
	{
		echo 'library_suites() { suite "library-$1" "" 1G 1000 none; }'
		echo 'collectives_faults_suite() { :; }; host_suite() { :; }'
		sed -n '/^any_wanted()/,/^}/p; /^sanitized_suites()/,/^}/p' "$TOP/scripts/test/suites"
		echo sanitized_suites
	} >>"$dir/scripts/test/suites"
	run_suites debug
	[ "$ran" = "four library-address library-thread one three two" ]
}

# core_suites_exist FILE: does each core suite that FILE names?
core_suites_exist()
{
	local core
	core=$(sed -n 's/^core_suites+\?="\(.*\)"/\1/p' "$1" | xargs -n 1)
	[ -n "$core" ] &&
		! grep -vxF -- "$("$TOP/scripts/test/run" --list test)" <<<"$core"
}

# those of the kernel "test", while another holds that lock of build/
suites_refused()
{
	local dir=$work/suites
	suites_of_scripts
	printf '#!/bin/bash\n' >"$dir/scripts/boot/vm"
	refused "$dir/build/$1" "$dir/scripts/test/run" test
}

notes_what_started()
{
	suites_of_scripts
	run_suites test one two
	[ "$(sort "$work/suites/build/results-test/started" | paste -sd' ')" = "one two" ]
}

# scripts/test/mutate on a kernel of one line, with three mutations of it: "guard" is a test
# that sees it, "broken" one that always fails, and "gone" none at all.
mutations_have_controls()
{
	local dir=$work/mutate name
	mkdir -p "$dir/scripts"/{build,lib,test} "$dir/build"/{linux,selftests} "$dir/mutations"
	ln -sf "$TOP/scripts/lib"/{common,options}.sh "$dir/scripts/lib/"
	ln -sf "$TOP/scripts/test/mutate" "$dir/scripts/test/"
	ln -sf /bin/true "$dir/scripts/build/kernel"
	ln -sf /bin/true "$dir/scripts/build/selftests"
	cat >"$dir/scripts/test/run" <<-END
		#!/bin/bash
		[ "\$1" != --list ] || { echo sdma; exit; }
		echo "FAILED   sdma/prog: broken"
		if grep -q good $dir/build/linux/line; then
			echo '<testcase name="guard" classname="sdma.prog" />' >$dir/build/test-test.xml
		else
			echo "FAILED   sdma/prog: guard"
		fi
	END
	chmod +x "$dir/scripts/test/run"
	for name in guard broken gone; do
		printf 'It is bad.\nSuite: sdma\nRed: %s\n\ndiff --git a/line b/line\n' $name
		printf -- '--- a/line\n+++ b/line\n@@ -1 +1 @@\n-good\n+bad\n'
	done >"$dir/all"
	split -l 10 --additional-suffix=.diff "$dir/all" "$dir/mutations/"
	git init -q "$dir/build/linux"
	echo good >"$dir/build/linux/line"
	git -C "$dir/build/linux" add line
	git -C "$dir/build/linux" -c user.name=Sluice -c user.email=sluice@localhost commit -q -m line
	DIFFS=$dir/mutations "$dir/scripts/test/mutate" >"$work/said" 2>&1
	cat "$work/said"
	[ "$(tail -n 1 "$work/said")" = "1 red, 2 survived" ] &&
		[ "$(grep -c "NOT GREEN WITHOUT IT" "$work/said")" = 2 ] &&
		[ "$(cat "$dir/build/linux/line")" = good ]
}

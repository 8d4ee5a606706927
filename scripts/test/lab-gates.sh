# SPDX-License-Identifier: GPL-2.0
# Sourced by scripts/test/lab: check/series and check/bisect find a defect of each kind. They
# run on a miniature of this project: its kernel is one C file and the tools of
# the real one, which also compiles it. Its two series are sound, and each test
# plants one defect.

# shellcheck disable=SC2154	# scripts/test/lab has set them
mini=$work/mini
mini_linux=$mini/build/linux
mini_env=(env SLUICE_CACHE="$mini/cache" JOBS=1)

# Old warnings of each tool, which the series did not cause.
mini_source()
{
	cat <<'END'
// SPDX-License-Identifier: GPL-2.0
#include <linux/types.h>
#include "mini.h"

/**
 * mini_old() - Old.
 */
int mini_old(int x)
{
	int unused;
	int *p = 0;

	unused = x;
	return p ? *p : 0;
}

int mini_last(int x)
{
	int seen;

	seen = x;
	return seen;
}

static inline int mini_unused(void)
{
	return 0;
}
END
}

mini_makefile()
{
	cat <<END
# SPDX-License-Identifier: GPL-2.0
VERSION = 7
PATCHLEVEL = 3
SUBLEVEL = 0
tinyconfig olddefconfig prepare modules_prepare: ;
# Only gcc knows some of the options that this kernel was configured with.
compiler := \$(if \$(findstring clang,\$(CC)),$mini/clang \$(CC),\$(CC))
%.o:
	@\$(MAKE) -s -C $LINUX O=$BUILD/obj/$flavour M=\$(CURDIR) MO=\$(O) \
		CC='\$(compiler)' \$@
END
}

mini_clang()
{
	cat <<'END'
#!/bin/bash
for arg; do
	shift
	case $arg in
	-mpreferred-stack-boundary=* | -fmin-function-alignment=* | \
	-fconserve-stack | -fsanitize=*) ;;
	*) set -- "$@" "$arg" ;;
	esac
done
exec "$@" -Wno-unknown-warning-option
END
}

# What user space has copies of.
uapi_headers="drivers/misc/peer_test/peer_test_uapi.h include/uapi/drm/amdgpu_drm.h"

mini_uapi()
{
	local header
	for header in $uapi_headers; do
		cp "$mini_linux/$header" "$mini/userspace/uapi/"
	done
}

mini_base()
{
	local real_tools="scripts/checkpatch.pl scripts/spelling.txt
		scripts/const_structs.checkpatch scripts/kernel-doc tools/docs
		tools/lib/python $uapi_headers"

	mkdir -p "$mini_linux/scripts/kconfig" "$mini"/{cache,userspace/uapi,patches}
	ln -s "$TOP/scripts" "$TOP/config" "$TOP/KERNEL_BASE" "$mini/"
	# shellcheck disable=SC2086
	git -C "$LINUX" archive HEAD $real_tools | tar -x -C "$mini_linux"
	mini_uapi
	printf '#!/bin/sh\n' >"$mini_linux/scripts/kconfig/merge_config.sh"
	chmod +x "$mini_linux/scripts/kconfig/merge_config.sh"
	echo 'obj-m := mini.o' >"$mini_linux/Kbuild"
	mini_makefile >"$mini_linux/Makefile"
	echo '*.pyc' >"$mini_linux/.gitignore"
	mini_clang >"$mini/clang"
	chmod +x "$mini/clang"
	mini_source >"$mini_linux/mini.c"
	printf '/* SPDX-License-Identifier: GPL-2.0 */\nint mini_old(int x);\nint mini_last(int x);\n' \
		>"$mini_linux/mini.h"
}

mini_git() { git -C "$mini_linux" -c user.name=Sluice -c user.email=sluice@localhost "$@"; }

mini_commit()
{
	mini_git add -A
	mini_git commit -q -m "$1" -m "What for: ${2:-the lab is to see it.}"
}

mini_series()
{
	mini_git commit -q --allow-empty -m "series: $1" -m \
"Subject: [PATCH] Mini: $1
Depends-on: $2
Tree: none
Suites: none

Text."
}

# Appended to mini.c, and declared in mini.h.
mini_function()
{
	echo "int $1(int x);" >>"$mini_linux/mini.h"
	cat >>"$mini_linux/mini.c" <<END

/**
 * $1() - Something.
 * @x: a number
 *
 * Return: the same.
 */
int $1(int x)
{
	return x;
}
END
}

# Two series: the second needs the first.
mini_project()
{
	mini_base
	git init -q -b base "$mini_linux"
	mini_commit base
	git clone -q --bare "$mini_linux" "$mini/cache/linux-7.3.0-mini.git"
	mini_git remote add origin "$mini/cache/linux-7.3.0-mini.git"
	mini_git checkout -q -b series
	mini_series 01-one none
	mini_function mini_one
	mini_commit "mini: Add one"
	mini_series 02-two 01-one
	mkdir -p "$mini_linux/drivers/mini"
	echo '/* SPDX-License-Identifier: GPL-2.0 */' >"$mini_linux/drivers/mini/new.h"
	mini_commit "mini: Add a file"
	sed -i 's/return x;/return x + 1;/' "$mini_linux/mini.c"
	mini_function mini_two
	mini_commit "mini: Add two"
	mini_git tag good
	mini_export
}

mini_export() { "${mini_env[@]}" "$mini/scripts/series/export"; }

mini_check()
{
	local gates=$1
	shift
	# clang is in the real cache
	env GATES="$gates" JOBS=1 "$mini/scripts/check/series" "$@" 2>&1
}

mini_clean()
{
	mini_git checkout -q -f -B series good
	mini_export
}

mini_bisect() { env JOBS=1 "$mini/scripts/check/bisect" "$@" 2>&1; }

mini_passes() { mini_clean && mini_check "" && mini_bisect; }

mini_round_trip()
{
	mini_clean
	cp -r "$mini/patches" "$work/patches.before"
	rm -rf "$mini_linux"
	"${mini_env[@]}" "$mini/scripts/series/tree" && mini_git tag good && mini_export &&
		diff -r "$work/patches.before" "$mini/patches"
}

# A patch that does not fit leaves half a tree, which the next run must take neither for a
# whole one nor for work to keep.
mini_half_tree()
{
	local patch='patches/02-two/0002*'
	spoil 's/^ int mini_one/ int mini_uno/' "$patch"
	! "${mini_env[@]}" "$mini/scripts/series/tree" || return
	sed -i 's/^ int mini_uno/ int mini_one/' "$mini"/$patch
	"${mini_env[@]}" "$mini/scripts/series/tree" && mini_git diff --exit-code HEAD good
}

# A series that build/linux lacks, for whatever reason, stays in patches/.
mini_keeps_series()
{
	mini_clean
	mkdir "$mini/patches/03-three"
	! "${mini_env[@]}" "$mini/scripts/series/export" || return
	[ -d "$mini/patches/03-three" ] || return
	"${mini_env[@]}" FORCE=1 "$mini/scripts/series/export"
	[ ! -d "$mini/patches/03-three" ]
}

# The patches of a mailbox are those of the series.
mini_mailbox()
{
	local tree=$work/mailed
	mini_clean
	"$mini/scripts/series/mbox" one
	git clone -q -b base "$mini_linux" "$tree"
	git -C "$tree" -c user.name=Sluice -c user.email=sluice@localhost \
		am -q --empty=drop "$mini/build/mbox/01-one.mbox"
	git -C "$tree" diff --exit-code HEAD "$(mini_git rev-parse ':/mini: Add one')"
}

refuses_unknown_names()
{
	! "$mini/scripts/series/mbox" three && ! mini_check "" three && ! mini_check sparce &&
		! mini_bisect three &&
		! "${mini_env[@]}" SERIES=three "$mini/scripts/series/tree" &&
		! "$mini/scripts/series/apply" "$mini_linux" three
}

# finds GATE WHAT WHY: the gate fails, and says of what, and why.
finds()
{
	local out
	out=$(mini_check "$1") && { echo "$out"; return 1; }
	echo "$out"
	grep -A 99 "^FAIL $2" <<<"$out" | grep -q "$3"
}

# Edit the last patch. What is in mini_two() and after it:
two='/^int mini_two(int x)$/,$'
plant()
{
	mini_clean
	sed -i "$1" "$mini_linux/mini.c"
	mini_git commit -q -a --amend --no-edit
	mini_export
}

# Edit what was exported: a sed expression and a file.
spoil()
{
	mini_clean
	sed -i "$1" "$mini"/$2
}

finds_other_tree()
{
	spoil 's/^+\treturn x + 1;/+\treturn x + 2;/' 'patches/02-two/0002*'
	finds apply all "something else"
}

finds_bad_context()
{
	spoil 's/^ int mini_one/ int mini_uno/' 'patches/02-two/0002*'
	finds apply all "Patch failed at"
}

finds_product()
{
	mini_clean
	touch "$mini_linux/drivers/mini/new.pyc"
	mini_git add -f "$mini_linux/drivers/mini"
	mini_commit "mini: Add what Python made"
	mini_export
	finds products "no build products" "drivers/mini/new.pyc"
}

finds_missing_needs()
{
	spoil 's/^Depends-on:.*/Depends-on: none/' patches/02-two/0000-cover-letter
	finds apply "02-two: applies" "Patch failed at"
}

finds_circle()
{
	spoil 's/^Depends-on:.*/Depends-on: 02-two/' patches/01-one/0000-cover-letter
	finds cover "01-one: cover letter" "which depends on it"
}

finds_no_line()
{
	spoil /^Tree:/d patches/02-two/0000-cover-letter
	finds cover "02-two: cover letter" "no line 'Tree:'"
}

finds_bad_style()
{
	plant "$two s/return x;/return(x) ;/"
	finds checkpatch "02-two: checkpatch 0002" "WARNING:SPACING"
}

finds_undocumented()
{
	plant "$two s/\<x\>/y/"
	finds kernel-doc "02-two: kernel-doc" "'y' not described in 'mini_two'"
}

finds_sparse()
{
	plant "$two s/return x;/return (int *)\&x == 0;/"
	finds sparse "02-two: gcc" "plain integer as NULL"
}

finds_unused_value()
{
	plant "$two s/^{/{\n\tint y;\n\n\ty = x;/"
	finds sparse "02-two: gcc" "unused-but-set"
}

# In a line of the base: the series takes away what has read the value.
finds_value_unused_now()
{
	plant 's/return seen;/return x;/'
	finds sparse "02-two: gcc" "seen.*unused-but-set"
}

# As amdgpu builds the files of amdkfd.
finds_warning_elsewhere()
{
	mini_clean
	wc -l <"$mini_linux/mini.c" |
		sed "s|.*|$mini_linux/drivers/../mini.c:&:1: warning: that|" |
		{ "$TOP/scripts/check/new-warnings" "$mini_linux" base || :; } | grep that
}

# gcc does not mind.
finds_self_assignment()
{
	plant "$two s/return x;/x = x;\n\t&/"
	finds clang "02-two: clang" "self-assign"
}

# Where clang cannot be fetched for another reason, the test fails.
no_clang()
{
	local rc=0
	"$TOP/scripts/fetch/clang" >/dev/null || rc=$?
	[ $rc = 4 ]
}

finds_old_mirror()
{
	spoil '$a/* more */' drivers/mini/new.h
	finds mirrors mirrors "make export"
}

finds_old_uapi()
{
	local rc=0
	spoil '$a/* more */' userspace/uapi/peer_test_uapi.h
	finds uapi uAPI "scripts/series/update-uapi" || rc=$?
	mini_uapi
	return $rc
}

# The second patch of 02-two has a defect, which a third mends.
bisect_finds()
{
	local out
	plant "$1"
	mini_git checkout -q good -- mini.c
	mini_commit "mini: Mend two"
	mini_export
	out=$(mini_bisect) && { echo "$out"; return 1; }
	echo "$out"
	grep -A 99 "FAIL 02-two/0002" <<<"$out" | grep -q "$2"
}

# A file of 02-two that nothing builds, not even in the end.
bisect_finds_unbuilt()
{
	local out
	mini_clean
	printf '// SPDX-License-Identifier: GPL-2.0\nint x;\n' >"$mini_linux/other.c"
	mini_commit "mini: Add a file and forget it"
	mini_export
	out=$(mini_bisect) && { echo "$out"; return 1; }
	echo "$out"
	grep -q "do not name them: other.c" <<<"$out"
}

bisect_finds_error() { bisect_finds "$two s/return x;/return y;/" "error: .y. undeclared"; }
bisect_finds_warning() { bisect_finds '$a static int f(void) { return 0; }' "unused-function"; }

# A Makefile of selftests that names a program which the next patch brings.
bisect_finds_program()
{
	local out dir=$mini_linux/tools/testing/selftests/mini
	mini_clean
	mkdir -p "$dir"
	echo 'all: early late' >"$dir/Makefile"
	echo 'int main(void) { return 0; }' >"$dir/early.c"
	mini_commit "selftests/mini: Test early"
	cp "$dir/early.c" "$dir/late.c"
	mini_commit "selftests/mini: Test late"
	mini_export
	out=$(mini_bisect) && { echo "$out"; return 1; }
	echo "$out"
	grep -A 99 "FAIL 02-two/0003" <<<"$out" | grep -q "No rule to make target .late"
}

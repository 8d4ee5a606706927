# SPDX-License-Identifier: GPL-2.0
# Sourced, after common.sh, by the scripts that handle patches/. Each folder in it,
# NN-name, is a series: a cover letter and patches. Series apply in the order of
# their names, patches too. In build/linux a series begins with an empty commit
# that holds its cover letter.

PATCHES=$TOP/patches

all_series()
{
	(cd "$PATCHES" && ls -d [0-9][0-9]-*/ 2>/dev/null | tr -d /) || :
}

# The series that the arguments name, with or without number; all, if there are
# none.
named_series()
{
	local name
	[ $# != 0 ] || { all_series; return; }
	for name; do
		all_series | grep -xE "([0-9]+-)?$name" ||
			die "patches/ has no series '$name'"
	done
}

# cover_line SERIES KEY: the value of a line "KEY: value" at the head of the cover
# letter. What follows on indented lines belongs to it.
cover_line()
{
	awk -v key="$2:" '
		/^$/ { exit }
		!/^[ \t]/ { on = (index($0, key) == 1); if (on) $0 = substr($0, length(key) + 1) }
		on { gsub(/^[ \t]+|[ \t]+$/, ""); print }' \
		"$PATCHES/$1/0000-cover-letter" | paste -sd' '
}

# The series that SERIES needs, in order: those that it names, what they name, ...
# In $(), the shell forgets "set -e": a failure in there has to be checked.
needed_by()
{
	local name names asked="${2:-} $1 "
	names=$(cover_line "$1" Depends-on)
	for name in ${names//,/ }; do
		[ "$name" != none ] || continue
		[ -d "$PATCHES/$name" ] || die "$1 depends on $name, which is no series"
		[[ $asked != *" $name "* ]] || die "$1 depends on $name, which depends on it"
		needed_by "$name" "$asked" || exit
		echo "$name"
	done | LC_ALL=C sort -u
}

# A series and those that it needs, in order; all, if none is named.
with_needed()
{
	local name
	[ -n "${1:-}" ] || { all_series; return; }
	name=$(named_series "$1") || return
	needed_by "$name" || return
	echo "$name"
}

patches_of()
{
	local name
	for name; do
		ls "$PATCHES/$name"/*.patch
	done
}

# Files that patches touch.
files_of()
{
	cat "$@" | sed -n 's|^diff --git a/\(.*\) b/.*|\1|p' | LC_ALL=C sort -u
}

# base_tree DIR: have a work tree of the base kernel there. It takes the objects
# from the cache, which may have been deleted since it was made.
base_tree()
{
	local dir=$1 repo
	repo=$(git -C "$LINUX" remote get-url origin)
	if [ ! -d "$dir/.git" ] || [ "$(git -C "$dir" remote get-url origin 2>/dev/null)" != "$repo" ] ||
	   ! git -C "$dir" cat-file -e 'base^{tree}'; then
		rm -rf "$dir"
		git clone -q --shared --branch base "$repo" "$dir"
		who_commits "$dir"
	fi
}

# The same, with nothing but the base in it.
clean_base_tree()
{
	base_tree "$1"
	git -C "$1" am --abort >/dev/null 2>&1 || :
	git -C "$1" checkout -q -f --detach base
	git -C "$1" clean -q -f -d -x
}

who_commits()
{
	git -C "$1" config user.name Sluice
	git -C "$1" config user.email sluice@localhost
	git -C "$1" config gc.auto 0
	# Git computes no checksum of the index: patches apply in half the time.
	git -C "$1" config index.skipHash true
}

# add_cover DIR SERIES: the empty commit that a series begins with.
add_cover()
{
	{ printf 'series: %s\n\n' "$2" && cat "$PATCHES/$2/0000-cover-letter"; } |
		GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' \
		GIT_COMMITTER_DATE='2026-01-01T00:00:00Z' \
		git -C "$1" commit -q --allow-empty --no-verify \
			--cleanup=verbatim -F -
}

# add_patches DIR PATCH ...
add_patches()
{
	local dir=$1
	shift
	git -C "$dir" am -q --committer-date-is-author-date "$@" || {
		git -C "$dir" am --abort
		return 1
	}
}

# add_series DIR SERIES ...
add_series()
{
	local dir=$1 name
	shift
	for name; do
		add_cover "$dir" "$name" || return
		# shellcheck disable=SC2046
		add_patches "$dir" $(patches_of "$name") || return
	done
}

# What tells whether a tree holds these series.
series_id()
{
	(cd "$PATCHES" && find "$@" -type f -print0 | LC_ALL=C sort -z |
		xargs -0r sha256sum | sha256sum)
}

# make_objects TREE OBJ WORD ...: compile objects of a tree in the configuration of
# the checks, with the compiler CC. WORDs are make's.
make_objects()
{
	local tree=$1 obj=$2 mk
	mk=(make -s -C "$LINUX" O="$obj" CC="${CC:-ccache gcc}" -j"$JOBS")
	shift 2
	see_as_linux "$tree" "$TOP/scripts/build/kernel-config" "$LINUX" "$obj" check &&
		see_as_linux "$tree" "${mk[@]}" prepare modules_prepare || return
	see_as_linux "$tree" "${mk[@]}" -k "$@"
}

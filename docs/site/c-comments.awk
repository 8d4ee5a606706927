# SPDX-License-Identifier: MIT
# The comments of sluice.h as doxygen knows them. The header has plain C comments, as
# the kernel does; a line "---- NAME" begins a group, and "@a, @b: text" is about
# arguments, up to a line that is not indented. Other indented lines are tables.

NR == 1 || /^#endif/ { print; next }

/^\/\* -+ [a-z]+ \*\/$/ {
	end_group()
	group = $3
	print "/** @defgroup " group " " group "\n * @{ */"
	next
}

/^#ifdef __cplusplus/ { end_group() }

# The first one is about the whole file.
/^\/\*$/ && !file++ { print "/** @file"; next }

/^[ \t]*\/\*/ { sub(/\/\*/, "/**"); param = 0 }
/[^ \t].*[ \t]\/\* / { sub(/\/\*/, "/**<") }

/^ \* @[a-z_, @]+:/ {
	match($0, /@[a-z_, @]+:/)
	names = substr($0, RSTART, RLENGTH - 1)
	gsub(/[@ ]/, "", names)
	text = substr($0, RSTART + RLENGTH)
	gsub(/@/, "\\p ", text)
	n = split(names, name, ",")
	for (i = 1; i <= n; i++)
		print " * @param " name[i] text
	param = 1
	next
}

param && /^ \* [^ \t]/ { print " *"; param = 0 }

/^ \*/ { table(!param && /^ \*\t/) }

# Another argument in a sentence.
{ gsub(/@/, "\\p "); print }

function table(begins)
{
	if (begins != drawn)
		print begins ? " * @code{.unparsed}" : " * @endcode"
	drawn = begins
}

function end_group()
{
	if (group)
		print "/** @} */"
	group = ""
}

# SPDX-License-Identifier: MIT
# What a C++ header says at its beginning is about the whole file. Lines that a tab
# indents are drawings and tables.

NR == 1 { print "/// @file"; next }
!over && /^\/\// {
	drawing(/^\/\/\t/)
	sub(/\/\//, "///")
	print
	next
}
{ drawing(0); over = 1; print }

function drawing(begins)
{
	if (begins != drawn)
		print begins ? "/// @code{.unparsed}" : "/// @endcode"
	drawn = begins
}

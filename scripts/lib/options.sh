# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2034	# scripts that source this use what it sets
# Sourced, after common.sh, by scripts that take options. Only the comment at the head of
# a script says which ones: a line "#   --name VALUE  text" is an option with a value (a
# number, if VALUE is N, MB or SEC), "#   --name  text" one without. If the comment says
# "Options of scripts/NAME are passed on", those are taken, too.

# options_in SCRIPT: "--name VALUE" or "--name", a line each
options_in() { head_of "$1" | sed -nE 's/^  (--[a-z-]+)( [A-Z]+)?(  .*|$)/\1\2/p'; }

# passed_on SCRIPT: the options of others that it passes on
passed_on()
{
	local other
	other=$(head_of "$1" | sed -n 's/.*Options of \(scripts[^ ]*\) are passed on.*/\1/p')
	[ -z "$other" ] || { options_in "$TOP/$other"; passed_on "$TOP/$other"; }
}

# take_options "$@": the option --some-name sets the variable some_name, to 1 if it has no
# value. It adds to a variable that the script has made an array. Options that are passed
# on go to the array "pass". Options end at "--" or at the first word that is no option:
# what follows goes to the array "words".
take_options()
{
	local own others kind option
	own=$(options_in "$0") others=$(passed_on "$0")
	pass=() words=()
	while [[ ${1:-} == --?* ]]; do
		kind=$(kind_of "$1" "$own"$'\n'"$others") ||
			die "${0##*/}: there is no option '$1'"
		option=("$1")
		if [ -n "$kind" ]; then
			[ $# -gt 1 ] || die "${0##*/}: $1: its value is missing: $kind"
			check_value "$1" "$kind" "$2"
			option+=("$2")
		fi
		if kind_of "$1" "$own" >/dev/null; then
			set_option "${option[@]}"
		else
			pass+=("${option[@]}")
		fi
		shift ${#option[@]}
	done
	[ "${1:-}" != -- ] || shift
	words=("$@")
}

# kind_of OPTION OPTIONS: the word for its value; it fails if OPTION is none of them
kind_of()
{
	awk -v option="$1" '
		$1 == option { print $2; known = 1; exit }
		END { exit !known }' <<<"$2"
}

check_value()
{
	case $2 in
	N | MB | SEC) [[ $3 =~ ^[0-9]+$ ]] || die "${0##*/}: $1 $3: say a number" ;;
	esac
}

# set_option --NAME [VALUE]. The script's variable must not have the name of a local one.
set_option()
{
	local variable=${1#--}
	variable=${variable//-/_}
	if [[ $(declare -p "$variable" 2>/dev/null) == "declare -a"* ]]; then
		local -n array=$variable
		array+=("$2")
	else
		printf -v "$variable" %s "${2-1}"
	fi
}

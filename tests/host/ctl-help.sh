#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Every command of terracectl has help with examples, a man page and completion, and ends with 2 when it is called wrongly.
# host: timeout=600 build=daemon
. "$TERRACE_TREE/tests/host/lib.sh"
ctl=$TERRACE_TREE/build/terracectl
commands=$("$ctl" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
check_eq "commands" "$(wc -w <<< "$commands")" "$(grep -c 'extern const struct ctl_command' daemon/ctl/ctl.h)"
scripts/manpages "$ctl" "$OUT/man"
# shellcheck source=packaging/terracectl.bash-completion
. packaging/terracectl.bash-completion
complete_() { COMP_WORDS=("$ctl" "$@"); COMP_CWORD=$#; COMPREPLY=(); _terracectl; echo " ${COMPREPLY[*]} "; }
for command in $commands; do
	help=$("$ctl" "$command" --help)
	for part in '^usage: terracectl '"$command" '^Exit status: 0' '^Examples?:' '--help +this text|terracectl (de)?activate'; do
		grep -qE -e "$part" <<< "$help" || die "terracectl $command --help lacks $part"
	done
	[ "$(awk '{ if (length($0) > m) m = length($0) } END { print m }' <<< "$help")" -le 84 ] || die "terracectl $command --help is too wide"
	expect 2 "Try: terracectl $command --help" "$ctl" "$command" --no-such-option
	grep -qE "\`$command\`|terracectl $command" Documentation/terracectl.md || die "Documentation/terracectl.md lacks $command"
	page=$OUT/man/terracectl-$command.8
	for part in NAME SYNOPSIS DESCRIPTION 'EXIT STATUS' EXAMPLES; do
		grep -qx ".SH $part" "$page" || die "$page lacks $part"
	done
	if command -v man > /dev/null; then check_eq "what man says of $page" "$(man -l --warnings "$page" 2>&1 > /dev/null)" ""; fi
	[[ $(complete_ "") == *" $command "* ]] || die "completion lacks $command"
	# shellcheck disable=SC2013 # words
	for option in $(grep -oE -e '^  --[a-z-]+' <<< "$help"); do
		[[ $(complete_ "$command" "${option:0:4}") == *" $option "* ]] || die "completion of $command lacks $option"
	done
done
[[ $(complete_ create db --tier "") == *" nvme= "* ]] || die "no classes: $(complete_ create db --tier "")"
[[ $(complete_ dump "") == *" journal "* ]] || die "no parts of dump"

expect 2 "unknown command 'staus': is 'status' meant\?" "$ctl" staus
expect 2 "unknown command 'evac': is 'evacuate' meant\?" "$ctl" evac db
expect 2 "unknown command 'delete': is 'remove' meant\?" "$ctl" delete db
expect 2 "^Try: terracectl --help$" "$ctl" xyzzy
expect 2 "unknown command 'creat': is 'create' meant\?" "$ctl" help creat
check_eq "help create" "$("$ctl" help create)" "$("$ctl" create --help)"
expect 1 "^terracectl: db: No such file or directory .a device is wanted here; terracectl list" "$ctl" check db
expect 2 "name one volume: '/dev/sdc' is one too many" "$ctl" leave db /dev/sdc

# where there is no device-mapper there are no volumes, and that is no error
expect 2 "wrong option" "$ctl" list --x
expect 2 "list takes no arguments" "$ctl" list db
expect 2 "one volume at a time" "$ctl" status a b
expect 2 "no volume given" "$ctl" set
expect 2 "too many arguments" "$ctl" set a b c d
expect 2 "no file and no volume given" "$ctl" which
expect 2 "'5-3' is no range of blocks" "$ctl" which db 5-3
expect 2 "'x' is no range of blocks" "$ctl" which db x
expect 2 "one file, or one range" "$ctl" which ./file 5
expect 2 "no volume given" "$ctl" activate
expect 2 "one volume at a time" "$ctl" activate a b
expect 2 "no volume given" "$ctl" deactivate
expect 2 "name one volume" "$ctl" remove
expect 2 "no name given" "$ctl" create --tier nvme=a --tier hdd=b
expect 2 "a volume has at least 2 tiers" "$ctl" create db --tier nvme=a
expect 2 "format does not ask" "$ctl" format --yes

# no escape sequences, no progress in a pipe
truncate -s 128M "$OUT/fast"
truncate -s 320M "$OUT/slow"
said=$("$ctl" create db --dry-run --tier "nvme=$OUT/fast" --tier "hdd=$OUT/slow" 2>&1)
[[ $said != *$'\e'* && $said != *$'\r'* ]] || die "terminal codes in a pipe"
expect 1 "nothing says what class of drive it is" "$ctl" create db --dry-run --tier "$OUT/fast" --tier "hdd=$OUT/slow"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The control device's structures stand where their comments say, without holes, in 64 and in 32 bits.
# host: timeout=600
. "$TERRACE_TREE/tests/host/lib.sh"
cd "$TERRACE_TREE" || exit
header=uapi/terrace.h checks=kmod/core/abicheck.c
flags=(-std=gnu11 -fsyntax-only -Wall -Wextra -Werror -Itests/compat -Iuapi -Ikmod/core)

# every field and every size that a comment states has its line in abicheck.c
awk '/^struct terrace_[a-z_]+ \{$/ { type = $2 }
	type && /^\t.*;[ \t]*\/\*/ {
		split($0, half, "/\\*"); gsub(/;.*|\[.*/, "", half[1]); n = split(half[1], word, /[ \t]+/)
		at = half[2]; sub(/^ +/, "", at); sub(/[^0-9].*/, "", at)
		print "AT(" type ", " word[n] ", " at ");"
	}
	type && /^};/ { if (match($0, /[0-9]+/)) print "SIZE(" type ", " substr($0, RSTART, RLENGTH) ");"; type = "" }' \
	"$header" > "$OUT/stated"
[ "$(wc -l < "$OUT/stated")" -gt 120 ] || die "only $(wc -l < "$OUT/stated") fields found in $header"
while read -r line; do
	grep -qxF "$line" "$checks" || die "$checks has no line $line"
done < "$OUT/stated"
[ "$(grep -c '^AT\|^SIZE' "$checks")" = "$(wc -l < "$OUT/stated")" ] || die "$checks has lines that $header does not state"

gcc "${flags[@]}" "$checks" || die "64 bits: other offsets"
echo '#include <terrace.h>' > "$OUT/holes.c"
gcc -fsyntax-only -Wpadded -Werror -Iuapi "$OUT/holes.c" || die "64 bits: there are holes"
if echo 'int main(void) { return 0; }' | gcc -m32 -xc -c -o "$OUT/m32.o" - 2> "$OUT/m32.log"; then
	arch=/usr/include/$(gcc -print-multiarch)
	{ # without libc's headers, which may not be there for 32 bits
		printf '#include <%s>\n' terrace.h terrace_format.h
		echo '#define AT(type, field, at) _Static_assert(__builtin_offsetof(struct type, field) == (at), #field)'
		echo '#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)'
		grep '^AT\|^SIZE\|^static_assert' "$checks" | sed 's/^static_assert(\(.*\));/_Static_assert(\1, "numbers");/'
	} > "$OUT/narrow.c"
	gcc -m32 -std=gnu11 -fsyntax-only -Werror -Iuapi -idirafter "$arch" "$OUT/narrow.c" || die "32 bits: other offsets"
	gcc -m32 -fsyntax-only -Wpadded -Werror -Iuapi -idirafter "$arch" "$OUT/holes.c" || die "32 bits: there are holes"
else
	echo "the compiler has no -m32: holes and alignment were checked in 64 bits only"
fi

# the check can fail
sed 's/^AT(terrace_move, up, 32)/AT(terrace_move, up, 40)/' "$checks" > "$OUT/wrong.c"
! gcc "${flags[@]}" "$OUT/wrong.c" 2> /dev/null || die "a wrong offset compiles"

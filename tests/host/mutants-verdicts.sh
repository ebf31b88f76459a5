#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# tests/mutants/tunables: a tunable that no test misses survives, one that is read nowhere is broken, and the same name elsewhere is another thing.
# host: timeout=120
. "$TERRACE_TREE/tests/host/lib.sh"

# a tree with one policy and one test
mkdir -p "$OUT/tree/tests/mutants" "$OUT/tree/tests/unit" "$OUT/tree/daemon/decide"
cp tests/mutants/tunables "$OUT/tree/tests/mutants/"
cd "$OUT/tree" || exit
cat > Makefile << 'END'
build/user/%.o: %.c
	mkdir -p $(@D) && gcc -Wall -Wextra -Werror -Idaemon $(CFLAGS) -c -o $@ $<
build/san/%.o: %.c
	mkdir -p $(@D) && gcc -Wall -Wextra -Werror -Idaemon -c -o $@ $<
build/san/libterrace.a: build/san/daemon/decide/toy.o
	ar qcs $@.new $^ && mv $@.new $@
build/unit/%: build/san/tests/unit/%.o build/san/libterrace.a
	mkdir -p $(@D) && gcc -o $@ $^
.SECONDARY:
END
cat > daemon/decide/toy.h << 'END'
#include <stdint.h>
struct toy_tunables {
	double missed;
	uint32_t whole, unmissed;
	double unread, refused;
};
struct other {
	double missed;
};
int toy_check(const struct toy_tunables *t);
double toy(const struct toy_tunables *t, const struct other *o);
END
cat > daemon/decide/toy.c << 'END'
#include "decide/toy.h"
#define TUNABLE(type, strukt, member, initial, ...) initial
#define TUNABLE_TABLE(name, policy, rows) const double *name = rows
static const double rows[] = {
	TUNABLE(TUNABLE_DOUBLE, toy_tunables, missed, 0.5, 0, 1, ""),
	TUNABLE(TUNABLE_U32, toy_tunables, whole, 3, 0, 1,
		"on two lines"),
	TUNABLE(TUNABLE_U32, toy_tunables, unmissed, 7, 0, 9, ""),
	TUNABLE(TUNABLE_DOUBLE, toy_tunables, unread, 1, 0, 1, ""),
	TUNABLE(TUNABLE_DOUBLE, toy_tunables, refused, 1, 0, 1, ""),
};
TUNABLE_TABLE(toy_tunable_table, "toy", rows);

int toy_check(const struct toy_tunables *t)
{
	return t->refused > 1 ? -1 : 0;
}

double toy(const struct toy_tunables *t, const struct other *o)
{
	struct toy_tunables two[2] = { *t };

	two[1].missed = o->missed;
	two[1].missed += t[0].missed;
	return two[1].missed / two[0].missed + (t->whole / 2 * 2 == t->whole) + t->unmissed;
}
END
cat > tests/unit/toy.c << 'END'
#include <stdio.h>
#include "decide/toy.h"
int main(void)
{
	struct toy_tunables t = { .missed = 0.25, .whole = 4, .unmissed = 7, .unread = 0, .refused = 0 };
	struct other o = { .missed = 1 };

	/* 1 and 0.25 by 0.25, 4 is even, 7 */
	if (toy(&t, &o) == 5 + 1 + 7)
		return 0;
	printf("[  FAILED  ] by_hand\n");
	return 1;
}
END
git init -q . && git add -A && git -c user.name=x -c user.email=x@x commit -qm x

expect 0 '^CAUGHT    toy.missed  by unit/toy, 3 places: by_hand$' tests/mutants/tunables toy.missed
expect 0 '^CAUGHT    toy.whole  by unit/toy, 2 places: by_hand$' tests/mutants/tunables toy.whole
expect 1 '^SURVIVED  toy.unmissed  1 place; passes: toy$' tests/mutants/tunables toy.unmissed
expect 2 '^BROKEN    toy.unread  is read nowhere$' tests/mutants/tunables toy.unread
expect 2 '^BROKEN    toy.refused  is read nowhere$' tests/mutants/tunables toy.refused
expect 2 '^5 tunables: 2 caught, 1 survived, 2 broken$' tests/mutants/tunables toy
expect 2 "there is no tunable 'toy.other'" tests/mutants/tunables toy.other
# a test that fails anyhow catches nothing
sed -i 's/5 + 1 + 7/9/' tests/unit/toy.c
git -c user.name=x -c user.email=x@x commit -qam y
expect 2 '^BROKEN    toy.missed  unit/toy fails without it: by_hand$' tests/mutants/tunables toy.missed

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which key next. Zipf 0.99 as YCSB draws it (Gray's method over the keys that were loaded),
 * its ranks scattered over the key space by a hash, as YCSB's do; "latest" counts ranks back from
 * the newest key. A hotspot is every twentieth key, or the first twentieth of them.
 */
#include <math.h>

#include "ycsb.h"

#define THETA	0.99
#define HOT	20	/* one key in so many */

struct ycsb_keys {
	uint64_t keys, state;
	uint64_t loaded;
	double zetan, alpha, eta;
};

static uint64_t mixed(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

struct ycsb_keys *ycsb_keys_create(uint64_t keys, uint64_t seed)
{
	struct ycsb_keys *k = calloc(1, sizeof(*k));

	if (!k || keys < HOT)
		ycsb_die("keys", "too few, or no memory");
	k->keys = k->loaded = keys;
	k->state = mixed(seed + 1);
	for (uint64_t i = 1; i <= keys; i++)
		k->zetan += 1 / pow((double)i, THETA);
	k->alpha = 1 / (1 - THETA);
	k->eta = (1 - pow(2.0 / (double)keys, 1 - THETA)) / (1 - (1 + pow(0.5, THETA)) / k->zetan);
	return k;
}

uint64_t ycsb_random(struct ycsb_keys *k, uint64_t below)
{
	k->state = k->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (k->state >> 20) % below;
}

static uint64_t rank(struct ycsb_keys *k)
{
	double u = (double)ycsb_random(k, 1ULL << 40) / (double)(1ULL << 40), uz = u * k->zetan;
	uint64_t r;

	if (uz < 1)
		return 0;
	if (uz < 1 + pow(0.5, THETA))
		return 1;
	r = (uint64_t)((double)k->loaded * pow(k->eta * u - k->eta + 1, k->alpha));
	return r < k->loaded ? r : k->loaded - 1;
}

uint64_t ycsb_zipf(struct ycsb_keys *k)
{
	return mixed(rank(k)) % k->loaded;
}

uint64_t ycsb_latest(struct ycsb_keys *k)
{
	return k->keys - 1 - rank(k);
}

uint64_t ycsb_hotspot(struct ycsb_keys *k, bool clustered)
{
	uint64_t hot = ycsb_random(k, k->loaded / HOT);

	if (ycsb_random(k, 100) >= 95)
		return ycsb_random(k, k->loaded);
	return clustered ? hot : hot * HOT;
}

uint64_t ycsb_insert(struct ycsb_keys *k)
{
	return k->keys++;
}

/* An odd factor that shares none with the number of keys walks through all of them. */
uint64_t ycsb_loaded(const struct ycsb_keys *k, uint64_t nth)
{
	uint64_t step = k->loaded * 618 / 1000 | 1;

	for (;; step += 2) {
		uint64_t a = k->loaded, b = step;

		while (b) {
			uint64_t rest = a % b;

			a = b;
			b = rest;
		}
		if (a == 1)
			return (uint64_t)((unsigned __int128)nth * step % k->loaded);
	}
}

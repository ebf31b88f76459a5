// SPDX-License-Identifier: GPL-2.0-or-later
/* What the status socket tells, as JSON.  Names are kept; new ones may be added. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service/service.h"

static void number(struct json_object *o, const char *name, uint64_t value)
{
	json_object_object_add(o, name, json_object_new_uint64(value));
}

static void real(struct json_object *o, const char *name, double value)
{
	json_object_object_add(o, name, json_object_new_double(value));
}

static void text(struct json_object *o, const char *name, const char *value)
{
	json_object_object_add(o, name, value ? json_object_new_string(value) : NULL);
}

static void flag(struct json_object *o, const char *name, bool value)
{
	json_object_object_add(o, name, json_object_new_boolean(value));
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static struct json_object *moves_json(const struct engine *e)
{
	const struct engine_stats *s = &e->stats;
	struct json_object *o = json_object_new_object();

	for (int why = 0; why < WHYS; why++) {
		char name[32];

		snprintf(name, sizeof(name), "orders_for_%s", why_name((enum why)why));
		number(o, name, s->orders[why]);
	}
	number(o, "under_way", e->under_way);
	number(o, "done", s->done);
	number(o, "partly", s->partly);
	number(o, "failed", s->failed);
	number(o, "cancelled", s->cancelled);
	number(o, "no_room", s->no_room);
	number(o, "demoted_blocks", s->demoted);
	number(o, "dropped_blocks", s->dropped);
	number(o, "retained_blocks", s->retained);
	number(o, "promoted_by_flush_blocks", s->promoted_by_flush);
	number(o, "promoted_by_compaction_blocks", s->promoted_by_compaction);
	number(o, "promoted_by_epoch_blocks", s->promoted_by_epoch);
	number(o, "epoch_looks", s->epoch_looks);
	number(o, "neighbour_looks", s->neighbour_looks);
	number(o, "promoted_as_heirs_blocks", s->promoted_as_heirs);
	number(o, "bequests", s->bequests);
	number(o, "bequests_cut", s->bequests_cut);
	number(o, "heirs_blocks", s->heirs);
	number(o, "hot_heirs_blocks", s->hot_heirs);
	number(o, "hot_heirs_not_raised_blocks", s->heirs_left);
	number(o, "heat_left_blocks", s->heat_left);
	number(o, "promoted_dead_blocks", s->promoted_dead);
	number(o, "written_once_blocks", s->written_once);
	number(o, "retained_dead_blocks", s->retained_dead);
	number(o, "not_retained_dead_blocks", s->not_retained_dead);
	number(o, "banned_blocks", e->banned->blocks);
	number(o, "banned_written_anew_blocks", s->written_anew);
	number(o, "pinned_tails_blocks", e->tails->blocks);
	number(o, "pinned_tails_let_go_blocks", e->tails->left);
	number(o, "retained_as_tails_blocks", s->pinned);
	number(o, "first_sight_blocks", s->first_sight);
	number(o, "demoted_though_hot_blocks", s->pressed);
	number(o, "raced_blocks", s->raced);
	number(o, "packed_loose_blocks", s->packed_loose);
	number(o, "gathered_regions", s->gathered);
	number(o, "loose_regions_left", s->loose_left);
	number(o, "sampled_regions", s->samples);
	number(o, "not_sampled_regions", s->not_sampled);
	number(o, "orders_not_packed", s->incompressible);
	number(o, "flushes", s->flushes);
	number(o, "flushes_kept", s->flushes_kept);
	number(o, "flushes_dropped", s->flushes_dropped);
	number(o, "choices", s->choices);
	number(o, "choices_without_candidate", s->choice_failures);
	return o;
}

static struct json_object *limits_json(const struct engine *e)
{
	struct json_object *o = json_object_new_object();
	const struct governor *g = &e->governor;

	real(o, "brake_share", e->share);
	flag(o, "cpus_full", e->cpu.full);
	real(o, "quiet_latency_us", e->mean.brake.base_us);
	number(o, "braked", limits_braked(e));
	real(o, "idle_boost", e->boost);
	number(o, "held_by_budget", e->stats.held_by_budget);
	number(o, "held_by_cpu", e->stats.held_by_cpu);
	number(o, "held_by_endurance", e->stats.held_by_endurance);
	number(o, "held_by_governor", e->stats.held_by_governor);
	number(o, "held_by_room", e->stats.held_by_room);
	text(o, "promotions", engine_promotions(e));
	text(o, "demotions", governor_reason_text(g->down.reason));
	flag(o, "skewed", e->senses && hear_skewed(e));
	flag(o, "promotions_allowed", governor_allows_up(g));
	flag(o, "demotions_allowed", governor_allows_down(g));
	number(o, "epochs_judged", g->epochs);
	number(o, "promotions_stopped", g->up.stops);
	number(o, "demotions_stopped", g->down.stops);
	return o;
}

/* What an LRU fast tier of other sizes would hit, by the ghost cache. */
static struct json_object *ghost_json(const struct engine *e)
{
	static const double times[] = { 0.25, 0.5, 1, 2, 4 };
	static const char *const names[] = { "quarter", "half", "now", "double", "fourfold" };
	struct json_object *o = json_object_new_object();

	for (int i = 0; i < 5; i++)
		real(o, names[i], shards_hit_rate(&e->shards, (uint64_t)((double)e->fast_blocks * times[i])));
	return o;
}

/* What other settings would hit, by miniatures of the volume; null: not known yet. */
static struct json_object *whatif_json(const struct engine *e)
{
	struct json_object *o = json_object_new_object();

	for (uint32_t i = 0; i < WHATIF_SETTINGS; i++) {
		double rate = whatif_hit_rate(&e->whatif, i);

		json_object_object_add(o, whatif_settings[i].name, rate < 0 ? NULL : json_object_new_double(rate));
	}
	return o;
}

/* Of the requests of a drive: how many took up to so many µs. */
static struct json_object *latency_json(const uint64_t *bucket)
{
	struct json_object *o = json_object_new_object();

	for (int b = 0; b < TERRACE_HEAT_BUCKETS; b++) {
		char name[32];

		if (!bucket[b])
			continue;
		snprintf(name, sizeof(name), b < TERRACE_HEAT_BUCKETS - 1 ? "%lu" : "more", 1ul << b);
		number(o, name, bucket[b]);
	}
	return o;
}

static struct json_object *sense_json(const struct sense *sense, uint32_t tiers)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();

	number(o, "sampling", sense->sampling);
	flag(o, "spared", sense->spared);
	number(o, "lost", sense->lost);
	number(o, "ignored", sense->counts.ignored);
	for (uint32_t t = 0; t < tiers && t < TERRACE_HEAT_TIERS; t++) {
		struct json_object *tier = json_object_new_object();

		number(tier, "reads_told", sense->counts.reads[t]);
		json_object_object_add(tier, "read_us", latency_json(sense->counts.latency[t][0]));
		json_object_object_add(tier, "write_us", latency_json(sense->counts.latency[t][1]));
		json_object_array_add(list, tier);
	}
	json_object_object_add(o, "tiers", list);
	return o;
}

static struct json_object *heat_json(const struct driver *d)
{
	const struct engine *e = &d->engine;
	struct json_object *o = json_object_new_object();

	text(o, "kind", heat_kind_name(e->warmth.kind));
	text(o, "sense", d->sense);
	if (e->port->sense)
		json_object_object_add(o, "sensed", sense_json(e->port->sense, e->state.nr_tiers));
	number(o, "accesses", e->stats.accesses);
	number(o, "slow_reads", e->stats.slow_reads);
	number(o, "write_errors", e->warmth.errors);
	if (e->warmth.ralt) {
		struct ralt_stats r;

		ralt_stats(e->warmth.ralt, &r);
		number(o, "hot_limit_blocks", r.hot_limit);
		real(o, "hot_blocks", r.hot);
		real(o, "tracked_blocks", r.tracked);
		number(o, "records", r.records);
		number(o, "bytes_on_disk", r.bytes_on_disk);
	}
	if (e->climbs)
		real(o, "pinning_threshold", e->c.tuning.mapper.pinning_threshold);
	flag(o, "skewed", hear_skewed(e));
	real(o, "lasting_skew", shards_lasting(&e->shards));
	json_object_object_add(o, "lru_hit_rate_if_fast_were", ghost_json(e));
	json_object_object_add(o, "hit_rate_if", whatif_json(e));
	return o;
}

/* As the drive says itself, where it does. */
static void drive_json(const struct engine *e, uint32_t t, struct json_object *o)
{
	struct port_wear w = { 0 };

	if (!e->port->health || !e->port->health->wear(e->port->health, t, &w))
		return;
	real(o, "drive_written_bytes", w.written_bytes);
	number(o, "drive_percent_used", w.percent_used);
	number(o, "drive_critical_warning", w.critical);
}

static struct json_object *tiers_json(const struct engine *e)
{
	struct json_object *list = json_object_new_array();

	for (uint32_t t = 0; t < e->state.nr_tiers; t++) {
		struct json_object *o = json_object_new_object();

		text(o, "class", e->state.tier[t].class);
		number(o, "used_blocks", e->state.tier[t].used_blocks);
		number(o, "blocks", e->state.tier[t].blocks);
		number(o, "io_errors", e->state.tier[t].io_errors);
		if (e->failing_ns[t])
			real(o, "seconds_since_io_error", (double)(e->now_ns - e->failing_ns[t]) * 1e-9);
		if (e->timed_ns && t < TERRACE_HEAT_TIERS) {
			real(o, "quiet_read_us", e->pedal[t][0].brake.base_us);
			real(o, "quiet_write_us", e->pedal[t][1].brake.base_us);
		}
		real(o, "moves_may_take_bytes_per_second", e->c.budget[t].bytes_per_second);
		number(o, "read_by_moves_bytes", e->stats.read_bytes[t]);
		number(o, "written_by_moves_bytes", e->stats.written_bytes[t]);
		if (e->c.endurance[t].drive_writes_per_day > 0) {
			real(o, "endurance_saved_bytes", e->endurance[t].saved);
			real(o, "wear_price", endurance_price(&e->endurance[t], &e->c.endurance[t]));
		}
		drive_json(e, t, o);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *growth_json(const struct driver *d)
{
	const struct port_state *state = &d->engine.state;
	struct json_object *o = json_object_new_object();
	uint64_t room = 0;
	double days;

	for (uint32_t t = 0; t < state->nr_tiers; t++)
		room += state->tier[t].blocks - state->tier[t].used_blocks;
	days = growth_days_left(&d->growth, room);
	real(o, "over_seconds", (double)growth_window_ns(&d->growth) * 1e-9);
	number(o, "free_blocks", room);
	json_object_object_add(o, "days_until_full", days < 0 ? NULL : json_object_new_double(days));
	return o;
}

static struct json_object *scrub_json(const struct engine *e)
{
	struct json_object *o = json_object_new_object();
	const struct scrub *s = &e->scrub;

	number(o, "days", e->c.scrub_days);
	flag(o, "under_way", s->going);
	number(o, "passes", s->passes);
	number(o, "began_unix_seconds", s->going || s->passes ? s->began_s : 0);
	number(o, "ended_unix_seconds", s->ended_s);
	number(o, "regions", s->regions);
	number(o, "tables", s->tables);
	number(o, "read_bytes", s->read_bytes);
	number(o, "unreadable_blocks", s->unreadable);
	number(o, "damaged_regions", s->damaged);
	number(o, "bad_tables", s->bad_tables);
	return o;
}

static struct json_object *volume_json(const struct driver *d)
{
	const struct engine *e = &d->engine;
	struct json_object *o = json_object_new_object();

	text(o, "name", d->name);
	text(o, "nothing_moves_because", engine_still(e));
	flag(o, "claimed", e->claimed);
	text(o, "summaries", e->port->aged ? "mapped" : "region by region");
	flag(o, "evaluation", e->c.evaluate);
	number(o, "ticks", e->ticks);
	real(o, "fast_used", share(e->fast_used, e->fast_blocks));
	real(o, "fast_read_rate", share(e->state.fast_reads, e->state.reads));
	real(o, "lookup_hit_rate", share(e->state.fast_reads, e->state.fast_reads + e->state.vain_reads));
	json_object_object_add(o, "moves", moves_json(e));
	json_object_object_add(o, "limits", limits_json(e));
	json_object_object_add(o, "heat", heat_json(d));
	json_object_object_add(o, "tiers", tiers_json(e));
	json_object_object_add(o, "growth", growth_json(d));
	json_object_object_add(o, "scrub", scrub_json(e));
	if (d->follow) {
		struct json_object *files = json_object_new_object();

		follow_report(d->follow, files);
		json_object_object_add(o, "files", files);
	}
	return o;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

struct json_object *status_json(struct service *s)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	double up = (double)(service_now_ns() - s->started_ns) * 1e-9;

	real(o, "uptime_seconds", up);
	real(o, "cpu_share", up > 0 ? (double)cpu_ns() * 1e-9 / up : 0);
	number(o, "ticks", s->ticks);
	text(o, "config", s->config_path);
	for (uint32_t i = 0; i < CONFIG_MAX_VOLUMES; i++)
		if (s->driver[i].port)
			json_object_array_add(list, volume_json(&s->driver[i]));
	json_object_object_add(o, "volumes", list);
	return o;
}

static void explain_volume(struct driver *d, struct json_object *list)
{
	struct engine *e = &d->engine;
	uint64_t first = e->decisions > ENGINE_DECISIONS ? e->decisions - ENGINE_DECISIONS : 0;

	for (uint64_t n = e->decisions; n-- > first;) {
		const struct decision *one = explain_find(e, n);
		struct json_object *o;
		char line[400];

		if (!one)
			continue;
		o = json_object_new_object();
		explain_text(one, line, sizeof(line));
		text(o, "volume", d->name);
		number(o, "number", one->number);
		number(o, "region", one->region);
		text(o, "why", why_name(one->why));
		real(o, "score", one->score);
		text(o, "text", line);
		json_object_array_add(list, o);
	}
}

/* As the policy sees it now. */
static struct json_object *block_json(struct driver *d, uint64_t block)
{
	struct engine *e = &d->engine;
	struct warmth_region *look = calloc(1, sizeof(*look));
	struct json_object *o;
	uint32_t at = block % REGION_BLOCKS;
	int err = look ? warmth_look(&e->warmth, block / REGION_BLOCKS, true, look) : -ENOMEM;

	if (err) {
		free(look);
		return NULL;
	}
	o = json_object_new_object();
	number(o, "block", block);
	text(o, "kind", heat_kind_name(e->warmth.kind));
	text(o, "sense", d->sense);
	flag(o, "hot", upmask_test(&look->hot, at));
	json_object_object_add(o, "level", json_object_new_int(look->level[at]));
	number(o, "hot_blocks_of_region", upmask_count(&look->hot));
	free(look);
	return o;
}

struct json_object *explain_json(struct service *s, const char *what)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array(), *still = json_object_new_object();
	struct json_object *whatif = json_object_new_object(), *scrub = json_object_new_object();
	const char *block = what ? strchr(what, ' ') : NULL;
	size_t bytes = block ? (size_t)(block - what) : what ? strlen(what) : 0;

	for (uint32_t i = 0; i < CONFIG_MAX_VOLUMES; i++) {
		struct driver *d = &s->driver[i];
		char line[400];

		if (!d->port || (bytes && (strncmp(what, d->name, bytes) || d->name[bytes])))
			continue;
		explain_volume(d, list);
		text(still, d->name, engine_still(&d->engine));
		scrub_text(&d->engine, line, sizeof(line));
		text(scrub, d->name, line);
		json_object_object_add(whatif, d->name, whatif_json(&d->engine));
		if (block && d->engine.senses)
			json_object_object_add(o, "heat", block_json(d, strtoull(block + 1, NULL, 10)));
	}
	json_object_object_add(o, "nothing_moves_because", still);
	json_object_object_add(o, "scrub", scrub);
	json_object_object_add(o, "hit_rate_if", whatif);
	json_object_object_add(o, "decisions", list);
	return o;
}

static struct json_object *table_json(const struct tunable_table *table, const void *values)
{
	struct json_object *o = json_object_new_object();

	for (size_t k = 0; k < table->count; k++)
		real(o, table->rows[k].name, tunable_get(&table->rows[k], values));
	return o;
}

/* Of each tier, whether set for it alone or for all. */
static struct json_object *of_tiers_json(const struct settings *c)
{
	struct json_object *list = json_object_new_array();

	for (int t = 0; t < TERRACE_MAX_RESULT_TIERS; t++) {
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "budget", table_json(&budget_tunable_table, &c->budget[t]));
		json_object_object_add(o, "endurance", table_json(&endurance_tunable_table, &c->endurance[t]));
		json_object_object_add(o, "price", table_json(&price_tunable_table, &c->price[t]));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *profiles_json(uint32_t profiles)
{
	struct json_object *list = json_object_new_array();

	for (uint32_t i = 0; i < CONFIG_PROFILES; i++)
		if (profiles >> i & 1)
			json_object_array_add(list, json_object_new_string(config_profile_name(i)));
	return list;
}

struct json_object *settings_json(const struct settings *c)
{
	struct json_object *o = json_object_new_object();

	text(o, "heat", heat_kind_name(c->heat));
	text(o, "rule", choose_rule_name(c->rule));
	text(o, "sense", sense_kind_name(c->sense));
	number(o, "sampling", c->sampling);
	number(o, "heat_sample", c->heat_sample);
	number(o, "cache_blocks", c->cache_blocks);
	real(o, "fill", c->fill);
	flag(o, "evaluate", c->evaluate);
	flag(o, "claim", c->claim);
	flag(o, "drive", c->drive);
	flag(o, "files", c->files);
	json_object_object_add(o, "profiles", profiles_json(c->profiles));
	flag(o, "retain", c->retain);
	flag(o, "ban_dead", c->ban_dead);
	flag(o, "trim_dead", c->trim_dead);
	number(o, "dead_wait_ms", c->dead_wait_ms);
	number(o, "scrub_days", c->scrub_days);
	flag(o, "ignore_compactions", c->ignore_compactions);
	flag(o, "inherit_heat", c->inherit_heat);
	flag(o, "cold_streams", c->cold_streams);
	real(o, "cold_share", c->cold_share);
	real(o, "bottom_share", c->bottom_share);
	flag(o, "fast_logs", c->fast_logs);
	flag(o, "database_logs", c->database_logs);
	flag(o, "pin_tails", c->pin_tails);
	real(o, "pin_share", c->pin_share);
	real(o, "tail_share", c->tail_share);
	for (size_t i = 0; i < tuning_part_count; i++) {
		const struct tunable_table *table = tuning_parts[i].table;

		json_object_object_add(o, table->policy, table_json(table, (const char *)&c->tuning + tuning_parts[i].offset));
	}
	json_object_object_add(o, "tiers", of_tiers_json(c));
	return o;
}

struct json_object *config_json(struct service *s)
{
	struct json_object *o = json_object_new_object(), *volumes = json_object_new_object();
	const struct config *c = &s->config;

	text(o, "state_directory", c->state_directory);
	text(o, "socket", c->socket);
	text(o, "log_level", log_level_name(c->log_level));
	number(o, "tick_ms", c->tick_ms);
	flag(o, "lock_memory", c->lock_memory);
	flag(o, "drive_all", c->drive_all);
	json_object_object_add(o, "policy", settings_json(&c->policy));
	for (uint32_t i = 0; i < c->nr_volumes; i++)
		json_object_object_add(volumes, c->volume[i].name, settings_json(&c->volume[i].settings));
	json_object_object_add(o, "volumes", volumes);
	json_object_object_add(o, "waits_for_next_start", waits_json(s));
	json_object_object_add(o, "refused", refused_json(s));
	return o;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * dmsetup message NAME 0 ...
 *
 *	set KEY=VALUE...		change parameters of the running drive
 *	cut				power off, now, for the whole group
 *	arm write|bytes|flush|fua|barrier|discard N [after]
 *	arm time T			power off at the N-th, or in T
 *	disarm
 *	revive				power on
 *	error add ..., error clear	see fault.c
 *	release				what faults hold goes on
 *	dead on|off			the drive fails all, but keeps its power
 *	reset				counters to zero
 */
#include "drive.h"

static int complain(const struct drive *d, const char *what, int r)
{
	DMERR("%s: %s", d->name, what);
	return r;
}

static int do_set(struct drive_target *t, unsigned int argc, char **argv)
{
	struct drive *d = t->drive;
	struct drive_config *c = kmemdup(&t->config, sizeof(*c), GFP_KERNEL);
	char *error = "Out of memory";
	unsigned int i;
	int r = -ENOMEM;

	if (!c)
		return complain(d, error, r);
	r = -EINVAL;
	for (i = 1; i < argc; i++) {
		error = "Parameter shows in queue limits: load a new table";
		if (drive_config_reloads(argv[i]) ||
		    drive_config_set(c, argv[i], &error))
			goto out;
	}
	if (drive_config_check(c, d->bytes, &error))
		goto out;
	t->config = *c;
	drive_apply(d, c, d->bytes);
	r = 0;
out:
	kfree(c);
	return r ? complain(d, error, r) : 0;
}

static int do_cut(struct drive_target *t, unsigned int argc, char **argv)
{
	drive_power_cut(t->drive->power);
	drive_power_settle(t->drive->power);
	return 0;
}

static const char * const trigger_names[TRIGGER_KINDS] = {
	[TRIGGER_WRITE] = "write", [TRIGGER_BYTES] = "bytes",
	[TRIGGER_FLUSH] = "flush", [TRIGGER_FUA] = "fua",
	[TRIGGER_BARRIER] = "barrier", [TRIGGER_DISCARD] = "discard",
};

static int do_arm(struct drive_target *t, unsigned int argc, char **argv)
{
	struct drive *d = t->drive;
	bool after = argc == 4 && !strcmp(argv[3], "after");
	int kind;
	u64 n;

	if (argc < 3 || argc > 4 || (argc == 4 && !after))
		return complain(d, "Usage: arm EVENT N [after], arm time T", -EINVAL);
	if (drive_parse_number(argv[2], &n, !strcmp(argv[1], "time")) || !n)
		return complain(d, "arm: the number must be at least 1", -EINVAL);
	if (!strcmp(argv[1], "time")) {
		drive_power_cut_at(d->power, n);
		return 0;
	}
	kind = match_string(trigger_names, TRIGGER_KINDS, argv[1]);
	if (kind < 0)
		return complain(d, "arm: no such event (write bytes flush fua barrier discard)",
				-EINVAL);
	spin_lock_irq(&d->queue_lock);
	d->triggers[kind].left = n;
	d->triggers[kind].after = after;
	spin_unlock_irq(&d->queue_lock);
	return 0;
}

static int do_disarm(struct drive_target *t, unsigned int argc, char **argv)
{
	struct drive *d = t->drive;

	drive_power_cut_at(d->power, U64_MAX);
	spin_lock_irq(&d->queue_lock);
	memset(d->triggers, 0, sizeof(d->triggers));
	spin_unlock_irq(&d->queue_lock);
	return 0;
}

static int do_revive(struct drive_target *t, unsigned int argc, char **argv)
{
	if (drive_power_revive(t->drive->power))
		return complain(t->drive, "revive: the power is on", -EBUSY);
	return 0;
}

static int do_error(struct drive_target *t, unsigned int argc, char **argv)
{
	struct drive *d = t->drive;
	int r = -EINVAL;

	if (argc == 2 && !strcmp(argv[1], "clear")) {
		drive_fault_clear(d);
		return 0;
	}
	if (argc > 2 && !strcmp(argv[1], "add"))
		r = drive_fault_add(d, argc - 2, argv + 2);
	if (r)
		complain(d, "Usage: error clear, error add KINDS START LENGTH [OPTION...]", r);
	return r;
}

static int do_release(struct drive_target *t, unsigned int argc, char **argv)
{
	drive_release(t->drive);
	return 0;
}

static int do_dead(struct drive_target *t, unsigned int argc, char **argv)
{
	struct drive *d = t->drive;
	bool dead;

	if (argc != 2 || kstrtobool(argv[1], &dead))
		return complain(d, "Usage: dead on|off", -EINVAL);
	spin_lock_irq(&d->queue_lock);
	WRITE_ONCE(d->dead, dead);
	spin_unlock_irq(&d->queue_lock);
	return 0;
}

static int do_reset(struct drive_target *t, unsigned int argc, char **argv)
{
	struct drive *d = t->drive;
	struct drive_clock *c = &d->clock;

	spin_lock(&d->media_lock);
	spin_lock_irq(&d->queue_lock);
	memset(&d->counters, 0, sizeof(d->counters));
	c->seeks = 0;
	c->host_bytes = 0;
	c->programmed = 0;
	c->folded = 0;
	c->rmw = 0;
	spin_unlock_irq(&d->queue_lock);
	spin_unlock(&d->media_lock);
	return 0;
}

static const struct {
	const char *name;
	int (*act)(struct drive_target *t, unsigned int argc, char **argv);
} messages[] = {
	{ "set", do_set },
	{ "cut", do_cut },
	{ "arm", do_arm },
	{ "disarm", do_disarm },
	{ "revive", do_revive },
	{ "error", do_error },
	{ "release", do_release },
	{ "dead", do_dead },
	{ "reset", do_reset },
};

int drive_message(struct dm_target *ti, unsigned int argc, char **argv,
		  char *result, unsigned int maxlen)
{
	struct drive_target *t = ti->private;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(messages); i++)
		if (argc && !strcmp(argv[0], messages[i].name))
			return messages[i].act(t, argc, argv);
	return complain(t->drive, "Unknown message (set cut arm disarm revive error release dead reset)",
			-EINVAL);
}

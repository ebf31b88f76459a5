// SPDX-License-Identifier: GPL-2.0
/*
 * Leads the allocator: on tier N it finds room from chunk first[N] on, as if all
 * chunks before that one were full. Only so a test that writes some megabytes gets
 * places behind the second terabyte of a tier; all that happens to them there is
 * the module's own doing.
 *
 *	echo 0,32767 > /sys/module/terrace_hand/parameters/first
 *
 * The refill worker is the hand's user (kmod/space.c); a probe at its begin moves the
 * hand of every volume forward, never back, and not beyond the tier's end. What
 * stands ready already is handed out first. Loaded after dm-terrace, of the same build.
 */
#include <linux/kprobes.h>
#include <linux/module.h>

#include "../../kmod/terrace.h"

static unsigned int first[TERRACE_MAX_TIERS];
module_param_array(first, uint, NULL, 0644);
MODULE_PARM_DESC(first, "chunk of each tier from which on room is looked for");

static int lead(struct kprobe *probe, struct pt_regs *regs)
{
	struct work_struct *work = (void *)regs_get_kernel_argument(regs, 0);
	struct terrace *tr = container_of(work, struct terrace, refill_work);
	u32 t;

	for (t = 0; t < tr->nr_tiers; t++) {
		struct tr_tier *tier = &tr->tier[t];
		u32 chunk = READ_ONCE(first[t]);

		if (tier->hand < chunk && chunk < READ_ONCE(tier->nr_chunks)) {
			tier->hand = chunk;
			tier->hand_block = 0;
		}
	}
	return 0;
}

static struct kprobe probe = { .symbol_name = "dm_terrace:refill_fn", .pre_handler = lead };

static int __init hand_init(void)
{
	return register_kprobe(&probe);
}

static void __exit hand_exit(void)
{
	unregister_kprobe(&probe);
}

module_init(hand_init);
module_exit(hand_exit);

MODULE_DESCRIPTION("Terrace test: leads the allocator");
MODULE_LICENSE("GPL");

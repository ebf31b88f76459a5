// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The offline tools, on a volume with damaged structures: terracectl's own code in this process, on
 * images in memory. Whatever the damage, each ends with 0 or 1, only repair --in-place writes, and
 * their answers agree: see the questions below.
 *
 * The volume is that of $OFFLINE/fast and slow (tests/fuzz/offline.bash), read once; what an input
 * changes is put back after it. An input is a byte that picks the question, one with bits for how
 * it is put together, and patches, each of a structure, an offset in it, a length and bytes.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <sanitizer/allocator_interface.h>

#include "fuzz.h"
#include "core/pack.h"
#include "ctl/ctl.h"
#include "faults/chance.h"
#include "faults/structures.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed);

#define RAW		0x01	/* checksums stay wrong */
#define ONE_LABEL	0x02	/* the label's copy stays as it was */
#define BOTH		0x04	/* the mirror of the metadata, if there is one, is damaged as well */

#define ALLOC_SLOTS	(1u << 15)

/* ---- images in memory ------------------------------------------------------------ */

struct image {
	char path[32];
	int fd;
	ino_t ino;
	u64 blocks;
	u8 *is, *was;		/* as the tools find it; as it was read */
};

static struct image image[2];

/* Blocks that are to be put back: */
struct spot {
	struct image *image;
	u64 block;
};

static struct spot changed[65536];
static u32 nr_changed;
static u32 always;		/* … after every input: the first ones */
static u32 mirrored;		/* of them those at first in which the mirror is the same */
static u64 mirror_start;	/* on the slow device, 0: none */

static void change(struct image *img, u64 block, u64 nr)
{
	for (; nr; block++, nr--) {
		hold(nr_changed < ARRAY_SIZE(changed));
		changed[nr_changed++] = (struct spot){ img, block };
	}
}

static void put_back(void)
{
	for (u32 k = 0; k < nr_changed; k++) {
		u64 byte = changed[k].block * TERRACE_BLOCK_BYTES;

		memcpy(changed[k].image->is + byte, changed[k].image->was + byte, TERRACE_BLOCK_BYTES);
	}
	nr_changed = always;
}

/* Holes stay holes. */
static void copy_data(int from, int to, off_t bytes)
{
	static u8 buf[1 << 20];

	for (off_t at = lseek(from, 0, SEEK_DATA), end; at >= 0 && at < bytes; at = lseek(from, end, SEEK_DATA))
		for (end = lseek(from, at, SEEK_HOLE); at < end; ) {
			ssize_t n = pread(from, buf, end - at < (off_t)sizeof(buf) ? end - at : (off_t)sizeof(buf), at);

			hold(n > 0 && pwrite(to, buf, n, at) == n);
			at += n;
		}
}

static void open_image(struct image *img, const char *folder, const char *name)
{
	char *path = ctl_text("%s/%s", folder, name);
	int from = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (from < 0 || fstat(from, &st)) {
		perror(path);
		exit(2);
	}
	img->fd = memfd_create(name, MFD_CLOEXEC);
	img->blocks = st.st_size / TERRACE_BLOCK_BYTES;
	snprintf(img->path, sizeof(img->path), "/proc/self/fd/%d", img->fd);
	hold(!ftruncate(img->fd, st.st_size));
	copy_data(from, img->fd, st.st_size);
	img->is = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, img->fd, 0);
	img->was = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, from, 0);
	hold(img->is != MAP_FAILED && img->was != MAP_FAILED && !fstat(img->fd, &st));
	img->ino = st.st_ino;
	close(from);
	free(path);
}

/* ---- what can be damaged --------------------------------------------------------- */

enum kind { LABEL, SUPER, OTHER_SUPER, JOURNAL, BITMAP, PAGE, OWNERS, TABLE, PACK };

struct target {
	enum kind kind;
	struct image *image;
	u64 block;		/* of the image */
	u32 blocks, reach;	/* bytes that can be damaged: those that say something, and a few more */
	u64 seq;		/* JOURNAL */
	struct node *node;	/* PAGE */
	bool hit;
};

static struct target target[256];	/* of an input one byte */
static u32 nr_targets;

static u8 *bytes_of(const struct target *t) { return t->image->is + t->block * TERRACE_BLOCK_BYTES; }

static struct target *add_target(enum kind kind, struct image *img, u64 block, u32 blocks)
{
	struct target *t = &target[nr_targets++];
	u32 all = blocks * TERRACE_BLOCK_BYTES;

	hold(nr_targets <= ARRAY_SIZE(target) && block + blocks <= img->blocks);
	*t = (struct target){ .kind = kind, .image = img, .block = block, .blocks = blocks, .reach = all };
	while (t->reach > 64 && !bytes_of(t)[t->reach - 1])
		t->reach--;
	t->reach = t->reach + 64 < all ? t->reach + 64 : all;
	return t;
}

static void add_meta(void)
{
	struct image *img = &image[0];
	u64 newest = super.generation & 1, start = label.meta_start;

	for (u32 i = 0; i < ARRAY_SIZE(image); i++)
		add_target(LABEL, &image[i], 0, 1);
	add_target(SUPER, img, start + newest, 1);
	add_target(OTHER_SUPER, img, start + !newest, 1);
	for (u64 k = 0; k <= journal_length(); k++)	/* and the block behind it */
		add_target(JOURNAL, img, start + super.journal_start + (super.tail_block_seq + k) % super.journal_blocks,
			   1)->seq = super.tail_block_seq + k;
	for (u64 k = 0; k < super.bitmap_blocks; k++)
		add_target(BITMAP, img, start + super.bitmap_start[newest] + k, 1);
	for (u32 k = 0; k < nr_nodes; k++)
		add_target(PAGE, img, start + node[k].block, node[k].blocks)->node = &node[k];
	for (u32 k = 0; k < nr_targets; k++)
		change(target[k].image, target[k].block, target[k].kind == LABEL ? TERRACE_LABEL_COPIES : target[k].blocks);
	mirrored = nr_changed;
	for (u32 k = 0; k < mirrored && mirror_start; k++)
		if (changed[k].image == img && changed[k].block >= start)
			change(&image[1], changed[k].block - start + mirror_start, 1);
	always = nr_changed;
}

/* A shelf's tables are many, and most of them name nobody. */
static bool names_somebody(const struct terrace_table_disk *table)
{
	u32 k = 0;

	while (k < TERRACE_TABLE_OWNERS && table->owner[k] == __cpu_to_le64(TERRACE_NO_OWNER))
		k++;
	return k < TERRACE_TABLE_OWNERS;
}

/* What the shelves say, and copies of headers of packs on slots. */
static void add_shelves(struct image *img, int fd, u64 first)
{
	for (u64 block = first; block < img->blocks; block++) {
		off_t data = lseek(fd, block * TERRACE_BLOCK_BYTES, SEEK_DATA);
		const struct terrace_pack_disk *pack;
		struct target *t;

		if (data < 0)
			return;
		block = data / TERRACE_BLOCK_BYTES;
		pack = (const void *)(img->was + block * TERRACE_BLOCK_BYTES);
		switch (__le32_to_cpu(pack->magic)) {
		case TERRACE_OWNER_MAGIC:
			add_target(OWNERS, img, block, 1);
			break;
		case TERRACE_TABLE_MAGIC:
			if (names_somebody((const void *)pack))
				add_target(TABLE, img, block, 1);
			break;
		case TERRACE_PACK_MAGIC:	/* and a little of what is in it */
			t = add_target(PACK, img, block, __le16_to_cpu(pack->blocks));
			t->reach = __le32_to_cpu(pack->bytes) + 512;
		}
	}
}

/* ---- right checksums ------------------------------------------------------------- */

/* The map and the journal have it, too. */
static void change_number(u8 *block, u32 bytes, u32 from, u32 to)
{
	for (u32 k = 0; k + sizeof(u32) <= bytes; k += sizeof(u32))
		if (!memcmp(block + k, &from, sizeof(from)))
			memcpy(block + k, &to, sizeof(to));
}

static void seal_pack(const struct target *t)
{
	struct terrace_pack_disk *pack = (void *)bytes_of(t);
	u32 most = t->blocks * TERRACE_BLOCK_BYTES, bytes = __le32_to_cpu(pack->bytes);
	u32 from = pack->crc;

	reseal(pack, bytes < 256 || bytes > most ? 256 : bytes, offsetof(struct terrace_pack_disk, crc));
	for (u32 k = 0; k < nr_targets; k++) {
		struct target *in = &target[k];

		if (in->kind != JOURNAL && in->kind != PAGE)
			continue;
		change_number(bytes_of(in), in->blocks * TERRACE_BLOCK_BYTES, from, pack->crc);
		in->hit = true;
	}
}

static void seal_target(const struct target *t)
{
	void *block = bytes_of(t);

	switch (t->kind) {
	case LABEL:
		reseal(block, TERRACE_BLOCK_BYTES, offsetof(struct terrace_label_disk, crc));
		break;
	case SUPER:
	case OTHER_SUPER:
		reseal(block, TERRACE_BLOCK_BYTES, offsetof(struct terrace_super_disk, crc));
		break;
	case JOURNAL:
		seal_journal(t->seq);
		break;
	case BITMAP:
		reseal(block, TERRACE_BLOCK_BYTES, offsetof(struct terrace_page_disk, crc));
		break;
	case PAGE:
		seal_node(t->node);
		break;
	case OWNERS:
	case TABLE:
		reseal(block, TERRACE_BLOCK_BYTES, offsetof(struct terrace_owners_disk, crc));
		break;
	case PACK:
		seal_pack(t);
	}
}

/* Packs first: they change others. Superblocks by themselves only if a page has not done it. */
static void seal_all(void)
{
	for (int kind = PACK; kind >= LABEL; kind--)
		for (u32 k = 0; k < nr_targets; k++)
			if (target[k].kind == (enum kind)kind && target[k].hit)
				seal_target(&target[k]);
}

static void copy_block(struct image *to, u64 block, const struct image *from, u64 other)
{
	memcpy(to->is + block * TERRACE_BLOCK_BYTES, from->is + other * TERRACE_BLOCK_BYTES, TERRACE_BLOCK_BYTES);
}

static void damage(const uint8_t *data, size_t size, u8 how)
{
	u32 bytes;

	for (u32 k = 0; k < nr_targets; k++)
		target[k].hit = false;
	for (; size >= 5; data += 4 + bytes, size -= 4 + bytes) {
		struct target *t = &target[data[0] % nr_targets];
		u32 from = (data[1] | data[2] << 8) % t->reach;

		bytes = 1 + data[3] % 8;
		if (bytes > size - 4)
			bytes = size - 4;
		if (from + bytes > t->blocks * TERRACE_BLOCK_BYTES)
			continue;
		if (t->kind >= OWNERS)
			change(t->image, t->block, t->blocks);
		memcpy(bytes_of(t) + from, data + 4, bytes);
		t->hit = true;
	}
	if (!(how & RAW))
		seal_all();
	for (u32 k = 0; k < always - mirrored && how & BOTH; k++)
		copy_block(&image[1], changed[mirrored + k].block, &image[0], changed[mirrored + k].block - mirror_start + label.meta_start);
	for (u32 i = 0; i < ARRAY_SIZE(image) && !(how & ONE_LABEL); i++)
		copy_block(&image[i], 1, &image[i], 0);
}

/* ---- the tools ------------------------------------------------------------------- */

static bool running, writing;
static jmp_buf leave;
static int first_fd;
static FILE *nowhere;

/* What a tool that ends by exit() leaves is given back: memory … */
static const volatile void *alloc[ALLOC_SLOTS];	/* by hash, NULL: free */
static u32 nr_allocs;

static u32 alloc_slot(const volatile void *p)
{
	u32 k = ((uintptr_t)p >> 4) * 0x9e3779b1u % ALLOC_SLOTS;

	while (alloc[k] && alloc[k] != p)
		k = (k + 1) % ALLOC_SLOTS;
	return k;
}

static void note_alloc(const volatile void *p, size_t bytes)
{
	(void)bytes;
	if (!running || !p || nr_allocs > ALLOC_SLOTS / 2)
		return;
	nr_allocs++;
	alloc[alloc_slot(p)] = p;
}

/* Those behind it move up, so that they are still found. */
static void note_free(const volatile void *p)
{
	u32 k = alloc_slot(p);

	if (!running || !p || !alloc[k])
		return;
	nr_allocs--;
	alloc[k] = NULL;
	for (k = (k + 1) % ALLOC_SLOTS; alloc[k]; k = (k + 1) % ALLOC_SLOTS) {
		p = alloc[k];
		alloc[k] = NULL;
		alloc[alloc_slot(p)] = p;
	}
}

/* What is left after a tool has ended by itself is for libFuzzer to complain of. */
static void forget(void)
{
	if (nr_allocs)
		memset(alloc, 0, sizeof(alloc));
	nr_allocs = 0;
}

/* … and descriptors. */
static void clean_up(void)
{
	for (u32 k = 0; k < ALLOC_SLOTS && nr_allocs; k++) {
		if (!alloc[k])
			continue;
		free((void *)alloc[k]);
		alloc[k] = NULL;
		nr_allocs--;
	}
	close_range(first_fd, ~0u, 0);
}

__attribute__((noreturn)) void __real_exit(int status);
__attribute__((noreturn)) void __wrap_exit(int status);
void __wrap_exit(int status)
{
	if (running)
		longjmp(leave, 1 + status);
	__real_exit(status);
}

ssize_t __real_pwrite(int fd, const void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t bytes, off_t offset)
{
	struct stat st;

	hold(!running || writing);
	hold(!fstat(fd, &st));
	for (u32 i = 0; i < ARRAY_SIZE(image) && running; i++)
		if (image[i].ino == st.st_ino)
			change(&image[i], offset / TERRACE_BLOCK_BYTES, bytes / TERRACE_BLOCK_BYTES);
	return __real_pwrite(fd, buf, bytes, offset);
}

static int call(const struct ctl_command *command, const char *args)
{
	FILE *out = stdout, *err = stderr;
	char words[128], *argv[16], *save;
	int argc = 0, status;

	snprintf(words, sizeof(words), "%s %s --limit 5", command->name, args);
	if (command == &ctl_dump_command)
		snprintf(words, sizeof(words), "dump %s", args);
	for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	for (u32 i = 0; i < ARRAY_SIZE(image); i++)
		argv[argc++] = image[i].path;
	argv[argc] = NULL;
	optind = 0;
	if (nowhere)
		stdout = stderr = nowhere;
	running = true;
	status = setjmp(leave);
	if (status) {
		running = false;
		clean_up();
		status--;
	} else {
		status = command->run(command, argc, argv);
		running = false;
		forget();
	}
	stdout = out;
	stderr = err;
	hold(status == CTL_OK || status == CTL_PROBLEM);
	return status;
}

/* What is larger than this volume needs is not there; such an answer is one, too. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1:max_allocation_size_mb=64:malloc_context_size=6:quarantine_size_mb=16";
}

/* ---- questions ------------------------------------------------------------------- */

static void check_or(const char *args) { call(&ctl_check_command, args); }
static void dump(const char *args) { call(&ctl_dump_command, args); }
static void salvage(const char *args) { call(&ctl_salvage_command, args); }
static void repair(const char *args) { call(&ctl_repair_command, args); }

/* What dump cannot read, check does not call sound. */
static void agree(const char *args)
{
	hold(!call(&ctl_dump_command, "super") || call(&ctl_check_command, args));
}

/* A sound volume can be dumped (but for packs: those that the journal drops may be gone), … */
static void sound_dump(const char *args)
{
	hold(call(&ctl_check_command, "--full") || !call(&ctl_dump_command, args));
}

/* … and nothing of it is lost. */
static void sound_salvage(const char *args)
{
	hold(call(&ctl_check_command, "--full") || !call(&ctl_salvage_command, args));
}

/* Of features that only allow reading check takes note, and repair does not know what it would break. */
static bool read_only(void)
{
	return ((struct terrace_super_disk *)at(0))->compat_ro || ((struct terrace_super_disk *)at(1))->compat_ro;
}

static void sound_repair(const char *args)
{
	hold(read_only() || call(&ctl_check_command, "--full") || !call(&ctl_repair_command, args));
}

/* What was repaired without loss is sound. */
static void repaired(const char *args)
{
	int status;

	writing = true;
	status = call(&ctl_repair_command, args);
	writing = false;
	hold(status || !call(&ctl_check_command, "--full"));
}

struct question {
	void (*ask)(const char *args);
	const char *args;
};

static const struct question question[] = {
	{ agree, "" }, { agree, "--full" }, { check_or, "--full --json" },
	{ sound_dump, "journal" }, { sound_dump, "map" }, { sound_dump, "space" },
	{ sound_salvage, "--dry-run" }, { sound_repair, "--dry-run" }, { repaired, "--in-place" },
	{ dump, "journal" }, { dump, "map" }, { dump, "space" }, { dump, "packs" }, { dump, "all" }, { dump, "--json all" },
	{ salvage, "--dry-run" }, { salvage, "--dry-run --json" }, { salvage, "--dry-run --doubtful" },
	{ repair, "--dry-run" }, { repair, "--dry-run --json" },
};

/* These read the shelves from end to end: asked instead, if $SHELVES is set. */
static const struct question shelves_question[] = {
	{ check_or, "--owners" }, { dump, "--range 0 owners" }, { salvage, "--dry-run --older" },
	{ salvage, "--dry-run --from-shelves" }, { repair, "--dry-run --from-shelves" },
};

static bool shelves;

static void ask(u8 what)
{
	const struct question *q = shelves ? &shelves_question[what % ARRAY_SIZE(shelves_question)] :
					     &question[what % ARRAY_SIZE(question)];

	q->ask(q->args);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = getenv("OFFLINE");
	static char buffer[BUFSIZ];	/* not of a tool's memory */

	(void)argc;
	(void)argv;
	if (!getenv("SAY"))
		nowhere = fopen("/dev/null", "w");
	shelves = getenv("SHELVES");
	setvbuf(nowhere ? nowhere : stdout, buffer, _IOFBF, sizeof(buffer));
	open_image(&image[0], folder ? folder : ".", "fast");
	open_image(&image[1], folder ? folder : ".", "slow");
	hold(!tr_label_decode(&label, image[1].is));
	mirror_start = label.flags & TERRACE_LABEL_META_SYNC ? label.meta_start : 0;
	hold(!tr_label_decode(&label, image[0].is));
	meta = image[0].is + label.meta_start * TERRACE_BLOCK_BYTES;
	hold(find_structures());
	add_meta();
	for (u32 i = 0; i < ARRAY_SIZE(image); i++)
		add_shelves(&image[i], image[i].fd, i ? TERRACE_LABEL_COPIES : label.data_start);
	first_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(first_fd);
	hold(!__sanitizer_install_malloc_and_free_hooks(note_alloc, note_free) || true);
	return 0;
}

/* ---- inputs that make sense ------------------------------------------------------ */

/* Those at limits are where mistakes are. */
static u64 number(const u8 *field, u32 width)
{
	const struct tr_super_tier *tier = &super.tier[below(super.nr_tiers)];
	u64 was = 0;

	memcpy(&was, field, width);
	const u64 limit[] = {
		0, ~0ull >> below(64), 1ull << below(64), was ^ 1ull << below(64), was + below(5) - 2,
		super.virtual_blocks + below(3) - 1, super.meta_blocks + below(3) - 1,
		tr_place(tier - super.tier, tier->data_blocks + below(3) - 1),
	};

	return limit[below(ARRAY_SIZE(limit))];
}

/* Kinds are as likely as each other, however many there are of one, and fields that say something likelier. */
static size_t add_patch(uint8_t *data, size_t size, size_t most)
{
	u32 k = below(nr_targets), from, width = 1u << below(4);
	enum kind kind = below(PACK + 1);
	u64 value;

	for (u32 left = nr_targets; left && target[k].kind != kind; left--)
		k = (k + 1) % nr_targets;
	for (u32 left = 4; left; left--) {
		from = below(target[k].reach / width) * width;
		if (bytes_of(&target[k])[from])
			break;
	}
	value = number(bytes_of(&target[k]) + from, width);
	if (size + 4 + width > most)
		return size;
	data[size] = k;
	data[size + 1] = from;
	data[size + 2] = from >> 8;
	data[size + 3] = width - 1;
	memcpy(data + size + 4, &value, width);
	return size + 4 + width;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
	chance = seed;
	if (most < 16 || below(3) == 0)
		return LLVMFuzzerMutate(data, size, most);
	if (size < 2 || below(2))
		size = 2;	/* begins anew */
	if (size == 2 || !below(4)) {
		data[0] = any();
		data[1] = below(8) ? any() & ~RAW : any();
	}
	return add_patch(data, size, most);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	damage(data + 2, size - 2, data[1]);
	ask(data[0]);
	put_back();
	return 0;
}

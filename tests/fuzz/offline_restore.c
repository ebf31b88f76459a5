// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * With $RESTORE set: a dump that was changed is refused before anything is written, or it is written
 * to labels and metadata areas only.
 *
 * An input is a byte with how the dump is made and used, one that is not used, and changes of
 * lines, of CHANGE_BYTES each: the line, what happens to it, where in it, a value. $KEEP: where the
 * changed dump goes as well.
 */
#include "fuzz/offline.h"
#include "faults/chance.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

#define JSON		0x01
#define DRY_RUN		0x02
#define WIPED		0x04	/* the devices hold nothing any more */
#define MISCOUNTED	0x08	/* the text's last line says how many items there were before */

#define CHANGE_BYTES	12
#define MOST_LINES	8192
#define MOST_BYTES	(1u << 20)

enum { NUMBER, REMOVE, REPEAT, MOVE, LETTER, CUT, VALUE, NAME, NR_CHANGES };

struct line {
	const char *text;
	u32 bytes;
};

/* As text, as JSON: */
static struct dumped {
	char *text;
	struct line line[MOST_LINES];
	u32 nr;
} dumped[2];

static struct line line[MOST_LINES];	/* of the one that is changed */
static u32 nr_lines;
static char room[MOST_BYTES];		/* for lines that are new */
static u32 used;

void set_up_restore(void)
{
	for (u32 k = 0; k < 2; k++) {
		struct dumped *d = &dumped[k];
		size_t bytes;

		hold(!call_into(&ctl_dump_command, k ? "--all --json" : "--all", DUMP));
		d->text = file_read(DUMP, &bytes);
		for (char *at = d->text, *end; *at && d->nr < MOST_LINES; at = end + 1) {
			end = strchrnul(at, '\n');
			d->line[d->nr++] = (struct line){ at, end - at };
			if (!*end)
				break;
		}
	}
}

/* @from to @from + @bytes of it becomes @by. */
static void replace(struct line *l, u32 from, u32 bytes, const char *by)
{
	u32 more = strlen(by), all = l->bytes - bytes + more;
	char *new = room + used;

	if (used + all > MOST_BYTES)
		return;
	used += all;
	memcpy(new, l->text, from);
	memcpy(new + from, by, more);
	memcpy(new + from + more, l->text + from + bytes, l->bytes - from - bytes);
	*l = (struct line){ new, all };
}

/* Where the line's @nr-th run of bytes between one of @begin and one of @end is, counted round; a number, if @digits. */
static bool find(const struct line *l, u32 nr, const char *begin, const char *end, bool digits, u32 *from, u32 *bytes)
{
	for (u32 turn = 0, found = 0; turn < 2; turn++, nr %= found, found = 0) {
		for (u32 k = 1; k < l->bytes; k++) {
			bool is = strchr(begin, l->text[k - 1]) && (!digits || (l->text[k] >= '0' && l->text[k] <= '9'));

			if (!is || found++ != nr || !turn)
				continue;
			for (*from = k; k < l->bytes && !strchr(end, l->text[k]); k++)
				;
			*bytes = k - *from;
			return true;
		}
		if (!found)
			return false;
	}
	return false;
}

/* Instead of a value: nothing, others' types, words. */
static const char *const odd_value[] = {
	"", "null", "[]", "{}", "\"\"", "\"x\"", "-1", "1e99", "true", "[[]]", "[null]", "{\"i\":null}", "0x10", "label", "both", "raw",
};

static void remove_line(u32 k)
{
	memmove(&line[k], &line[k + 1], (--nr_lines - k) * sizeof(line[0]));
}

static void insert_line(u32 k, struct line l)
{
	if (nr_lines == MOST_LINES)
		return;
	memmove(&line[k + 1], &line[k], (nr_lines++ - k) * sizeof(line[0]));
	line[k] = l;
}

static void change_line(const uint8_t *data)
{
	u32 k, at = data[3], from, bytes;
	struct line *l, old;
	char text[24];
	u64 value;

	if (!nr_lines)
		return;
	k = (data[0] | data[1] << 8) % nr_lines;
	l = &line[k];
	old = *l;
	memcpy(&value, data + 4, sizeof(value));
	switch (data[2] % NR_CHANGES) {
	case NUMBER:
		snprintf(text, sizeof(text), "%llu", value);
		if (find(l, at, "=: -\"", " ,-\"", true, &from, &bytes))
			replace(l, from, bytes, text);
		break;
	case REMOVE:
		remove_line(k);
		break;
	case REPEAT:
		for (u32 n = at % 64 + 1; n; n--)
			insert_line(k, old);
		break;
	case MOVE:
		remove_line(k);
		insert_line(value % (nr_lines + 1), old);
		break;
	case LETTER:
		snprintf(text, sizeof(text), "%c", (char)value);
		if (l->bytes)
			replace(l, at % l->bytes, 1, text);
		break;
	case CUT:
		nr_lines = k + 1;
		l->bytes = at % (l->bytes + 1);
		break;
	case VALUE:
		if (find(l, at, "=:", " ,", false, &from, &bytes))
			replace(l, from, bytes, odd_value[value % ARRAY_SIZE(odd_value)]);
		break;
	case NAME:	/* that of a key of another line */
		old = line[value % nr_lines];
		snprintf(text, sizeof(text), "%.*s", (int)(old.bytes < 20 ? old.bytes : 20), old.text + strspn(old.text, " \""));
		text[strcspn(text, "=\" ")] = 0;
		if (find(l, at, " \"", "=\" ", false, &from, &bytes))
			replace(l, from, bytes, text);
	}
}

/* The text's last line says how many there are before it. */
static void count_items(void)
{
	u32 items = 0;
	char *end;

	for (u32 k = 0; k < nr_lines; k++) {
		if (line[k].bytes >= 4 && !memcmp(line[k].text, "end ", 4)) {
			end = ctl_text("end items=%u", items);
			replace(&line[k], 0, line[k].bytes, end);
			free(end);
			return;
		}
		items += !line[k].bytes || line[k].text[0] != ' ';
	}
}

static void write_lines(void)
{
	static char text[2 * MOST_BYTES];
	const char *kept = getenv("KEEP");
	u32 bytes = 0;
	FILE *f;

	for (u32 k = 0; k < nr_lines && bytes + line[k].bytes + 1 < sizeof(text); k++) {
		memcpy(text + bytes, line[k].text, line[k].bytes);
		bytes += line[k].bytes;
		text[bytes++] = '\n';
	}
	file_write(DUMP, text, bytes);
	f = kept ? fopen(kept, "we") : NULL;	/* to be looked at */
	if (f) {
		fwrite(text, 1, bytes, f);
		fclose(f);
	}
}

/* Labels, and where one of them says that metadata are: data are not touched. */
static void only_metadata_since(u32 first_write)
{
	struct tr_label label[MOST_IMAGES][TERRACE_LABEL_COPIES] = { 0 };

	for (u32 i = 0; i < nr_images; i++)
		for (u32 k = 0; k < TERRACE_LABEL_COPIES; k++)
			if (tr_label_decode(&label[i][k], image[i].is + k * TERRACE_BLOCK_BYTES))
				label[i][k].meta_blocks = 0;
	for (u32 k = first_write; k < nr_changed; k++) {
		const struct tr_label *copy = label[changed[k].image - image];
		u64 block = changed[k].block;

		hold(block < TERRACE_LABEL_COPIES || block - copy[0].meta_start < copy[0].meta_blocks ||
		     block - copy[1].meta_start < copy[1].meta_blocks);
	}
}

void restore_changed(const uint8_t *data, size_t size)
{
	u8 flags = data[0];
	const struct dumped *d = &dumped[flags & JSON];
	u32 first_write;
	int status;

	used = 0;
	nr_lines = d->nr;
	memcpy(line, d->line, nr_lines * sizeof(line[0]));
	for (data += 2, size -= 2; size >= CHANGE_BYTES; data += CHANGE_BYTES, size -= CHANGE_BYTES)
		change_line(data);
	if (!(flags & JSON) && !(flags & MISCOUNTED))
		count_items();
	write_lines();
	if (flags & DRY_RUN) {
		call(&ctl_restore_command, "--dry-run --force DUMP");
		return;
	}
	if (flags & WIPED)
		wipe();
	first_write = nr_changed;
	writable = given;
	status = call(&ctl_restore_command, "--force DUMP");
	writable = 0;
	hold(!status || !writes);
	if (status)
		return;
	only_metadata_since(first_write);
	call(&ctl_check_command, "--full");
}

/* ---- changes that make sense ----------------------------------------------------- */

static u64 number(void)
{
	const u64 limit[] = {
		0, ~0ull >> below(64), 1ull << below(64), below(20), below(700), 688 + below(3), 0ull - below(2048), below(1024), 1024 - below(3),
	};

	return limit[below(ARRAY_SIZE(limit))];
}

size_t change_of_dump(uint8_t *data, size_t size, size_t most, uint64_t seed)
{
	u64 value;

	chance = seed;
	if (size < 2 || below(2))
		size = 2;	/* begins anew */
	if (size == 2 || !below(4)) {
		data[0] = any();
		data[1] = 0;
		if (below(8))
			data[0] &= ~MISCOUNTED;
	}
	if (size + CHANGE_BYTES > most)
		return size;
	data[size] = any();
	data[size + 1] = any();
	data[size + 2] = below(3) ? NUMBER : any();
	data[size + 3] = any();
	value = number();
	memcpy(data + size + 4, &value, sizeof(value));
	return size + CHANGE_BYTES;
}

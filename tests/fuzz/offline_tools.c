// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A tool's run in this process: it may end by exit(), which must not end the fuzzer; what it says
 * goes nowhere; and it writes only where it is allowed to.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <sanitizer/allocator_interface.h>

#include "fuzz/offline.h"

#define ALLOC_SLOTS	(1u << 15)

u32 given, writable, writes, killed_at;
static bool running;
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

/* The write at which it is killed: a drive that does not write blocks whole has half of one. */
static void tear(struct image *img, u64 block, const void *buf)
{
	struct tr_label label;

	if (!label_of(img, &label) || label.flags & TERRACE_LABEL_ATOMIC)
		return;
	change(img, block, 1);
	memcpy(img->is + block * TERRACE_BLOCK_BYTES, buf, TERRACE_BLOCK_BYTES / 2);
}

ssize_t __real_pwrite(int fd, const void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t bytes, off_t offset)
{
	struct stat st;

	hold(!fstat(fd, &st));
	for (u32 i = 0; i < MOST_IMAGES && running; i++) {
		if (image[i].ino != st.st_ino)
			continue;
		hold(writable & 1u << i);
		if (++writes == killed_at) {
			tear(&image[i], offset / TERRACE_BLOCK_BYTES, buf);
			longjmp(leave, 1 + KILLED);
		}
		change(&image[i], offset / TERRACE_BLOCK_BYTES, bytes / TERRACE_BLOCK_BYTES);
	}
	return __real_pwrite(fd, buf, bytes, offset);
}

/* ---- what they are given --------------------------------------------------------- */

static struct {
	const char *word;
	char path[32];
	int fd;
	FILE *stream;
} file[NR_FILES] = {
	[DUMP] = { .word = "DUMP" }, [DUMP_AGAIN] = { .word = "DUMP_AGAIN" }, [OUT] = { .word = "OUT" }, [MAP] = { .word = "MAP" },
};

static void make_files(void)
{
	for (u32 k = 0; k < NR_FILES; k++) {
		file[k].fd = memfd_create(file[k].word, MFD_CLOEXEC);
		hold(file[k].fd >= 0);
		snprintf(file[k].path, sizeof(file[k].path), "/proc/self/fd/%d", file[k].fd);
		file[k].stream = fdopen(dup(file[k].fd), "w");
		hold(file[k].stream);
		setvbuf(file[k].stream, malloc(BUFSIZ), _IOFBF, BUFSIZ);	/* not of a tool's memory */
	}
}

void file_write(u32 nr, const char *text, size_t bytes)
{
	hold(!ftruncate(file[nr].fd, 0) && pwrite(file[nr].fd, text, bytes, 0) == (ssize_t)bytes);
}

char *file_read(u32 nr, size_t *bytes)
{
	struct stat st;
	char *text;

	hold(!fstat(file[nr].fd, &st));
	*bytes = st.st_size;
	text = ctl_alloc(*bytes + 1);
	hold(pread(file[nr].fd, text, *bytes, 0) == (ssize_t)*bytes);
	return text;
}

int file_fd(u32 nr) { return file[nr].fd; }

static char *path_of(char *word)
{
	if (!strcmp(word, "SPARE"))
		return image[SPARE].path;
	for (u32 k = 0; k < NR_FILES; k++)
		if (!strcmp(word, file[k].word))
			return file[k].path;
	return word;
}

/* ---- running one ----------------------------------------------------------------- */

static int run(const struct ctl_command *command, int argc, char **argv)
{
	int status;

	optind = 0;
	writes = 0;
	running = true;
	status = setjmp(leave);
	if (status) {
		running = false;
		clean_up();
		return status - 1;
	}
	status = command->run(command, argc, argv);
	running = false;
	forget();
	return status;
}

static int call_to(const struct ctl_command *command, const char *args, FILE *to)
{
	FILE *out = stdout, *err = stderr;
	char words[160], *argv[16], *save;
	int argc = 0, status;
	bool limited = command != &ctl_dump_command && command != &ctl_restore_command;

	snprintf(words, sizeof(words), "%s %s%s", command->name, args, limited ? " --limit 5" : "");
	for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = path_of(word);
	for (u32 i = 0; i < MOST_IMAGES; i++)
		if (given & 1u << i)
			argv[argc++] = image[i].path;
	argv[argc] = NULL;
	if (nowhere)
		stdout = stderr = nowhere;
	if (to)
		stdout = to;
	status = run(command, argc, argv);
	stdout = out;
	stderr = err;
	hold(status == CTL_OK || status == CTL_PROBLEM || (status == CTL_USAGE && command == &ctl_restore_command) || status == KILLED);
	return status;
}

int call(const struct ctl_command *command, const char *args) { return call_to(command, args, NULL); }

int call_into(const struct ctl_command *command, const char *args, u32 nr)
{
	int status;

	hold(!ftruncate(file[nr].fd, 0) && !fseek(file[nr].stream, 0, SEEK_SET));
	status = call_to(command, args, file[nr].stream);
	hold(!fflush(file[nr].stream));
	return status;
}

/* What is larger than this volume needs is not there; such an answer is one, too. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1:max_allocation_size_mb=64:malloc_context_size=6:quarantine_size_mb=16";
}

void set_up_tools(void)
{
	static char buffer[BUFSIZ];	/* not of a tool's memory */

	if (!getenv("SAY"))
		nowhere = fopen("/dev/null", "w");
	setvbuf(nowhere ? nowhere : stdout, buffer, _IOFBF, sizeof(buffer));
	make_files();
	first_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(first_fd);
	hold(!__sanitizer_install_malloc_and_free_hooks(note_alloc, note_free) || true);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A tool's run in this process: it may end by exit(), which must not end the fuzzer; what it says
 * goes nowhere; and it writes only where it is allowed to.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <sys/stat.h>
#include <unistd.h>
#include <sanitizer/allocator_interface.h>

#include "fuzz/offline.h"

#define ALLOC_SLOTS	(1u << 15)

bool writing;
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

ssize_t __real_pwrite(int fd, const void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t bytes, off_t offset)
{
	struct stat st;

	hold(!running || writing);
	hold(!fstat(fd, &st));
	for (u32 i = 0; i < NR_IMAGES && running; i++)
		if (image[i].ino == st.st_ino)
			change(&image[i], offset / TERRACE_BLOCK_BYTES, bytes / TERRACE_BLOCK_BYTES);
	return __real_pwrite(fd, buf, bytes, offset);
}

int call(const struct ctl_command *command, const char *args)
{
	FILE *out = stdout, *err = stderr;
	char words[128], *argv[16], *save;
	int argc = 0, status;

	snprintf(words, sizeof(words), "%s %s --limit 5", command->name, args);
	if (command == &ctl_dump_command)
		snprintf(words, sizeof(words), "dump %s", args);
	for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	for (u32 i = 0; i < NR_IMAGES; i++)
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

void set_up_tools(void)
{
	static char buffer[BUFSIZ];	/* not of a tool's memory */

	if (!getenv("SAY"))
		nowhere = fopen("/dev/null", "w");
	setvbuf(nowhere ? nowhere : stdout, buffer, _IOFBF, sizeof(buffer));
	first_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(first_fd);
	hold(!__sanitizer_install_malloc_and_free_hooks(note_alloc, note_free) || true);
}

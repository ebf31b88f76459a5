// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A tool's run in this process: its arguments, the files that it is given, and how it ended. What it
 * says goes nowhere.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/offline.h"

u64 tool_runs;
static int first_fd;
static FILE *nowhere;

/* ---- what they are given --------------------------------------------------------- */

static struct {
	const char *word;
	char path[32];
	int fd;
	FILE *stream;
} file[NR_FILES] = {
	[DUMP] = { .word = "DUMP" }, [DUMP_AGAIN] = { .word = "DUMP_AGAIN" }, [MAP] = { .word = "MAP" },
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

static char *path_of(char *word)
{
	if (!strcmp(word, "SPARE"))
		return image[SPARE].path;
	if (!strcmp(word, "OUT"))
		return image[SALVAGED].path;
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
	tool_runs++;
	running = true;
	status = setjmp(leave);
	if (status) {
		running = false;
		heap_give_back();
		calls_close_all(first_fd);
		return status - 1;
	}
	status = command->run(command, argc, argv);
	running = false;
	heap_forget();
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

void set_up_tools(void)
{
	static char buffer[BUFSIZ];	/* not of a tool's memory */

	if (!getenv("SAY"))
		nowhere = fopen("/dev/null", "w");
	setvbuf(nowhere ? nowhere : stdout, buffer, _IOFBF, sizeof(buffer));
	make_files();
	first_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(first_fd);
	set_up_heap();
}

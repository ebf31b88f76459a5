// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * around: runs a program between two marks of the QEMU plugins
 *
 *	around PROGRAM ARG...
 *
 * So what is counted is all that the machine does from its start to its end. Exit status: the program's.
 */
#include <sys/wait.h>

#include "blocks.h"

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	if (argc < 2) {
		fprintf(stderr, "usage: around PROGRAM ARG...\n");
		return 2;
	}
	MARK(1);
	pid = fork();
	if (pid < 0)
		trouble("fork", errno);
	if (!pid) {
		execv(argv[1], argv + 1);
		trouble(argv[1], errno);
	}
	if (waitpid(pid, &status, 0) != pid)
		trouble("wait", errno);
	MARK(2);
	MARK(3);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

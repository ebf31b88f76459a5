/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The options that nearly every command has.
 */
#ifndef TERRACE_CTL_ARGS_H
#define TERRACE_CTL_ARGS_H

#include <stdbool.h>

#include "ctl.h"

#define ARGS_GO_ON (-1)

/*
 * For commands with --json and --help and no more; @json NULL: --help alone.
 * ARGS_GO_ON with optind at the first argument, or the exit status.
 */
int args_plain(const struct ctl_command *cmd, int argc, char **argv, bool *json);

#endif

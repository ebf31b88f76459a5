/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between files.c and jobs.c: what events mean for the jobs of threads. */
#ifndef TERRACE_SENSE_JOBS_H
#define TERRACE_SENSE_JOBS_H

#include "sense/files.h"

bool file_is(const struct file_id *a, const struct file_id *b);

void jobs_created(struct files *f, struct file *file, const struct terrace_file_event *e);
void jobs_written(struct files *f, struct file *file, const struct terrace_file_event *e);
void jobs_closed(struct files *f, const struct file *file);
void jobs_renamed(struct files *f, const struct file *file);
void jobs_read(struct files *f, const struct file *file, const struct terrace_file_event *e);
/* Or unlinked a file.  @file: NULL if not known. */
void jobs_synced(struct files *f, const struct file *file, uint32_t thread);
void jobs_died(struct files *f, const struct file *file);
/* Nothing more will be heard of it. */
void jobs_forgotten(struct files *f, const struct file *file);
void jobs_tick(struct files *f, uint64_t now_ns);
void jobs_end(struct files *f);
void jobs_rest(struct files *f);

#endif

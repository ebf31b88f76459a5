/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What terraced knows of a volume's heat and of its drives' wear, as status tells it.
 */
#ifndef TERRACE_CTL_STATUS_HEAT_H
#define TERRACE_CTL_STATUS_HEAT_H

#include <json-c/json.h>

/* @terraced: what it says of the volume; NULL: it does not drive it. */
void status_heat_print(struct json_object *terraced);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* newer kernels call it this */
#include <asm/unaligned.h>

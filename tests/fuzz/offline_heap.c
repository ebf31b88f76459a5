// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A tool's memory. What one that ends by exit() leaves is given back; what is left after one that
 * ended by itself is for libFuzzer, or heap_forget(), to complain of.
 *
 * Large buffers: ASan maps each anew and unmaps it, and their pages' faults were a third of an input's
 * time. Here they are used again, with what ASan would see: what is beside one is poisoned, and so is
 * one that is free, until another one of its size has been freed since.
 */
#include <sys/mman.h>
#include <sanitizer/allocator_interface.h>
#include <sanitizer/asan_interface.h>

#include "fuzz/offline.h"

/* ---- what is noted ----------------------------------------------------------------- */

/* In their order, those that were freed since as well: ASan knows which. */
static const volatile void *alloc[1u << 20];
static u32 nr_allocs;

static void note_alloc(const volatile void *p, size_t bytes)
{
	(void)bytes;
	if (running && p && nr_allocs < ARRAY_SIZE(alloc))
		alloc[nr_allocs++] = p;
}

static void note_free(const volatile void *p) { (void)p; }

/* ---- large buffers ------------------------------------------------------------------- */

#define LARGE		(16ul << 10)	/* from here on … */
#define LARGEST		(64ul << 20)	/* … and what is larger than this volume needs is not there, see below */
#define REDZONE		TERRACE_BLOCK_BYTES
#define ARENA_BYTES	(2ul << 30)	/* of addresses */

static struct buffer {
	u8 *at;
	size_t room;		/* a power of two */
	bool live;
	u32 freed;		/* which free it was, the last one of them */
} buffer[256];
static u32 nr_buffers, nr_live, nr_frees;
static u8 *arena;
static size_t arena_used;

static size_t room_for(size_t bytes)
{
	size_t room = LARGE;

	while (room < bytes)
		room *= 2;
	return room;
}

static struct buffer *new_buffer(size_t room)
{
	struct buffer *b = &buffer[nr_buffers];

	if (nr_buffers == ARRAY_SIZE(buffer) || arena_used + room + 2 * REDZONE > ARENA_BYTES)
		return NULL;
	nr_buffers++;
	*b = (struct buffer){ .at = arena + arena_used + REDZONE, .room = room };
	arena_used += room + 2 * REDZONE;
	ASAN_POISON_MEMORY_REGION(b->at - REDZONE, room + 2 * REDZONE);
	return b;
}

/* One that is free, but for the last that was freed; of the others the last, it is in a cache. */
static struct buffer *free_buffer(size_t room)
{
	struct buffer *last = NULL, *before = NULL;

	for (struct buffer *b = buffer; b < buffer + nr_buffers; b++) {
		if (b->room != room || b->live)
			continue;
		if (!last || b->freed > last->freed) {
			before = last;
			last = b;
		} else if (!before || b->freed > before->freed) {
			before = b;
		}
	}
	return before ? before : new_buffer(room);
}

static void *take_buffer(size_t bytes)
{
	struct buffer *b = running && bytes >= LARGE && bytes <= LARGEST ? free_buffer(room_for(bytes)) : NULL;

	if (!b)
		return NULL;
	b->live = true;
	nr_live++;
	ASAN_UNPOISON_MEMORY_REGION(b->at, bytes);
	return b->at;
}

static void give_buffer(struct buffer *b)
{
	hold(b->live);
	b->live = false;
	b->freed = ++nr_frees;
	nr_live--;
	ASAN_POISON_MEMORY_REGION(b->at, b->room);
}

static struct buffer *buffer_at(const void *p)
{
	struct buffer *b = buffer;

	if (!arena || (uintptr_t)p - (uintptr_t)arena >= ARENA_BYTES)
		return NULL;
	while (b < buffer + nr_buffers && b->at != p)
		b++;
	hold(b < buffer + nr_buffers);
	return b;
}

/* ---- instead of the library's -------------------------------------------------------- */

void *__real_calloc(size_t nr, size_t bytes);
void *__wrap_calloc(size_t nr, size_t bytes);
void *__wrap_calloc(size_t nr, size_t bytes)
{
	void *p = nr == 1 ? take_buffer(bytes) : NULL;

	return p ? memset(p, 0, bytes) : __real_calloc(nr, bytes);
}

void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
	void *p = align <= TERRACE_BLOCK_BYTES ? take_buffer(bytes) : NULL;

	return p ? p : __real_aligned_alloc(align, bytes);
}

void *__real_realloc(void *p, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes)
{
	hold(!buffer_at(p));	/* nobody does that */
	return __real_realloc(p, bytes);
}

void __real_free(void *p);
void __wrap_free(void *p);
void __wrap_free(void *p)
{
	struct buffer *b = buffer_at(p);

	if (b)
		give_buffer(b);
	else
		__real_free(p);
}

/* ---- after a tool ---------------------------------------------------------------------- */

void heap_forget(void)
{
	hold(!nr_live);
	nr_allocs = 0;
}

void heap_give_back(void)
{
	for (u32 k = 0; k < nr_allocs; k++)
		if (__sanitizer_get_ownership((const void *)alloc[k]))
			__real_free((void *)alloc[k]);
	nr_allocs = 0;
	for (u32 k = 0; k < nr_buffers && nr_live; k++)
		if (buffer[k].live)
			give_buffer(&buffer[k]);
}

/*
 * What is larger than this volume needs is not there; such an answer is one, too. What was freed is not
 * used again for some inputs, without large buffers in it. Of who allocated what little is kept:
 * ASAN_OPTIONS=malloc_context_size=20 with the one input says more.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1:max_allocation_size_mb=64:malloc_context_size=2:quarantine_size_mb=1:thread_local_quarantine_size_kb=256";
}

void set_up_heap(void)
{
	arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	hold(arena != MAP_FAILED);
	hold(!__sanitizer_install_malloc_and_free_hooks(note_alloc, note_free) || true);
}

/* Per-thread scratch stack (kernels.h): a list of chunks, newest last. When it is empty again and took several
 * chunks, they are replaced by one of their total size, so that steady use touches one block. */
#include "kernels.h"

#include <pthread.h>
#include <stdlib.h>

#define MAX_CHUNKS 48

typedef struct {
    char *memory[MAX_CHUNKS];
    size_t size[MAX_CHUNKS];
    size_t count, chunk, used; /* allocation goes on at memory[chunk] + used */
} stack;

static _Thread_local stack *own;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void destroy(void *p)
{
    stack *s = p;
    for (size_t i = 0; i < s->count; i++) free(s->memory[i]);
    free(s);
}

static void make_key(void) { pthread_key_create(&key, destroy); }

dx_mark dx_scratch_mark(void)
{
    dx_mark mark = {0, 0};
    if (own) { mark.chunk = own->chunk; mark.used = own->used; }
    return mark;
}

void *dx_scratch(size_t bytes)
{
    if (!own) {
        pthread_once(&once, make_key);
        own = calloc(1, sizeof *own);
        if (!own) return NULL;
        pthread_setspecific(key, own);
    }
    if (bytes > (size_t)1 << 46) return NULL;
    bytes = (bytes + 63) / 64 * 64;
    for (; own->chunk < own->count; own->chunk++, own->used = 0)
        if (own->size[own->chunk] - own->used >= bytes) {
            void *p = own->memory[own->chunk] + own->used;
            own->used += bytes;
            return p;
        }
    if (own->count == MAX_CHUNKS) return NULL;
    size_t last = own->count ? own->size[own->count - 1] : 32768;
    size_t size = bytes > 2 * last ? bytes : 2 * last;
    char *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!memory) return NULL;
    own->memory[own->count] = memory;
    own->size[own->count] = size;
    own->chunk = own->count++;
    own->used = bytes;
    return memory;
}

void dx_scratch_release(dx_mark mark)
{
    if (!own) return;
    own->chunk = mark.chunk;
    own->used = mark.used;
    if (mark.chunk == 0 && mark.used == 0 && own->count > 1) {
        size_t total = 0;
        for (size_t i = 0; i < own->count; i++) { total += own->size[i]; free(own->memory[i]); }
        own->count = 0;
        char *memory = aligned_alloc(64, (total + 63) / 64 * 64);
        if (memory) { own->memory[0] = memory; own->size[0] = total; own->count = 1; }
    }
}

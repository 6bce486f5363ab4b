/* Reading the input, printing digests. */
#include "io.h"
#include "decode.h"
#include "sha256.h"
#include <stdlib.h>

FILE *input;

void *read_items(long count, size_t size)
{
    void *p = calloc((size_t)count + 1, size);
    if (!p || fread(p, size, (size_t)count, input) != (size_t)count) {
        fprintf(stderr, "the input ends early\n");
        exit(1);
    }
    return p;
}

int64_t whole(void)
{
    int64_t *p = read_items(1, sizeof *p), x = *p;
    free(p);
    return x;
}

double real(void)
{
    double *p = read_items(1, sizeof *p), x = *p;
    free(p);
    return x;
}

static const char *full(const char *group, const char *name)
{
    static char both[100];
    snprintf(both, sizeof both, "%s/%s", group, name);
    return both;
}

void show_as(const char *group, const char *name, const char *type, const void *x, long rows, long columns)
{
    print_digest(full(group, name), type, x, columns ? 2 : 1, (long[]){rows, columns});
}

void show(const char *group, const char *name, const float *x, int axes, const long *shape)
{
    print_digest(full(group, name), "float32", x, axes, shape);
}

void show_number(const char *group, const char *name, double x)
{
    print_digest(full(group, name), "float64", &x, 0, NULL);
}

void show_decoding(const char *group, const float *logits, long n, long fields, const int32_t *repeated, double floor)
{
    enum { MOST = 100000 };
    int32_t *tags = calloc((size_t)n, sizeof *tags), *run = calloc(3 * MOST, sizeof *run);
    double *absent = calloc((size_t)fields, sizeof *absent), *p = calloc(MOST, sizeof *p);
    Best best = best_tagging(logits, n, fields, repeated, tags);
    long count = posteriors(logits, n, fields, repeated, floor, absent, run, p, MOST);
    show_as(group, "tags", "int32", tags, n, 0);
    show_number(group, "score", best.score);
    show_number(group, "bound", best.bound);
    show_number(group, "exact", best.exact);
    show_as(group, "absent", "float64", absent, fields, 0);
    show_as(group, "runs", "int32", run, count, 3);
    show_as(group, "probabilities", "float64", p, count, 0);
    free(tags), free(run), free(absent), free(p);
}

/* The input file (numbers of this machine's byte order, one after the other) and the digests that go to stdout. */
#ifndef DX_INDEPENDENT_IO_H
#define DX_INDEPENDENT_IO_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

extern FILE *input;
void *read_items(long count, size_t size);
int64_t whole(void);
double real(void);
/* "group/name digest" of an array, (rows) if columns is 0, else (rows, columns). */
void show_as(const char *group, const char *name, const char *type, const void *x, long rows, long columns);
void show(const char *group, const char *name, const float *x, int axes, const long *shape);
void show_number(const char *group, const char *name, double x);
/* What extraction makes of tag logits. */
void show_decoding(const char *group, const float *logits, long n, long fields, const int32_t *repeated, double floor);
#endif

/* Reading order by position (recipe in docs/numerics.md, section 17): words of one source line form a segment, other
 * words are segments of their own; segments whose middles are near form a row; rows downwards, segments and words
 * rightwards. Every comparison ends with (y0, x0, y1, x1, text), so only identical words keep their input order. */
#include "table.h"

typedef struct { double x0, y0, y1, middle; ptrdiff_t begin, end; int32_t row; } segment; /* of words[begin..end-1] */

typedef struct {
    const double *box;
    const int32_t *line;
    const int64_t *offset;
    const uint32_t *code;
    int32_t *word;     /* words grouped by segment */
    segment *segments;
} page;

typedef int (*compare)(const page *p, int32_t a, int32_t b);

static int compare_double(double a, double b) { return (a > b) - (a < b); }

/* By y0, x0, y1, x1, text. */
static int compare_position(const page *p, int32_t a, int32_t b)
{
    static const int columns[4] = {1, 0, 3, 2};
    for (int k = 0; k < 4; k++) {
        int c = compare_double(p->box[4 * a + columns[k]], p->box[4 * b + columns[k]]);
        if (c) return c;
    }
    ptrdiff_t na = (ptrdiff_t)(p->offset[a + 1] - p->offset[a]), nb = (ptrdiff_t)(p->offset[b + 1] - p->offset[b]);
    for (ptrdiff_t i = 0; i < na && i < nb; i++) {
        uint32_t x = p->code[p->offset[a] + i], y = p->code[p->offset[b] + i];
        if (x != y) return x < y ? -1 : 1;
    }
    return (na > nb) - (na < nb);
}

static int compare_rightwards(const page *p, int32_t a, int32_t b)
{
    int c = compare_double(p->box[4 * a], p->box[4 * b]);
    return c ? c : compare_position(p, a, b);
}

/* Groups lines: words without a line first. */
static int compare_lines(const page *p, int32_t a, int32_t b)
{
    int32_t la = p->line[a] < 0 ? -1 : p->line[a], lb = p->line[b] < 0 ? -1 : p->line[b];
    return la != lb ? (la < lb ? -1 : 1) : compare_rightwards(p, a, b);
}

static int compare_downwards(const page *p, int32_t a, int32_t b) /* segments */
{
    const segment *s = p->segments + a, *t = p->segments + b;
    int c = compare_double(s->middle, t->middle);
    if (!c) c = compare_double(s->x0, t->x0);
    return c ? c : compare_position(p, p->word[s->begin], p->word[t->begin]);
}

static int compare_in_rows(const page *p, int32_t a, int32_t b) /* segments that have a row */
{
    const segment *s = p->segments + a, *t = p->segments + b;
    if (s->row != t->row) return s->row < t->row ? -1 : 1;
    int c = compare_double(s->x0, t->x0);
    return c ? c : compare_position(p, p->word[s->begin], p->word[t->begin]);
}

/* Stable merge sort of items, bottom up. */
static void sort(const page *p, int32_t *items, int32_t *spare, ptrdiff_t n, compare less)
{
    for (ptrdiff_t width = 1; width < n; width *= 2) {
        for (ptrdiff_t begin = 0; begin < n; begin += 2 * width) {
            ptrdiff_t middle = begin + width < n ? begin + width : n, end = middle + width < n ? middle + width : n;
            ptrdiff_t i = begin, j = middle, k = begin;
            while (i < middle && j < end) spare[k++] = less(p, items[j], items[i]) < 0 ? items[j++] : items[i++];
            while (i < middle) spare[k++] = items[i++];
            while (j < end) spare[k++] = items[j++];
        }
        memcpy(items, spare, (size_t)n * sizeof *items);
    }
}

static segment make_segment(const page *p, ptrdiff_t begin, ptrdiff_t end)
{
    const double *first = p->box + 4 * p->word[begin];
    segment s = {first[0], first[1], first[3], 0, begin, end, 0};
    for (ptrdiff_t i = begin + 1; i < end; i++) {
        const double *b = p->box + 4 * p->word[i];
        if (b[0] < s.x0) s.x0 = b[0];
        if (b[1] < s.y0) s.y0 = b[1];
        if (b[3] > s.y1) s.y1 = b[3];
    }
    s.middle = (s.y0 + s.y1) / 2;
    return s;
}

/* A source line that is more than twice as high as its highest word holds several rows: it is not taken as a line. */
static int is_one_row(const page *p, segment s)
{
    double highest = 0;
    for (ptrdiff_t i = s.begin; i < s.end; i++) {
        const double *b = p->box + 4 * p->word[i];
        if (b[3] - b[1] > highest) highest = b[3] - b[1];
    }
    return s.y1 - s.y0 <= 2 * highest;
}

int DX_FN(reading_order)(ptrdiff_t n, const double *box, const int32_t *line, const int64_t *offset,
                         const uint32_t *code, int32_t *order, int32_t *row)
{
    dx_mark mark = dx_scratch_mark();
    size_t ints = (size_t)n * sizeof(int32_t);
    page p = {box, line, offset, code, dx_scratch(ints), NULL};
    int32_t *item = dx_scratch(ints), *spare = dx_scratch(ints);
    p.segments = dx_scratch((size_t)n * sizeof(segment));
    if (!p.word || !item || !spare || !p.segments) { dx_scratch_release(mark); return DX_NO_MEMORY; }
    for (ptrdiff_t i = 0; i < n; i++) p.word[i] = (int32_t)i;
    sort(&p, p.word, spare, n, compare_lines);
    ptrdiff_t count = 0;
    for (ptrdiff_t begin = 0, end; begin < n; begin = end) {
        int32_t own = line[p.word[begin]];
        end = begin + 1;
        while (own >= 0 && end < n && line[p.word[end]] == own) end++;
        segment s = make_segment(&p, begin, end);
        if (is_one_row(&p, s)) p.segments[count++] = s;
        else for (ptrdiff_t i = begin; i < end; i++) p.segments[count++] = make_segment(&p, i, i + 1);
    }
    for (ptrdiff_t s = 0; s < count; s++) item[s] = (int32_t)s;
    sort(&p, item, spare, count, compare_downwards);
    double anchor = 0; /* the middle of the row's first segment */
    for (ptrdiff_t i = 0, r = -1; i < count; i++) {
        segment *s = p.segments + item[i];
        double away = s->middle - anchor; /* never below 0 */
        if (i == 0 || !(away < 0.5 * (s->y1 - s->y0) || away == 0)) { r++; anchor = s->middle; }
        s->row = (int32_t)r;
    }
    sort(&p, item, spare, count, compare_in_rows);
    ptrdiff_t place = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        const segment *s = p.segments + item[i];
        for (ptrdiff_t k = s->begin; k < s->end; k++, place++) { order[place] = p.word[k]; row[place] = s->row; }
    }
    dx_scratch_release(mark);
    return DX_OK;
}

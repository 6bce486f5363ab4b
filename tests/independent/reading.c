/* The reading order of docs/numerics.md section 17. */
#include "page.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct { long first, count, group; double middle, extent, x0; } Segment;

static const Source *page;      /* what the comparisons look at */

static int order_of(double a, double b) { return (a > b) - (a < b); }

/* The end of every comparison: y0, x0, y1, x1, text, group (no line: -1), place in the file. */
static int last_of_all(long a, long b)
{
    static const int edge[4] = {1, 0, 3, 2};
    for (int k = 0; k < 4; k++) {
        int c = order_of(page->box[4 * a + edge[k]], page->box[4 * b + edge[k]]);
        if (c)
            return c;
    }
    long na = page->offset[a + 1] - page->offset[a], nb = page->offset[b + 1] - page->offset[b];
    for (long i = 0; i < na && i < nb; i++) {
        uint32_t x = page->code[page->offset[a] + i], y = page->code[page->offset[b] + i];
        if (x != y)
            return x < y ? -1 : 1;
    }
    if (na != nb)
        return na < nb ? -1 : 1;
    if (page->line[a] != page->line[b])
        return page->line[a] < page->line[b] ? -1 : 1;
    return (a > b) - (a < b);
}

static int by_line_and_x(const void *p, const void *q)
{
    long a = *(const long *)p, b = *(const long *)q;
    if (page->line[a] != page->line[b])
        return page->line[a] < page->line[b] ? -1 : 1;
    int c = order_of(page->box[4 * a], page->box[4 * b]);
    return c ? c : last_of_all(a, b);
}

static int by_middle(const void *p, const void *q)
{
    const Segment *a = p, *b = q;
    int c = order_of(a->middle, b->middle);
    c = c ? c : order_of(a->x0, b->x0);
    return c ? c : last_of_all(a->group, b->group);
}

static int by_x(const void *p, const void *q)
{
    const Segment *a = p, *b = q;
    int c = order_of(a->x0, b->x0);
    return c ? c : last_of_all(a->group, b->group);
}

static Segment segment(const long *word, long first, long count)
{
    double top = INFINITY, bottom = -INFINITY, left = INFINITY;
    for (long i = first; i < first + count; i++) {
        const double *b = page->box + 4 * word[i];
        top = b[1] < top ? b[1] : top;
        bottom = b[3] > bottom ? b[3] : bottom;
        left = b[0] < left ? b[0] : left;
    }
    return (Segment){first, count, word[first], (top + bottom) / 2.0, bottom - top, left};
}

/* Steps 1 to 4 for some words: puts them and their rows at order[0 .. n-1], row[0 .. n-1], rows counted from `from`;
   returns the next row's number. */
static long block(const long *words, long n, int32_t *order, int32_t *row, long from)
{
    long *word = malloc((size_t)(n + 1) * sizeof *word), count = 0, out = 0;
    Segment *s = malloc((size_t)(n + 1) * sizeof *s);
    memcpy(word, words, (size_t)n * sizeof *word);
    qsort(word, (size_t)n, sizeof *word, by_line_and_x);
    for (long i = 0, end; i < n; i = end) {
        double tallest = 0.0;
        for (end = i; end < n && (end == i || (page->line[word[i]] >= 0 && page->line[word[end]] == page->line[word[i]]));
             end++) {
            const double *b = page->box + 4 * word[end];
            tallest = b[3] - b[1] > tallest ? b[3] - b[1] : tallest;
        }
        s[count] = segment(word, i, end - i);
        if (s[count].extent > 2.0 * tallest)
            for (long k = i; k < end; k++)
                s[count++] = segment(word, k, 1);
        else
            count++;
    }
    qsort(s, (size_t)count, sizeof *s, by_middle);
    for (long i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count; end++) {
            double d = s[end].middle - s[i].middle;
            if (!(d < 0.5 * s[end].extent || d == 0.0))
                break;
        }
        qsort(s + i, (size_t)(end - i), sizeof *s, by_x);
        for (long k = i; k < end; k++)
            for (long w = s[k].first; w < s[k].first + s[k].count; w++, out++) {
                order[out] = (int32_t)word[w];
                row[out] = (int32_t)from;
            }
        from++;
    }
    free(word);
    free(s);
    return from;
}

static int ascending(const void *a, const void *b) { return order_of(*(const double *)a, *(const double *)b); }

typedef struct { long begin, end, candidate; double a, b; } Row;

static double X0(int32_t word) { return page->box[4 * word]; }
static double X1(int32_t word) { return page->box[4 * word + 2]; }

/* The candidates' gaps and the gutter; returns 1 and its place if the page has two columns. */
static int gutter(Row *rows, long count, const int32_t *order, double h, double *at)
{
    long most = 0;
    for (long r = 0; r < count; r++) {
        long gaps = 0, place = 0;
        for (long i = rows[r].begin + 1; i < rows[r].end; i++)
            if (X0(order[i]) - X1(order[i - 1]) >= 1.5 * h) {
                gaps++;
                place = i;
            }
        rows[r].candidate = gaps == 1 && place - rows[r].begin >= 4 && rows[r].end - place >= 4;
        if (rows[r].candidate) {
            rows[r].a = X1(order[place - 1]);
            rows[r].b = X0(order[place]);
        }
    }
    for (long r = 0; r < count; r++) {
        double middle = (rows[r].a + rows[r].b) / 2.0;
        long held = 0;
        if (!rows[r].candidate)
            continue;
        for (long q = 0; q < count; q++)
            held += rows[q].candidate && middle >= rows[q].a && middle <= rows[q].b;
        if (held > most || (held == most && middle < *at)) {
            most = held;
            *at = middle;
        }
    }
    if (most < 10)
        return 0;
    double widths[2] = {0.0, 0.0}, w[2];
    for (int side = 0; side < 2; side++) {
        double left = INFINITY, right = -INFINITY;
        for (long r = 0; r < count; r++)
            for (long i = rows[r].begin; rows[r].candidate && *at >= rows[r].a && *at <= rows[r].b && i < rows[r].end; i++)
                if ((X1(order[i]) <= *at) == (side == 0)) {
                    widths[side] = widths[side] + (X1(order[i]) - X0(order[i]));
                    left = X0(order[i]) < left ? X0(order[i]) : left;
                    right = X1(order[i]) > right ? X1(order[i]) : right;
                }
        w[side] = right - left;
        if (!(widths[side] >= 0.7 * (w[side] * (double)most)))
            return 0;
    }
    return (w[0] < w[1] ? w[0] : w[1]) >= 0.6 * (w[0] < w[1] ? w[1] : w[0]);
}

static void turn_upright(Source *source)
{
    double W = source->width, H = source->height;
    for (long i = 0; i < source->n; i++) {
        double *b = source->box + 4 * i, x0 = b[0], y0 = b[1], x1 = b[2], y1 = b[3];
        if (source->rotation == 90)
            b[0] = y0, b[1] = W - x1, b[2] = y1, b[3] = W - x0;
        else if (source->rotation == 180)
            b[0] = W - x1, b[1] = H - y1, b[2] = W - x0, b[3] = H - y0;
        else if (source->rotation == 270)
            b[0] = H - y1, b[1] = x0, b[2] = H - y0, b[3] = x1;
    }
}

static void file_order(int32_t *order, int32_t *row)
{
    double first = 0.0;
    for (long i = 0; i < page->n; i++) {
        const double *b = page->box + 4 * i;
        double middle = (b[1] + b[3]) / 2.0;
        int stays = i > 0 && (middle == first || fabs(middle - first) < 0.5 * (b[3] - b[1])) && b[0] >= b[-4];
        if (!stays)
            first = middle;
        order[i] = (int32_t)i;
        row[i] = i == 0 ? 0 : row[i - 1] + !stays;
    }
}

void reading_order(Source *source, int32_t *order, int32_t *row)
{
    long n = source->n, count = 0, out = 0, from = 0, sizes[2] = {0, 0};
    long *part[2] = {calloc((size_t)n + 1, sizeof(long)), calloc((size_t)n + 1, sizeof(long))};
    long *words = calloc((size_t)n + 1, sizeof *words);
    double *height = calloc((size_t)n + 1, sizeof *height), at = 0.0;
    Row *rows = calloc((size_t)n + 1, sizeof *rows);
    turn_upright(source);
    page = source;
    if (source->keep_file_order) {
        file_order(order, row);
        goto done;
    }
    for (long i = 0; i < n; i++) {
        words[i] = i;
        height[i] = source->box[4 * i + 3] - source->box[4 * i + 1];
    }
    block(words, n, order, row, 0);
    qsort(height, (size_t)n, sizeof *height, ascending);
    for (long i = 0; i < n; i++) {
        if (i == 0 || row[i] != row[i - 1])
            rows[count++].begin = i;
        rows[count - 1].end = i + 1;
    }
    if (!source->columns || !n || !gutter(rows, count, order, height[(n - 1) / 2], &at))
        goto done;
    long first = -1, last = -1;
    for (long r = 0; r < count; r++)
        if (rows[r].candidate && at >= rows[r].a && at <= rows[r].b) {
            first = first < 0 ? r : first;
            last = r;
        }
    int32_t *old = malloc((size_t)n * sizeof *old);
    memcpy(old, order, (size_t)n * sizeof *old);
    for (long r = 0; r <= count; r++) {
        int across = r < first || r > last;
        for (long i = rows[r].begin; r < count && i < rows[r].end; i++)
            across |= X0(old[i]) < at && X1(old[i]) > at;
        if (across)
            for (int side = 0; side < 2; side++) {
                from = block(part[side], sizes[side], order + out, row + out, from);
                out += sizes[side];
                sizes[side] = 0;
            }
        if (r == count)
            break;
        for (long i = rows[r].begin; i < rows[r].end; i++) {
            int side = !across && X1(old[i]) > at;
            part[side][sizes[side]++] = old[i];
        }
        if (across) {
            from = block(part[0], sizes[0], order + out, row + out, from);
            out += sizes[0];
            sizes[0] = 0;
        }
    }
    free(old);
done:
    free(part[0]), free(part[1]), free(words), free(height), free(rows);
}

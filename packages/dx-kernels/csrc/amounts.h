/* How the amounts of a page relate, in whole hundredths: which is the largest, which are sums, differences, running
 * totals. The caller gives the amounts > 0 in reading order; 17 features each (AMOUNT_FEATURES), all 0 or assigned. */
#ifndef DX_AMOUNTS_H
#define DX_AMOUNTS_H

#include "kernels.h"

#define AMOUNT_FEATURES 17
#define AMOUNT_REACH 256 /* how far apart two amounts may stand that are compared one by one */
#define AMOUNT_LIMIT ((int64_t)1 << 62) /* running sums stop here; no amount is as large */

typedef struct {
    ptrdiff_t count;
    const int64_t *value;  /* > 0, below 2^58 */
    const double *right;   /* right edges of the words */
    double *feature;       /* (count, AMOUNT_FEATURES), zeros on entry */
} amounts;

/* Ascending: heap sort, in place. */
DX_INLINE void sort_values(int64_t *x, ptrdiff_t n)
{
    for (ptrdiff_t end = n, root = n / 2; end > 1;) {
        int64_t t;
        if (root > 0) t = x[--root];
        else { t = x[--end]; x[end] = x[0]; }
        ptrdiff_t hole = root;
        for (ptrdiff_t child; (child = 2 * hole + 1) < end; hole = child) {
            if (child + 1 < end && x[child + 1] > x[child]) child++;
            if (x[child] <= t) break;
            x[hole] = x[child];
        }
        x[hole] = t;
    }
}

DX_INLINE ptrdiff_t find_value(const int64_t *x, ptrdiff_t n, int64_t v)
{
    ptrdiff_t low = 0, high = n;
    while (high - low > 1) {
        ptrdiff_t middle = low + (high - low) / 2;
        if (x[middle] <= v) low = middle;
        else high = middle;
    }
    return low;
}

/* Is v = a + b for two of the distinct ascending x, a <= b? */
DX_INLINE int is_sum(const int64_t *x, ptrdiff_t n, int64_t v)
{
    for (ptrdiff_t i = 0, j = n - 1; i <= j;) {
        int64_t s = x[i] + x[j];
        if (s == v) return 1;
        if (s < v) i++;
        else j--;
    }
    return 0;
}

/* Is v + b one of x for some b of x other than v? */
DX_INLINE int is_part(const int64_t *x, ptrdiff_t n, int64_t v)
{
    for (ptrdiff_t i = 0, j = 0; i < n; i++) {
        while (j < n && x[j] < v + x[i]) j++;
        if (j == n) return 0;
        if (x[j] == v + x[i] && x[i] != v) return 1;
    }
    return 0;
}

#define F(i, k) a->feature[(i) * AMOUNT_FEATURES + (k)]

/* Features 0-8: of the value among the page's distinct values. */
DX_INLINE int amount_values(const amounts *a)
{
    dx_mark mark = dx_scratch_mark();
    ptrdiff_t m = a->count, n = 0;
    int64_t *x = dx_scratch((size_t)m * sizeof *x), *times = dx_scratch((size_t)m * sizeof *times);
    uint8_t *flag = dx_scratch((size_t)m);
    if (!x || !times || !flag) { dx_scratch_release(mark); return DX_NO_MEMORY; }
    memcpy(x, a->value, (size_t)m * sizeof *x);
    sort_values(x, m);
    for (ptrdiff_t i = 0; i < m; i++) {
        if (n && x[n - 1] == x[i]) times[n - 1]++;
        else { x[n] = x[i]; times[n++] = 1; }
    }
    for (ptrdiff_t i = 0; i < n; i++) flag[i] = (uint8_t)(is_sum(x, n, x[i]) | is_part(x, n, x[i]) << 1);
    int64_t running = 0; /* of all amounts before */
    for (ptrdiff_t i = 0; i < m; i++) {
        int64_t v = a->value[i];
        ptrdiff_t k = find_value(x, n, v), rank = n - 1 - k;
        F(i, 0) = 1;
        F(i, 1) = (double)v / (double)x[n - 1];
        F(i, 2) = rank == 0;
        F(i, 3) = (double)(rank < 5 ? rank : 5) / 5;
        F(i, 4) = (double)(times[k] < 5 ? times[k] : 5) / 5;
        F(i, 5) = flag[k] & 1;
        F(i, 6) = flag[k] >> 1 & 1;
        F(i, 7) = v % 5 == 0;
        F(i, 8) = running == v;
        F(i, 16) = flag[k] >> 2; /* seen before */
        flag[k] |= 4;
        running = running > AMOUNT_LIMIT - v ? AMOUNT_LIMIT : running + v;
    }
    dx_scratch_release(mark);
    return DX_OK;
}

/* Features 9-15: of the amount among its neighbours in reading order. */
DX_INLINE void amount_neighbours(const amounts *a, double line_height)
{
    const int64_t *v = a->value;
    const ptrdiff_t m = a->count;
    for (ptrdiff_t j = 0; j < m; j++) {
        for (ptrdiff_t k = j + 1; k < m && k < j + 5; k++) { /* h .. j k with h = j - k: total, cash, change */
            int64_t difference = v[j] - v[k];
            for (ptrdiff_t h = j > AMOUNT_REACH ? j - AMOUNT_REACH : 0; difference > 0 && h < j; h++)
                if (v[h] == difference) F(h, 9) = F(j, 10) = F(k, 11) = 1;
        }
        for (ptrdiff_t k = j + 1; k < m && k < j + 8; k++) { /* j k .. h with h = j + k: net, tax, total */
            int64_t sum = v[j] + v[k];
            for (ptrdiff_t h = k + 1; h < m && h <= k + AMOUNT_REACH; h++)
                if (v[h] == sum) F(h, 12) = F(j, 13) = F(k, 13) = 1;
        }
        for (ptrdiff_t h = j > 6 ? j - 6 : 0; h < j; h++) { /* a rounded amount soon after the exact one */
            int64_t away = v[j] > v[h] ? v[j] - v[h] : v[h] - v[j];
            if (v[j] % 5 == 0 && (away == 1 || away == 2)) F(j, 14) = 1;
        }
        int64_t sum = 0;
        for (ptrdiff_t h = j - 1, terms = 0; h >= 0 && h >= j - AMOUNT_REACH && sum <= v[j]; h--) { /* the sum of two or more just above it */
            if (!(__builtin_fabs(a->right[h] - a->right[j]) < 1.2 * line_height)) continue;
            sum += v[h];
            terms++;
            if (sum == v[j] && terms >= 2) F(j, 15) = 1;
        }
    }
}
#undef F

#endif

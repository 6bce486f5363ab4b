/* Amounts and the 56 word features of docs/numerics.md section 17. */
#include "page.h"
#include <math.h>
#include <stdlib.h>

#define MOST ((int64_t)1 << 62)

typedef struct { int is, decimals, ends; uint32_t decimal; int64_t v; } Amount;

static int is_digit(uint32_t code) { return kind(code) == DIGIT; }

static int64_t digit_value(uint32_t code)
{
    for (long i = 0; i < known_count; i++)
        if ((uint32_t)known[i][0] == code)
            return known[i][2];
    abort();
}

static int is_sign(uint32_t c) { return c == '.' || c == ',' || c == '\'' || c == 0x2019 || c == ' '; }

static Amount amount(Text t)
{
    Amount no = {0, 0, 0, 0, 0}, a = {1, 0, 0, 0, 0};
    long first = -1, last = -1, digits = 0, signs = 0, last_sign = -1, run = 0, groups = 0;
    uint32_t group = 0;
    for (long i = 0; i < t.n; i++) {
        if (t.code[i] == '%')
            return no;
        if (is_digit(t.code[i])) {
            first = first < 0 ? i : first;
            last = i;
            digits++;
        }
    }
    if (first < 0 || first > 3 || t.n - 1 - last > 2 || digits > 13)
        return no;
    for (long i = first; i <= last; i++)
        if (is_sign(t.code[i])) {
            signs++;
            last_sign = i;
        } else if (!is_digit(t.code[i]))
            return no;
    if (!signs)
        return no;
    a.decimals = last - last_sign == 2 && (t.code[last_sign] == '.' || t.code[last_sign] == ',');
    a.decimal = a.decimals ? t.code[last_sign] : 0;
    a.ends = last == t.n - 1;
    for (long i = first; i <= last; i++) {
        if (is_digit(t.code[i])) {
            a.v = a.v * 10 + digit_value(t.code[i]);
            run++;
            continue;
        }
        if (groups ? run != 3 : run < 1)
            return no;
        if (!(a.decimals && i == last_sign)) {
            if (groups++ ? t.code[i] != group : run > 3)
                return no;
            group = t.code[i];
            if (a.decimals && group == a.decimal)
                return no;
        }
        run = 0;
    }
    if (!a.decimals && (run != 3 || digit_value(t.code[first]) == 0))
        return no;
    a.v = a.decimals ? a.v : a.v * 100;
    return a;
}

static double least(double a, double b) { return a < b ? a : b; }

static long run_of_digits(Text t, long i, long most)
{
    long n = 0;
    while (n < most && i + n < t.n && is_digit(t.code[i + n]))
        n++;
    return n;
}

/* (non-digit)? 1-4 digits, s, 1-2 digits, s, 1-4 digits, (non-digit)? and no more. */
static int like_a_date(Text t)
{
    static const long most[3] = {4, 2, 4};
    long i = t.n && !is_digit(t.code[0]);
    for (int part = 0; part < 3; part++) {
        long n = run_of_digits(t, i, most[part]);
        i += n;
        if (!n)
            return 0;
        if (part < 2) {
            if (i >= t.n || !(t.code[i] == '/' || t.code[i] == '-' || t.code[i] == '.'))
                return 0;
            i++;
        }
    }
    return i == t.n || (i == t.n - 1 && !is_digit(t.code[i]));
}

static void text_features(Text t, const Amount *a, double *f)
{
    static const uint32_t has[] = {'.', ',', '/', '-', ':'}, more[] = {'%', '#', '('};
    long count[OTHER + 1] = {0}, title = 1, cased = 0, codes = 0, five = 0;
    for (long i = 0; i < t.n; i++) {
        int k = kind(t.code[i]), after = i > 0 && (kind(t.code[i - 1]) == UPPER || kind(t.code[i - 1]) == LOWER);
        count[k]++;
        cased += k == UPPER || k == LOWER;
        title &= k == UPPER ? !after : k == LOWER ? after : 1;
        codes += currency_code(t, i) > 0;
        five |= run_of_digits(t, i, 5) == 5;
        for (int h = 0; h < 5; h++)
            f[7 + h] = t.code[i] == has[h] ? 1.0 : f[7 + h];
        for (int h = 0; h < 3; h++)
            f[14 + h] = t.code[i] == more[h] ? 1.0 : f[14 + h];
    }
    double n = (double)t.n, d = (double)count[DIGIT];
    uint32_t end = t.n ? t.code[t.n - 1] : 0;
    f[0] = least(n, 20.0) / 20.0;
    f[1] = t.n ? d / n : 0.0;
    f[2] = t.n ? (double)count[UPPER] / n : 0.0;
    f[3] = t.n ? (double)(count[UPPER] + count[LOWER] + count[LETTER]) / n : 0.0;
    f[4] = count[UPPER] && !count[LOWER];
    f[5] = cased && title;
    f[6] = t.n > 0 && count[DIGIT] == t.n;
    f[12] = end == ':';
    f[13] = count[CURRENCY] || codes;
    f[17] = a->is && a->decimals && a->ends;
    f[18] = like_a_date(t);
    f[19] = (double)five;
    f[20] = least(d, 12.0) / 12.0;
    f[21] = end == ',';
    f[22] = end == '.';
    f[23] = t.n == 1;
}

static void place_features(long i, long n, const double *box, const int32_t *row, const int32_t *line,
                           const int32_t *key, int later_piece, double h, double *f)
{
    long k = 0, L = 0, same = 0;
    double r = row[i], R = row[n - 1];
    for (long j = 0; j < n; j++) {
        L += row[j] == row[i];
        k += row[j] == row[i] && j < i;
        same += key[j] == key[i];
    }
    f[24] = least((double)k, 20.0) / 10.0;
    f[25] = least((double)L, 20.0) / 10.0;
    f[26] = k == 0;
    f[27] = k == L - 1;
    f[28] = least((box[4 * i + 3] - box[4 * i + 1]) / h, 3.0) / 3.0;
    f[29] = R > 0.0 ? r / R : 0.0;
    f[30] = n > 1 ? (double)i / (double)(n - 1) : 0.0;
    f[31] = least((double)i, 20.0) / 20.0;
    f[32] = later_piece;
    f[33] = i == 0 || line[i] != line[i - 1];
    f[34] = i == n - 1 || line[i] != line[i + 1];
    f[35] = key[i] < 0 ? 0.0 : least((double)same, 5.0) / 5.0;
    f[36] = least(r, 10.0) / 10.0;
    f[37] = least(R - r, 10.0) / 10.0;
    f[38] = key[i] < 0;
}

/* v[0 .. n-1]: the page's amounts in reading order, `at` their rows; out rows of 56. */
static void amount_features(const int64_t *v, const long *at, long n, const double *box, double h, double (*f)[56])
{
    int64_t top = 0, before = 0;
    for (long j = 0; j < n; j++)
        top = v[j] > top ? v[j] : top;
    for (long j = 0; j < n; j++) {
        double *x = f[at[j]];
        long rank = 0, often = 0;
        for (long g = 0; g < n; g++) {
            int first = 1;
            for (long e = 0; e < g; e++)
                first &= v[e] != v[g];
            rank += first && v[g] > v[j];
            often += v[g] == v[j];
            for (long e = 0; e < n; e++) {
                x[44] = v[g] + v[e] == v[j] ? 1.0 : x[44];
                x[45] = v[j] + v[g] == v[e] && v[g] != v[j] ? 1.0 : x[45];
            }
            x[55] = g < j && v[g] == v[j] ? 1.0 : x[55];
        }
        x[39] = 1.0;
        x[40] = (double)v[j] / (double)top;
        x[41] = v[j] == top;
        x[42] = least((double)rank, 5.0) / 5.0;
        x[43] = least((double)often, 5.0) / 5.0;
        x[46] = v[j] % 5 == 0;
        x[47] = v[j] == before;
        before = before > MOST - v[j] ? MOST : before + v[j];
        for (long k = j + 1; k < n && k <= j + 4; k++)
            for (long g = j > 256 ? j - 256 : 0; g < j; g++)
                if (v[g] == v[j] - v[k])
                    f[at[g]][48] = x[49] = f[at[k]][50] = 1.0;
        for (long k = j + 1; k < n && k <= j + 7; k++)
            for (long g = k + 1; g < n && g <= k + 256; g++)
                if (v[g] == v[j] + v[k])
                    f[at[g]][51] = x[52] = f[at[k]][52] = 1.0;
        for (long g = j > 6 ? j - 6 : 0; g < j; g++) {
            int64_t apart = v[j] > v[g] ? v[j] - v[g] : v[g] - v[j];
            x[53] = v[j] % 5 == 0 && (apart == 1 || apart == 2) ? 1.0 : x[53];
        }
        int64_t sum = 0;
        long terms = 0;
        for (long g = j - 1; g >= 0 && g >= j - 256; g--)
            if (fabs(box[4 * at[g] + 2] - box[4 * at[j] + 2]) < 1.2 * h) {
                sum = sum > MOST - v[g] ? MOST : sum + v[g];
                x[54] = ++terms >= 2 && sum == v[j] ? 1.0 : x[54];
            }
    }
}

void word_features(const Text *text, long n, const double *box, const int32_t *row, const int32_t *line,
                   const int32_t *key, const unsigned char *later_piece, double h, float *out)
{
    double (*f)[56] = calloc((size_t)n + 1, sizeof *f);
    Amount *a = calloc((size_t)n + 1, sizeof *a);
    int64_t *v = calloc((size_t)n + 1, sizeof *v);
    long *at = calloc((size_t)n + 1, sizeof *at), comma = 0, point = 0, count = 0;
    for (long i = 0; i < n; i++) {
        a[i] = amount(text[i]);
        comma += a[i].is && a[i].decimal == ',';
        point += a[i].is && a[i].decimal == '.';
    }
    uint32_t chosen = comma > point ? ',' : point ? '.' : 0;
    for (long i = 0; i < n; i++) {
        text_features(text[i], &a[i], f[i]);
        place_features(i, n, box, row, line, key, later_piece[i], h, f[i]);
        if (a[i].is && a[i].decimal == chosen && a[i].v) {
            v[count] = a[i].v;
            at[count++] = i;
        }
    }
    amount_features(v, at, count, box, h, f);
    for (long i = 0; i < n; i++)
        for (long k = 0; k < 56; k++)
            out[i * 56 + k] = (float)f[i][k];
    free(f), free(a), free(v), free(at);
}

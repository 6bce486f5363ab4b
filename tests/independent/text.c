/* Kinds, cuts, currency codes, character ids and keys of docs/numerics.md section 17. */
#include "page.h"
#include <stdlib.h>
#include <string.h>

int32_t (*known)[3];
long known_count;

static const int32_t *find(uint32_t code)
{
    for (long i = 0; i < known_count; i++)
        if ((uint32_t)known[i][0] == code)
            return known[i];
    abort();
}

int kind(uint32_t code) { return find(code)[1]; }

int is_letter(uint32_t code)
{
    int k = kind(code);
    return k == UPPER || k == LOWER || k == LETTER;
}

int is_alphanumeric(uint32_t code) { return is_letter(code) || kind(code) == DIGIT; }

/* A reader that goes forward through a word and remembers whether all it asked for was there. */
typedef struct { Text t; long i; int fits; } Reader;

static int there(const Reader *r, int which) { return r->i < r->t.n && kind(r->t.code[r->i]) == which; }

static void digits(Reader *r, int least, int most)
{
    int count = 0;
    while (count < most && there(r, DIGIT))
        r->i++, count++;
    r->fits = r->fits && count >= least;
}

static int sign_here(const Reader *r) { return r->i < r->t.n && r->t.code[r->i] < 128 && r->t.code[r->i]
                                               && strchr("/-.", (int)r->t.code[r->i]); }

static void sign(Reader *r)
{
    r->fits = r->fits && sign_here(r);
    r->i++;
}

static long date_at(Text t, long i)
{
    Reader r = {t, i, 1};
    digits(&r, 1, 2), sign(&r), digits(&r, 1, 2), sign(&r), digits(&r, 2, 4);
    if (r.fits)
        return r.i;
    r = (Reader){t, i, 1};
    digits(&r, 4, 4), sign(&r), digits(&r, 1, 2), sign(&r), digits(&r, 1, 2);
    if (r.fits)
        return r.i;
    r = (Reader){t, i, i == 0 || kind(t.code[i - 1]) != DIGIT};
    digits(&r, 8, 8);
    if (r.fits && !there(&r, DIGIT)) {
        const uint32_t *c = t.code + i;
        if (c[0] == '2' && c[1] == '0' && (c[2] == '1' || c[2] == '2') && (c[4] == '0' || c[4] == '1')
            && c[6] >= '0' && c[6] <= '3')
            return r.i;
    }
    r = (Reader){t, i, 1};
    digits(&r, 1, 2);
    if (sign_here(&r) || there(&r, SPACE))
        r.i++;
    for (int k = 0; k < 3; k++, r.i++)
        r.fits = r.fits && r.i < t.n && is_letter(t.code[r.i]);
    if (sign_here(&r) || there(&r, SPACE))
        r.i++;
    digits(&r, 2, 4);
    return r.fits && !there(&r, DIGIT) ? r.i : -1;
}

static void date_cuts(Text t, unsigned char *cut)
{
    for (long i = 0; i < t.n; i++) {
        long end = date_at(t, i), outside = 0;
        if (end < 0)
            continue;
        if ((i > 0 && kind(t.code[i - 1]) == DIGIT) || (end < t.n && kind(t.code[end]) == DIGIT))
            return;
        for (long k = 0; k < t.n; k++)
            outside += (k < i || k >= end) && is_alphanumeric(t.code[k]);
        if (outside)
            cut[i] = cut[end] = 1;
        return;
    }
}

long currency_code(Text t, long i)
{
    static const char *const codes[] = {"RM", "RP", "USD", "EUR", "GBP", "CHF", "MYR", "SGD", "IDR"};
    if (i > 0 && is_letter(t.code[i - 1]))
        return -1;
    for (int c = 0; c < 9; c++) {
        long size = (long)strlen(codes[c]), k = 0;
        while (k < size && i + k < t.n && (t.code[i + k] == (uint32_t)codes[c][k]
                                           || t.code[i + k] == (uint32_t)codes[c][k] + 32))
            k++;
        if (k == size && (i + k == t.n || !is_letter(t.code[i + k])))
            return i + k;
    }
    return -1;
}

long cuts(Text t, long *at)
{
    unsigned char *cut = calloc((size_t)t.n + 2, 1);
    long count = 0;
    date_cuts(t, cut);
    for (long i = 1; i < t.n; i++) {
        uint32_t c = t.code[i], before = t.code[i - 1];
        if (before == ':' && i >= 2 && (is_letter(t.code[i - 2]) || t.code[i - 2] == '.' || t.code[i - 2] == ')')
            && (is_alphanumeric(c) || kind(c) == CURRENCY))
            cut[i] = 1;
        if ((c == '(' || c == '[') && (is_alphanumeric(before) || before == '_' || before == '.'))
            cut[i] = 1;
        if ((before == ')' || before == ']') && (is_alphanumeric(c) || c == '_'))
            cut[i] = 1;
    }
    cut[0] = 1;
    for (long i = 0; i < t.n; i++) {
        long end = cut[i] ? currency_code(t, i) : -1;
        if (end > 0 && end < t.n && kind(t.code[end]) == DIGIT)
            cut[end] = 1;
    }
    for (long i = 1; i < t.n; i++)
        if (cut[i])
            at[count++] = i;
    free(cut);
    return count;
}

void character_ids(Text t, long most, int32_t *ids)
{
    static const uint32_t one_space = ' ';
    while (t.n && kind(t.code[0]) == SPACE)
        t.code++, t.n--;
    while (t.n && kind(t.code[t.n - 1]) == SPACE)
        t.n--;
    if (!t.n)
        t = (Text){&one_space, 1};
    for (long i = 0; i < most; i++) {
        long head = most - most / 2, from = t.n <= most || i < head ? i : t.n - most + i;
        uint32_t c = from < t.n ? t.code[from] : 0;
        ids[i] = from >= t.n ? 0 : (int32_t)(c >= 0x20 && c <= 0x7e ? c - 31 : 96 + c * 2654435761u % 160);
    }
}

static uint32_t upper(uint32_t c) { return c >= 'a' && c <= 'z' ? c - 32 : c; }

static int same_key(Text a, Text b)
{
    long i = 0, j = 0;
    for (;; i++, j++) {
        while (i < a.n && !is_alphanumeric(a.code[i]))
            i++;
        while (j < b.n && !is_alphanumeric(b.code[j]))
            j++;
        if (i == a.n || j == b.n)
            return i == a.n && j == b.n;
        if (upper(a.code[i]) != upper(b.code[j]))
            return 0;
    }
}

void keys(const Text *t, long n, int32_t *key)
{
    for (long i = 0; i < n; i++) {
        if (same_key(t[i], (Text){NULL, 0})) {
            key[i] = (int32_t)(-1 - i);
            continue;
        }
        for (key[i] = 0; !same_key(t[key[i]], t[i]); key[i]++)
            ;
    }
}

/* Reading words as arrays of code points: kinds of characters, amounts, dates, and where a word is cut. Integers only;
 * nothing here depends on a locale or on a library's idea of a digit. */
#ifndef DX_TEXT_SCAN_H
#define DX_TEXT_SCAN_H

#include <dx_numerics/config.h>

/* Kinds of code points (Unicode 14.0 general categories). The last two occur only in the table of runs. */
enum {
    DX_UNASSIGNED, DX_OTHER, DX_DIGIT, DX_UPPER, DX_LOWER, DX_LETTER, DX_SPACE, DX_PUNCTUATION, DX_CURRENCY,
    DX_UPPER_LOWER, DX_LOWER_UPPER
};
extern const ptrdiff_t dx_kind_runs_count;
extern const uint32_t dx_kind_runs[];
extern const uint8_t dx_kinds_ascii[128];

/* kind | digit value << 4 of a code point; DX_UNASSIGNED above U+10FFFF and for surrogates. */
DX_INLINE uint8_t dx_kind(uint32_t code)
{
    if (code < 128) return dx_kinds_ascii[code];
    if (code > 0x10FFFF) return DX_UNASSIGNED;
    ptrdiff_t low = 0, high = dx_kind_runs_count; /* the run that holds the code is in low..high-1 */
    while (high - low > 1) {
        ptrdiff_t middle = low + (high - low) / 2;
        if (dx_kind_runs[middle] >> 4 <= code) low = middle;
        else high = middle;
    }
    uint32_t kind = dx_kind_runs[low] & 15, offset = code - (dx_kind_runs[low] >> 4);
    if (kind == DX_DIGIT) return (uint8_t)(DX_DIGIT | (offset % 10) << 4);
    if (kind == DX_UPPER_LOWER) return offset & 1 ? DX_LOWER : DX_UPPER;
    if (kind == DX_LOWER_UPPER) return offset & 1 ? DX_UPPER : DX_LOWER;
    return (uint8_t)kind;
}

/* A word: code points and their kinds. */
typedef struct { const uint32_t *code; const uint8_t *kind; ptrdiff_t length; } dx_word;

DX_INLINE int dx_in(const dx_word *w, ptrdiff_t i) { return i >= 0 && i < w->length; }
DX_INLINE int dx_is_digit(const dx_word *w, ptrdiff_t i) { return dx_in(w, i) && (w->kind[i] & 15) == DX_DIGIT; }
DX_INLINE int dx_is_letter(const dx_word *w, ptrdiff_t i)
{
    int kind = dx_in(w, i) ? w->kind[i] & 15 : 0;
    return kind == DX_UPPER || kind == DX_LOWER || kind == DX_LETTER;
}
DX_INLINE int dx_is_alnum(const dx_word *w, ptrdiff_t i) { return dx_is_digit(w, i) || dx_is_letter(w, i); }
DX_INLINE int dx_is(const dx_word *w, ptrdiff_t i, char c) { return dx_in(w, i) && w->code[i] == (uint32_t)c; }
DX_INLINE uint32_t dx_ascii_upper(uint32_t c) { return c >= 'a' && c <= 'z' ? c - 32 : c; }

DX_INLINE ptrdiff_t dx_digits(const dx_word *w, ptrdiff_t i, ptrdiff_t most) /* digits in a row from i, at most most */
{
    ptrdiff_t n = 0;
    while (n < most && dx_is_digit(w, i + n)) n++;
    return n;
}

/* The length of a currency code that stands at i as a whole run of letters, or 0. */
DX_INLINE ptrdiff_t dx_currency_code(const dx_word *w, ptrdiff_t i)
{
    static const char codes[][4] = {"RM", "RP", "USD", "EUR", "GBP", "CHF", "MYR", "SGD", "IDR"};
    ptrdiff_t n = 0;
    if (dx_is_letter(w, i - 1)) return 0;
    while (n < 4 && dx_is_letter(w, i + n)) n++;
    for (size_t k = 0; k < sizeof codes / sizeof *codes; k++) {
        ptrdiff_t length = (ptrdiff_t)strlen(codes[k]), same = 0;
        while (same < length && same < n && dx_ascii_upper(w->code[i + same]) == (uint32_t)codes[k][same]) same++;
        if (same == length && n == length) return n;
    }
    return 0;
}

/* An amount: at most 3 other characters, digits, at most 2 other characters, no percent sign, at most 13 digits.
 * DX_POINT, DX_COMMA: a decimal '.' or ',' with two digits after it, before it digits, optionally in groups (first 1
 * to 3, then exactly 3 digits) divided by one sign of . , ' U+2019 or space that is not the decimal sign.
 * DX_WHOLE: groups without decimals ("20,000"), first digit not 0. cents is the value in hundredths. */
enum { DX_NO_AMOUNT, DX_WHOLE, DX_POINT, DX_COMMA };
typedef struct { int kind; int64_t cents; ptrdiff_t end; } dx_amount; /* end: after the last digit */

DX_INLINE int dx_group_sign(const dx_word *w, ptrdiff_t i)
{
    uint32_t c = w->code[i];
    return c == '.' || c == ',' || c == '\'' || c == 0x2019 || (w->kind[i] & 15) == DX_SPACE;
}

DX_INLINE dx_amount dx_read_amount(const dx_word *w)
{
    dx_amount none = {DX_NO_AMOUNT, 0, 0}, a = none;
    ptrdiff_t begin = 0, end = w->length, sign = -1, digits = 0;
    while (begin < w->length && !dx_is_digit(w, begin)) begin++;
    while (end > begin && !dx_is_digit(w, end - 1)) end--;
    if (begin == w->length || begin > 3 || w->length - end > 2 || end - begin > 20) return none;
    for (ptrdiff_t i = 0; i < w->length; i++) if (w->code[i] == '%') return none;
    for (ptrdiff_t i = begin; i < end; i++) {
        if (dx_is_digit(w, i)) { digits++; a.cents = a.cents * 10 + (w->kind[i] >> 4); }
        else if (dx_group_sign(w, i)) sign = i;
        else return none;
        if (digits > 13) return none;
    }
    if (sign < 0) return none;
    a.end = end;
    a.kind = DX_WHOLE;
    if (end - sign - 1 == 2) a.kind = dx_is(w, sign, '.') ? DX_POINT : dx_is(w, sign, ',') ? DX_COMMA : DX_WHOLE;
    uint32_t group = 0; /* the group sign, once seen */
    ptrdiff_t run = 0, last = a.kind == DX_WHOLE ? end : sign;
    for (ptrdiff_t i = begin; i <= last; i++) {
        if (i < last && dx_is_digit(w, i)) { run++; continue; }
        if (group ? run != 3 : run < 1 || (i < last && run > 3)) return none;
        if (i == last) break;
        if (group && w->code[i] != group) return none;
        group = w->code[i];
        run = 0;
    }
    if (a.kind != DX_WHOLE) return group == w->code[sign] ? none : a;
    if (w->kind[begin] >> 4 == 0) return none;
    a.cents *= 100; /* at most 13 digits: below 2^51 */
    return a;
}

DX_INLINE int dx_date_sign(const dx_word *w, ptrdiff_t i) { return dx_is(w, i, '/') || dx_is(w, i, '-') || dx_is(w, i, '.'); }

/* The length of a date that begins at i, or 0: the first that fits of d/m/y, y/m/d, yyyymmdd, d MON y. */
DX_INLINE ptrdiff_t dx_date_at(const dx_word *w, ptrdiff_t i)
{
    ptrdiff_t a = dx_digits(w, i, 4), b, c, p;
    if (a == 0) return 0;
    if (a <= 2 && dx_date_sign(w, i + a)) {
        b = dx_digits(w, i + a + 1, 2);
        p = i + a + 1 + b;
        if (b && dx_date_sign(w, p) && (c = dx_digits(w, p + 1, 4)) >= 2) return p + 1 + c - i;
    }
    if (a == 4 && dx_date_sign(w, i + 4)) {
        b = dx_digits(w, i + 5, 2);
        p = i + 5 + b;
        if (b && dx_date_sign(w, p) && (c = dx_digits(w, p + 1, 2))) return p + 1 + c - i;
    }
    if (a == 4 && !dx_is_digit(w, i - 1) && dx_digits(w, i, 9) == 8) {
        int d[8];
        for (int k = 0; k < 8; k++) d[k] = w->kind[i + k] >> 4;
        if (d[0] == 2 && d[1] == 0 && (d[2] == 1 || d[2] == 2) && d[4] <= 1 && d[6] <= 3) return 8;
    }
    if (a <= 2) {
        p = i + a;
        if (dx_date_sign(w, p) || (dx_in(w, p) && (w->kind[p] & 15) == DX_SPACE)) p++;
        if (dx_is_letter(w, p) && dx_is_letter(w, p + 1) && dx_is_letter(w, p + 2)) {
            p += 3;
            if (dx_date_sign(w, p) || (dx_in(w, p) && (w->kind[p] & 15) == DX_SPACE)) p++;
            c = dx_digits(w, p, 5);
            if (c >= 2 && c <= 4) return p + c - i;
        }
    }
    return 0;
}

/* The first date of a word: *begin and its length, 0 if there is none. */
DX_INLINE ptrdiff_t dx_find_date(const dx_word *w, ptrdiff_t *begin)
{
    for (ptrdiff_t i = 0; i < w->length; i++) {
        ptrdiff_t length = dx_date_at(w, i);
        if (length) { *begin = i; return length; }
    }
    return 0;
}

/* The whole word is three groups of 1-4, 1-2 and 1-4 digits with / - or . between, at most one other character before
 * and after. */
DX_INLINE int dx_is_date_like(const dx_word *w)
{
    ptrdiff_t p = dx_is_digit(w, 0) ? 0 : 1, n;
    if (!(n = dx_digits(w, p, 4)) || !dx_date_sign(w, p + n)) return 0;
    p += n + 1;
    if (!(n = dx_digits(w, p, 2)) || !dx_date_sign(w, p + n)) return 0;
    p += n + 1;
    if (!(n = dx_digits(w, p, 4))) return 0;
    p += n;
    return p == w->length || (p + 1 == w->length && !dx_is_digit(w, p));
}

#endif

/* Words as code points: cleaning, kinds, cuts, text keys, character ids, distinct words. Integers only. */
#include "table.h"

int DX_FN(text_clean)(ptrdiff_t n, const uint32_t *code, uint32_t *out)
{
    for (ptrdiff_t i = 0; i < n; i++) out[i] = dx_kind(code[i]) == DX_UNASSIGNED ? 0xFFFD : code[i];
    return DX_OK;
}

int DX_FN(text_kinds)(ptrdiff_t n, const uint32_t *code, uint8_t *kind)
{
    for (ptrdiff_t i = 0; i < n; i++) kind[i] = dx_kind(code[i]);
    return DX_OK;
}

static dx_word word_at(const int64_t *offset, const uint32_t *code, const uint8_t *kind, ptrdiff_t w)
{
    return (dx_word){code + offset[w], kind + offset[w], (ptrdiff_t)(offset[w + 1] - offset[w])};
}

/* Letters and digits in w[begin..end-1]. */
static ptrdiff_t count_alnum(const dx_word *w, ptrdiff_t begin, ptrdiff_t end)
{
    ptrdiff_t n = 0;
    for (ptrdiff_t i = begin; i < end; i++) n += dx_is_alnum(w, i);
    return n;
}

/* cut[i] = 1 where a piece of a word begins inside it: around a date that is not the whole word, after LABEL:, before
 * an opening and after a closing bracket, after a currency code that begins a piece and that a digit follows. */
int DX_FN(text_cuts)(ptrdiff_t words, const int64_t *offset, const uint32_t *code, const uint8_t *kind, uint8_t *cut)
{
    for (ptrdiff_t n = 0; n < words; n++) {
        dx_word w = word_at(offset, code, kind, n);
        uint8_t *c = cut + offset[n];
        memset(c, 0, (size_t)w.length);
        ptrdiff_t begin = 0, length = dx_find_date(&w, &begin), end = begin + length;
        if (length && !dx_is_digit(&w, begin - 1) && !dx_is_digit(&w, end) &&
            count_alnum(&w, 0, begin) + count_alnum(&w, end, w.length) > 0) {
            c[begin] = 1;
            if (end < w.length) c[end] = 1;
        }
        for (ptrdiff_t i = 1; i < w.length; i++) {
            int before = dx_is_alnum(&w, i - 1) || dx_is(&w, i - 1, '_');
            if ((dx_is(&w, i, '(') || dx_is(&w, i, '[')) && (before || dx_is(&w, i - 1, '.'))) c[i] = 1;
            if ((dx_is(&w, i - 1, ')') || dx_is(&w, i - 1, ']')) && (dx_is_alnum(&w, i) || dx_is(&w, i, '_'))) c[i] = 1;
            if (dx_is(&w, i - 1, ':') && (dx_is_letter(&w, i - 2) || dx_is(&w, i - 2, '.') || dx_is(&w, i - 2, ')')) &&
                (dx_is_alnum(&w, i) || (w.kind[i] & 15) == DX_CURRENCY)) c[i] = 1;
        }
        if (w.length) c[0] = 0;
        for (ptrdiff_t i = 0; i < w.length; i++)
            if ((i == 0 || c[i]) && (length = dx_currency_code(&w, i)) && dx_is_digit(&w, i + length)) c[i + length] = 1;
    }
    return DX_OK;
}

/* FNV-1a over 32-bit units, folded so that the low bits are good. */
static uint64_t hash_step(uint64_t h, uint32_t unit) { return (h ^ unit) * 0x100000001B3ULL; }
static size_t hash_slot(uint64_t h, size_t mask) { return (size_t)(h ^ h >> 29) & mask; }

static size_t table_size(ptrdiff_t n)
{
    size_t size = 16;
    while (size < 2 * (size_t)n) size *= 2;
    return size;
}

/* The next letter or digit of w from *i on, ASCII upper case; 0 at the end. */
static uint32_t next_alnum(const dx_word *w, ptrdiff_t *i)
{
    while (*i < w->length && !dx_is_alnum(w, *i)) ++*i;
    return *i < w->length ? dx_ascii_upper(w->code[(*i)++]) : 0;
}

static int same_alnum(dx_word a, dx_word b)
{
    for (ptrdiff_t i = 0, j = 0;;) {
        uint32_t x = next_alnum(&a, &i), y = next_alnum(&b, &j);
        if (x != y) return 0;
        if (x == 0) return 1;
    }
}

/* key[w] is the first word with the same letters and digits in the same order (ASCII case ignored); -1 - w without any. */
int DX_FN(text_keys)(ptrdiff_t words, const int64_t *offset, const uint32_t *code, const uint8_t *kind, int32_t *key)
{
    dx_mark mark = dx_scratch_mark();
    size_t size = table_size(words);
    int32_t *table = dx_scratch(size * sizeof *table); /* word + 1, 0 is free */
    if (!table) return DX_NO_MEMORY;
    memset(table, 0, size * sizeof *table);
    for (ptrdiff_t n = 0; n < words; n++) {
        dx_word w = word_at(offset, code, kind, n);
        uint64_t h = 0xCBF29CE484222325ULL;
        ptrdiff_t i = 0;
        uint32_t c = next_alnum(&w, &i);
        key[n] = (int32_t)(-1 - n);
        if (!c) continue;
        for (; c; c = next_alnum(&w, &i)) h = hash_step(h, c);
        size_t slot = hash_slot(h, size - 1);
        while (table[slot] && !same_alnum(w, word_at(offset, code, kind, table[slot] - 1))) slot = (slot + 1) & (size - 1);
        if (!table[slot]) table[slot] = (int32_t)(n + 1);
        key[n] = table[slot] - 1;
    }
    dx_scratch_release(mark);
    return DX_OK;
}

/* 1..95 for printable ASCII, otherwise 96 + (code * 2654435761 mod 2^32) mod 160. */
static int32_t character_id(uint32_t code)
{
    return code >= 32 && code < 127 ? (int32_t)code - 31 : (int32_t)(96 + (code * 2654435761u) % 160u);
}

/* White space at both ends is dropped; a word without any other character is one space. The head is the longer half. */
int DX_FN(character_ids)(ptrdiff_t words, const int64_t *offset, const uint32_t *code, const uint8_t *kind,
                         ptrdiff_t max_chars, int32_t *ids)
{
    for (ptrdiff_t n = 0; n < words; n++, ids += max_chars) {
        dx_word w = word_at(offset, code, kind, n);
        ptrdiff_t begin = 0, end = w.length;
        while (begin < end && (w.kind[begin] & 15) == DX_SPACE) begin++;
        while (end > begin && (w.kind[end - 1] & 15) == DX_SPACE) end--;
        ptrdiff_t length = end - begin, head = length <= max_chars ? length : max_chars - max_chars / 2;
        for (ptrdiff_t i = 0; i < head; i++) ids[i] = character_id(w.code[begin + i]);
        for (ptrdiff_t i = head; i < max_chars; i++)
            ids[i] = length > max_chars ? character_id(w.code[end - max_chars + i]) : 0;
        if (length == 0) ids[0] = character_id(' ');
    }
    return DX_OK;
}

int DX_FN(distinct_rows)(ptrdiff_t rows, ptrdiff_t width, const int32_t *ids, int32_t *distinct, int32_t *inverse,
                         int64_t *count)
{
    dx_mark mark = dx_scratch_mark();
    size_t size = table_size(rows), bytes = (size_t)width * sizeof *ids;
    int32_t *table = dx_scratch(size * sizeof *table), found = 0; /* distinct row + 1, 0 is free */
    if (!table) return DX_NO_MEMORY;
    memset(table, 0, size * sizeof *table);
    for (ptrdiff_t r = 0; r < rows; r++) {
        const int32_t *row = ids + r * width;
        uint64_t h = 0xCBF29CE484222325ULL;
        for (ptrdiff_t i = 0; i < width; i++) h = hash_step(h, (uint32_t)row[i]);
        size_t slot = hash_slot(h, size - 1);
        while (table[slot] && memcmp(distinct + (table[slot] - 1) * width, row, bytes)) slot = (slot + 1) & (size - 1);
        if (!table[slot]) {
            memcpy(distinct + found * width, row, bytes);
            table[slot] = ++found;
        }
        inverse[r] = table[slot] - 1;
    }
    *count = found;
    dx_scratch_release(mark);
    return DX_OK;
}

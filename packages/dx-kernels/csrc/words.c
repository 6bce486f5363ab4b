/* The 56 features of a word: 24 of its text, 15 of its place, 17 of its amount (docs/numerics.md, section 17). Each is
 * computed in binary64 and rounded once. */
#include "amounts.h"
#include "table.h"

#define TEXT_FEATURES 24
#define PLACE_FEATURES 15

static double share(ptrdiff_t part, ptrdiff_t whole) { return whole ? (double)part / (double)whole : 0.0; }
static double capped(ptrdiff_t n, ptrdiff_t most, double unit) { return (double)(n < most ? n : most) / unit; }

/* Upper case only after an uncased character, lower case only after a cased one, at least one cased. */
static int is_title(const dx_word *w)
{
    int cased = 0, any = 0;
    for (ptrdiff_t i = 0; i < w->length; i++) {
        int kind = w->kind[i] & 15, upper = kind == DX_UPPER, lower = kind == DX_LOWER;
        if ((upper && cased) || (lower && !cased)) return 0;
        cased = upper || lower;
        any |= cased;
    }
    return any;
}

static void text_features(const dx_word *w, const dx_amount *amount, double *f)
{
    ptrdiff_t n = w->length, digits = 0, upper = 0, lower = 0, letters = 0, run = 0, longest = 0;
    int dot = 0, comma = 0, slash = 0, dash = 0, colon = 0, percent = 0, number = 0, bracket = 0, currency = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        int kind = w->kind[i] & 15;
        run = kind == DX_DIGIT ? run + 1 : 0;
        if (run > longest) longest = run;
        digits += kind == DX_DIGIT;
        upper += kind == DX_UPPER;
        lower += kind == DX_LOWER;
        letters += kind == DX_UPPER || kind == DX_LOWER || kind == DX_LETTER;
        currency |= kind == DX_CURRENCY || dx_currency_code(w, i) > 0;
        dot |= w->code[i] == '.';
        comma |= w->code[i] == ',';
        slash |= w->code[i] == '/';
        dash |= w->code[i] == '-';
        colon |= w->code[i] == ':';
        percent |= w->code[i] == '%';
        number |= w->code[i] == '#';
        bracket |= w->code[i] == '(';
    }
    const double values[TEXT_FEATURES] = {
        capped(n, 20, 20), share(digits, n), share(upper, n), share(letters, n), upper > 0 && lower == 0, is_title(w),
        n > 0 && digits == n, dot, comma, slash, dash, colon, dx_is(w, n - 1, ':'), currency, percent, number, bracket,
        amount->kind > DX_WHOLE && amount->end == n, dx_is_date_like(w), longest >= 5, capped(digits, 12, 12),
        dx_is(w, n - 1, ','), dx_is(w, n - 1, '.'), n == 1};
    memcpy(f, values, sizeof values);
}

/* Features 24-38 of every word; times (n) is scratch: how often a key occurs. */
static void place_features(ptrdiff_t n, const double *box, const int32_t *row, const int32_t *line, const int32_t *key,
                           const uint8_t *glue, double line_height, int32_t *times, double *feature, ptrdiff_t width)
{
    memset(times, 0, (size_t)n * sizeof *times);
    for (ptrdiff_t i = 0; i < n; i++) if (key[i] >= 0) times[key[i]]++;
    ptrdiff_t rows = row[n - 1];
    for (ptrdiff_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && row[end] == row[begin]; end++) {}
        for (ptrdiff_t i = begin; i < end; i++) {
            double high = (box[4 * i + 3] - box[4 * i + 1]) / line_height;
            const double values[PLACE_FEATURES] = {
                capped(i - begin, 20, 10), capped(end - begin, 20, 10), i == begin, i == end - 1,
                (high < 3 ? high : 3) / 3, share(row[i], rows), share(i, n - 1), capped(i, 20, 20), glue[i],
                i == 0 || line[i - 1] != line[i], i == n - 1 || line[i + 1] != line[i],
                key[i] < 0 ? 0 : capped(times[key[i]], 5, 5), capped(row[i], 10, 10), capped(rows - row[i], 10, 10),
                key[i] < 0};
            memcpy(feature + i * width, values, sizeof values);
        }
    }
}

int DX_FN(word_features)(ptrdiff_t n, const int64_t *offset, const uint32_t *code, const uint8_t *kind,
                         const double *box, const int32_t *row, const int32_t *line, const int32_t *key,
                         const uint8_t *glue, double line_height, float *out)
{
    if (n == 0) return DX_OK;
    const ptrdiff_t width = DX_WORD_FEATURE_COUNT;
    dx_mark mark = dx_scratch_mark();
    double *feature = dx_scratch((size_t)(n * width) * sizeof *feature);
    dx_amount *amount = dx_scratch((size_t)n * sizeof *amount);
    int32_t *times = dx_scratch((size_t)n * sizeof *times), *word = dx_scratch((size_t)n * sizeof *word);
    int64_t *value = dx_scratch((size_t)n * sizeof *value);
    double *right = dx_scratch((size_t)n * sizeof *right);
    double *relations = dx_scratch((size_t)(n * AMOUNT_FEATURES) * sizeof *relations);
    int status = feature && amount && times && word && value && right && relations ? DX_OK : DX_NO_MEMORY;
    if (status == DX_OK) {
        ptrdiff_t seen[DX_COMMA + 1] = {0}; /* the page's decimal sign is the one with more amounts */
        for (ptrdiff_t i = 0; i < n; i++) {
            dx_word w = {code + offset[i], kind + offset[i], (ptrdiff_t)(offset[i + 1] - offset[i])};
            amount[i] = dx_read_amount(&w);
            seen[amount[i].kind]++;
            text_features(&w, amount + i, feature + i * width);
        }
        place_features(n, box, row, line, key, glue, line_height, times, feature + TEXT_FEATURES, width);
        int wanted = seen[DX_COMMA] > seen[DX_POINT] ? DX_COMMA : seen[DX_POINT] ? DX_POINT : DX_WHOLE;
        amounts a = {0, value, right, relations};
        for (ptrdiff_t i = 0; i < n; i++)
            if (amount[i].kind == wanted && amount[i].cents > 0) {
                word[a.count] = (int32_t)i;
                value[a.count] = amount[i].cents;
                right[a.count++] = box[4 * i + 2];
            }
        memset(relations, 0, (size_t)(a.count * AMOUNT_FEATURES) * sizeof *relations);
        status = amount_values(&a);
        amount_neighbours(&a, line_height);
        for (ptrdiff_t i = 0; i < n; i++)
            memset(feature + i * width + TEXT_FEATURES + PLACE_FEATURES, 0, AMOUNT_FEATURES * sizeof *feature);
        for (ptrdiff_t i = 0; i < a.count; i++)
            memcpy(feature + word[i] * width + TEXT_FEATURES + PLACE_FEATURES, relations + i * AMOUNT_FEATURES,
                   AMOUNT_FEATURES * sizeof *feature);
        for (ptrdiff_t i = 0; i < n * width; i++) out[i] = (float)feature[i];
    }
    dx_scratch_release(mark);
    return status;
}

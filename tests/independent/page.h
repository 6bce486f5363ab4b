/* A page as a source gives it, and the steps from it to the arrays of the model: docs/numerics.md section 17. */
#ifndef DX_INDEPENDENT_PAGE_H
#define DX_INDEPENDENT_PAGE_H
#include <stdint.h>

enum { DIGIT, UPPER, LOWER, LETTER, SPACE, CURRENCY, PUNCTUATION, UNASSIGNED, OTHER };

typedef struct { const uint32_t *code; long n; } Text;

typedef struct {
    int64_t n, rotation, keep_file_order, columns, cut;
    double width, height;
    double *box;        /* (n, 4) */
    int32_t *line;      /* (n); -1: none */
    int32_t *offset;    /* (n + 1) into code */
    uint32_t *code;
} Source;

/* The kinds of the code points in use, from the input: (code point, kind, digit value or 0). */
extern int32_t (*known)[3];
extern long known_count;
int kind(uint32_t code);
int is_letter(uint32_t code);        /* upper, lower or letter */
int is_alphanumeric(uint32_t code);

/* order[r]: the word read at place r; row[r]: its row. Turns the boxes upright first. */
void reading_order(Source *source, int32_t *order, int32_t *row);
/* Places (0 < i < n) before which a word is cut, ascending; returns how many. */
long cuts(Text word, long *at);
/* In "text" the place where a currency code that is a whole run of letters begins at i ends, else -1. */
long currency_code(Text text, long i);
void character_ids(Text text, long max_chars, int32_t *ids);
void keys(const Text *text, long n, int32_t *key);
void word_features(const Text *text, long n, const double *box, const int32_t *row, const int32_t *line,
                   const int32_t *key, const unsigned char *later_piece, double h, float *out);
#endif

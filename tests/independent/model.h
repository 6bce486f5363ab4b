/* The tensors, the page and the saved activations of docs/docextract-v0.md. */
#ifndef DX_INDEPENDENT_MODEL_H
#define DX_INDEPENDENT_MODEL_H
#include "page.h"
#include <stdint.h>

/* As the input file gives them, in this order. */
typedef struct {
    int64_t fields, roles, types, d, layers, heads, m, max_chars, vocab, char_dim, channels, buckets, F, P, units, r;
} Config;

/* What only the model file and the windows tell. */
typedef struct {
    int64_t max_words, cut, keep_file_order, columns, numerics_version, window;  /* window: rows of show_merged */
    char **fields, **roles, **types;
} Names;

/* One row of the tensor table; the arrays are in memory order, `shape` is the file's. */
typedef struct {
    char name[32];
    long shape[3], count;
    int axes, decay, head, frozen;
    double init;                   /* deviation of the normal initial values, or INIT_ZERO, INIT_ONE */
    float *w, *g, *sum, *m1, *m2;  /* weight, gradient of one page, of the batch, the moments of AdamW */
} Tensor;
#define INIT_ZERO 0.0
#define INIT_ONE (-1.0)

typedef struct {
    Config c;
    double eps;
    int32_t *repeated;             /* (fields) */
    int count;
    Tensor tensor[256];
} Model;

enum { TAG, RUN, ROLE, DOC, ITEM, KEY_VALUE, TERMS };

typedef struct { double X, Y, W, H, h; } Content;  /* corner, extents, line height */

typedef struct {
    int64_t n, distinct, run_terms, run_places;
    int32_t *chars, *inverse;                      /* (distinct, max_chars), (n) */
    float *features;                               /* (n, F) */
    double *box;                                   /* (n, 4) */
    Content content;                               /* of the whole page, also in a window */
    int32_t *row, *line, *key;                     /* (n) */
    int32_t *tag, *role, *doc, *item, *key_value;  /* targets */
    int32_t *run_fields, *run_places_of;           /* (run_terms), (run_places, 3) */
} Page;

/* What a block keeps for its backward pass. */
typedef struct {
    float *xhat1, *inv1, *a, *qkv, *p, *attended, *x1, *xhat2, *inv2, *b, *pre, *t, *gelu;
} Saved;

typedef struct {
    const Page *page;
    int32_t *position[4], *argmax;
    float *pairs, *hidden, *pair_bias, *pooled, *xhat0, *inv0, *xhat_final, *inv_final, *f, *mean, *q, *k;
    Saved block[16];
    float *tag, *role, *doc, *pointer;        /* logits; pointer (2, n, n): items, key-value */
    float *dtag, *drole, *ddoc, *dpointer;    /* their gradients */
    int on[TERMS];                            /* terms that take part */
} Pass;


Content content(const double *box, long n);
Page encode(const Config *config, Source *source);
Tensor *tensor(Model *model, const char *name, ...);
float *floats(long count);
/* Where element k of the file's layout of a tensor stands in memory. */
long place(const Tensor *t, long k);
/* Prints the SHA-256 of the model file as it would be written. */
void show_file(const Model *model, const Names *names, const char *name);
/* A page in windows of at most `most` rows: what extraction starts from. */
void show_merged(Model *model, const Page *page, long most, const char *group);
void forward(Model *model, const Page *page, Pass *pass);
void backward(Model *model, Pass *pass);
/* Terms of weight 0 are off. loss[term] = numerator / denominator; gradients into the pass, each scaled by weight * factor. */
void losses(Model *model, Pass *pass, const double *weight, double field_weight, double factor, double *loss);
double run_loss(const float *logits, long n, long fields, const int32_t *repeated, const int32_t *term_field,
                long terms, const int32_t *places, long place_count, double scale, float *dlogits);
/* Over the batch's gradients `sum`: returns their norm before clipping. */
double clip(Model *model, double max_norm);

typedef struct {
    int64_t order_seed, steps, batch, warmup;
    double peak, final_rate, weight_decay, beta1, beta2, epsilon, max_norm, backbone_scale, field_weight, weight[TERMS];
} Settings;

double learning_rate(const Settings *s, long step);
long example_at(const Settings *s, long count, long position);
void adamw(Model *model, const Settings *s, long step, double rate);
#endif

/* The model file: docs/docextract-v0.md section 7. */
#include "model.h"
#include "sha256.h"
#include <stdarg.h>
#include <stdlib.h>

typedef struct { char *text; size_t size, room; } Buffer;

static void put(Buffer *b, const char *format, ...)
{
    va_list rest, again;
    va_start(rest, format);
    va_copy(again, rest);
    size_t more = (size_t)vsnprintf(NULL, 0, format, rest);
    if (b->size + more + 1 > b->room) {
        b->room = 2 * (b->size + more + 1);
        b->text = realloc(b->text, b->room);
    }
    vsnprintf(b->text + b->size, more + 1, format, again);
    b->size += more;
    va_end(rest);
    va_end(again);
}

/* A JSON string: only what must be escaped is, as RFC 8785 says; non-ASCII text stays UTF-8. */
static void put_string(Buffer *b, const char *text)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    put(b, "\"");
    for (; *text; text++) {
        const char *found = strchr(from, *text);
        if (found)
            put(b, "\\%c", to[found - from]);
        else
            put(b, (unsigned char)*text < 0x20 ? "\\u%04x" : "%c", *text);
    }
    put(b, "\"");
}

/* ECMAScript's shortest text of a positive number between 1e-6 and 1e21 that is not a whole one. */
static void put_number(Buffer *b, double x)
{
    char digits[40];
    int many = 0;
    do
        snprintf(digits, sizeof digits, "%.*e", many++, x);
    while (strtod(digits, NULL) != x);
    int exponent = atoi(strchr(digits, 'e') + 1), decimals = many - 1 - exponent;
    put(b, "%.*f", decimals > 0 ? decimals : 0, x);
}

static void put_list(Buffer *b, const char *key, char **texts, const int32_t *chosen, int64_t count)
{
    int any = 0;
    put(b, "\"%s\":[", key);
    for (int64_t i = 0; i < count; i++)
        if (!chosen || chosen[i]) {
            put(b, any++ ? "," : "");
            put_string(b, texts[i]);
        }
    put(b, "],");
}

static void put_flag(Buffer *b, const char *key, int64_t on) { put(b, "\"%s\":%s,", key, on ? "true" : "false"); }

static void put_whole(Buffer *b, const char *key, int64_t x) { put(b, "\"%s\":%ld,", key, (long)x); }

/* The canonical JSON: keys ascending. */
static Buffer about(const Model *model, const Names *names)
{
    const Config *c = &model->c;
    Buffer b = {0};
    put(&b, "{\"config\":{");
    put_whole(&b, "char_channels", c->channels);
    put_whole(&b, "char_dim", c->char_dim);
    put_whole(&b, "char_vocab", c->vocab);
    put_flag(&b, "columns", names->columns);
    put_flag(&b, "cut", names->cut);
    put_list(&b, "doc_types", names->types, NULL, c->types);
    put_whole(&b, "feature_version", 1);
    put_list(&b, "fields", names->fields, NULL, c->fields);
    put(&b, "\"hidden_act\":\"gelu_tanh\",");
    put_whole(&b, "hidden_size", c->d);
    put_whole(&b, "intermediate_size", c->m);
    put_flag(&b, "keep_file_order", names->keep_file_order);
    put(&b, "\"layer_norm_eps\":");
    put_number(&b, model->eps);
    put(&b, ",");
    put_whole(&b, "max_chars", c->max_chars);
    put_whole(&b, "max_words", names->max_words);
    put_whole(&b, "num_attention_heads", c->heads);
    put_whole(&b, "num_hidden_layers", c->layers);
    put_whole(&b, "pair_features", c->P);
    put_whole(&b, "pair_hidden", c->units);
    put_whole(&b, "position_buckets", c->buckets);
    put_whole(&b, "relation_size", c->r);
    put_list(&b, "repeated", names->fields, model->repeated, c->fields);
    put_list(&b, "roles", names->roles, NULL, c->roles);
    put(&b, "\"word_features\":%ld},\"format\":1,\"kind\":\"docextract\",", (long)c->F);
    put_whole(&b, "numerics_version", names->numerics_version);
    put(&b, "\"tensors\":[");
    for (int i = 0; i < model->count; i++)
        put(&b, "%s\"%s\"", i ? "," : "", model->tensor[i].name);
    put(&b, "]}");
    return b;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const Tensor *const *)a)->name, (*(const Tensor *const *)b)->name);
}

void show_file(const Model *model, const Names *names, const char *name)
{
    const Tensor *order[256];
    Sha256 s = SHA256_START;
    Buffer text = about(model, names), header = {0};
    unsigned char bytes[8];
    long at = 0;
    put(&header, "{\"__metadata__\":{\"dx\":");
    put_string(&header, text.text);
    put(&header, "}");
    for (int i = 0; i < model->count; i++)
        order[i] = &model->tensor[i];
    qsort(order, (size_t)model->count, sizeof *order, by_name);
    for (int i = 0; i < model->count; i++) {
        const Tensor *t = order[i];
        put(&header, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[", t->name);
        for (int k = 0; k < t->axes; k++)
            put(&header, "%s%ld", k ? "," : "", t->shape[k]);
        put(&header, "],\"data_offsets\":[%ld,%ld]}", at, at + 4 * t->count);
        at += 4 * t->count;
    }
    put(&header, "}");
    while (header.size % 8)
        put(&header, " ");
    for (int b = 0; b < 8; b++)
        bytes[b] = (unsigned char)((uint64_t)header.size >> 8 * b);
    sha256_add(&s, bytes, 8);
    sha256_add(&s, header.text, header.size);
    for (int i = 0; i < model->count; i++)
        for (long k = 0; k < order[i]->count; k++) {
            uint32_t x;
            memcpy(&x, order[i]->w + place(order[i], k), 4);
            for (int b = 0; b < 4; b++)
                bytes[b] = (unsigned char)(x >> 8 * b);
            sha256_add(&s, bytes, 4);
        }
    sha256_print(&s, name);
    free(text.text);
    free(header.text);
}

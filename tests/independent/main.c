/* docextract, independently: reads a configuration, a seed and pages, makes the initial weights, trains some steps and
   prints a digest of everything on the way. Usage: docextract INPUT. The input is what test_independent.py writes. */
#include "model.h"
#include "arithmetic.h"
#include "io.h"
#include <stdarg.h>
#include <stdlib.h>

/* A pool: everything a page's pass allocates, given back after it. */
static void *given[1 << 16];
static int used;

float *floats(long count)
{
    float *p = calloc((size_t)count + 1, sizeof *p);
    if (!p || used == (int)(sizeof given / sizeof *given)) {
        fprintf(stderr, "docextract: out of memory\n");
        exit(1);
    }
    return given[used++] = p;
}

void give_back(int from)
{
    while (used > from)
        free(given[--used]);
}

Tensor *tensor(Model *model, const char *format, ...)
{
    char name[32];
    va_list rest;
    va_start(rest, format);
    vsnprintf(name, sizeof name, format, rest);
    va_end(rest);
    for (int i = 0; i < model->count; i++)
        if (!strcmp(model->tensor[i].name, name))
            return &model->tensor[i];
    fprintf(stderr, "docextract: no tensor %s\n", name);
    exit(1);
}

static void add_tensor(Model *model, const char *name, int decay, int head, double init, int axes, const long *shape)
{
    Tensor *t = &model->tensor[model->count++];
    snprintf(t->name, sizeof t->name, "%s", name);
    t->decay = decay, t->head = head, t->init = init, t->axes = axes, t->count = 1;
    for (int i = 0; i < axes; i++)
        t->count *= t->shape[i] = shape[i];
    t->w = floats(t->count), t->g = floats(t->count), t->sum = floats(t->count);
    t->m1 = floats(t->count), t->m2 = floats(t->count);
}

static void matrix(Model *model, const char *name, int decay, int head, double init, long rows, long columns)
{
    add_tensor(model, name, decay, head, init, 2, (long[]){rows, columns});
}

static void vector(Model *model, const char *name, double init, int head, long size)
{
    add_tensor(model, name, 0, head, init, 1, &size);
}

static void layer(Model *model, const char *name, int head, int starts_at_zero, long out, long in)
{
    char full[32];
    snprintf(full, sizeof full, "%s.weight", name);
    matrix(model, full, 1, head, starts_at_zero ? INIT_ZERO : 1.0 / sqrt((double)in), out, in);
    snprintf(full, sizeof full, "%s.bias", name);
    vector(model, full, INIT_ZERO, head, out);
}

static void norm(Model *model, const char *name, long d)
{
    char full[32];
    snprintf(full, sizeof full, "%s.weight", name);
    vector(model, full, INIT_ONE, 0, d);
    snprintf(full, sizeof full, "%s.bias", name);
    vector(model, full, INIT_ZERO, 0, d);
}

/* The table of docs/docextract-v0.md, section 2. */
static void tensors(Model *model)
{
    const Config *c = &model->c;
    char name[32];
    matrix(model, "char_emb.weight", 1, 0, 0.02, c->vocab, c->char_dim);
    add_tensor(model, "char_conv.weight", 1, 0, 1.0 / sqrt((double)(3 * c->char_dim)), 3,
               (long[]){c->channels, c->char_dim, 3});
    vector(model, "char_conv.bias", INIT_ZERO, 0, c->channels);
    layer(model, "char_proj", 0, 0, c->d, c->channels);
    matrix(model, "pos_x0.weight", 1, 0, 0.02, c->buckets, c->d);
    matrix(model, "pos_y0.weight", 1, 0, 0.02, c->buckets, c->d);
    matrix(model, "pos_x1.weight", 1, 0, 0.02, c->buckets, c->d);
    matrix(model, "pos_y1.weight", 1, 0, 0.02, c->buckets, c->d);
    layer(model, "feat_proj", 0, 0, c->d, c->F);
    norm(model, "emb_ln", c->d);
    for (int i = 0; i < c->layers; i++) {
        static const char *const names[] = {"ln1", "qkv", "proj", "ln2", "fc1", "fc2"};
        const long out[] = {0, 3 * c->d, c->d, 0, c->m, c->d}, in[] = {0, c->d, c->d, 0, c->d, c->m};
        for (int k = 0; k < 6; k++) {
            snprintf(name, sizeof name, "blocks.%d.%s", i, names[k]);
            if (out[k])
                layer(model, name, 0, k == 2 || k == 5, out[k], in[k]);
            else
                norm(model, name, c->d);
        }
    }
    layer(model, "pair1", 0, 0, c->units, c->P);
    layer(model, "pair2", 0, 0, c->heads, c->units);
    norm(model, "final_ln", c->d);
    layer(model, "tag_head", 1, 0, 1 + 2 * c->fields, c->d);
    layer(model, "role_head", 1, 0, 1 + 2 * c->roles, c->d);
    layer(model, "doc_head", 1, 0, c->types, c->d);
    layer(model, "rel_q", 1, 0, 2 * c->r, c->d);
    layer(model, "rel_k", 1, 0, 2 * c->r, c->d);
}

/* Where element k of the file's layout stands in memory: (out, channel, tap) as (out, tap, channel). */
long place(const Tensor *t, long k)
{
    if (t->axes < 3)
        return k;
    long tap = k % 3, channel = k / 3 % t->shape[1], out = k / 3 / t->shape[1];
    return (out * 3 + tap) * t->shape[1] + channel;
}

static void initial(Model *model, uint64_t seed)
{
    for (int i = 0; i < model->count; i++) {
        Tensor *t = &model->tensor[i];
        uint64_t own = stream(seed, t->name);
        for (long k = 0; k < t->count; k++)
            t->w[place(t, k)] = t->init == INIT_ZERO ? 0.0f : t->init == INIT_ONE ? 1.0f : normal32(own, (uint64_t)k, t->init);
    }
    memset(model->tensor[0].w, 0, (size_t)model->c.char_dim * sizeof(float));  /* the padding character */
}

enum { WEIGHT, GRADIENT, SUM, MOMENT1, MOMENT2 };

static char **read_texts(int64_t count)
{
    char **texts = calloc((size_t)count + 1, sizeof *texts);
    for (int64_t i = 0; i < count; i++) {
        int64_t size = whole();
        texts[i] = read_items(size, 1);
    }
    return texts;
}

static Names *read_names(const Config *c)
{
    Names *names = calloc(1, sizeof *names);
    names->max_words = whole();
    names->cut = whole();
    names->keep_file_order = whole();
    names->columns = whole();
    names->numerics_version = whole();
    names->window = whole();
    names->fields = read_texts(c->fields);
    names->roles = read_texts(c->roles);
    names->types = read_texts(c->types);
    return names;
}

static void show_tensors(Model *model, const char *group, int which)
{
    for (int i = 0; i < model->count; i++) {
        const Tensor *t = &model->tensor[i];
        const float *x = which == WEIGHT ? t->w : which == GRADIENT ? t->g : which == SUM ? t->sum
                       : which == MOMENT1 ? t->m1 : t->m2;
        float *file = floats(t->count);
        for (long k = 0; k < t->count; k++)
            file[k] = x[place(t, k)];
        show(group, t->name, file, t->axes, t->shape);
    }
}

/* A page's words become its arrays here; the targets that follow are those of the rows. */
static Page read_page(const Config *c, long number)
{
    Source s = {.n = whole(), .rotation = whole()};
    char group[64];
    s.keep_file_order = whole();
    s.columns = whole();
    s.cut = whole();
    s.width = real();
    s.height = real();
    s.box = read_items(4 * s.n, 8);
    s.line = read_items(s.n, 4);
    s.offset = read_items(s.n + 1, 4);
    s.code = read_items(s.offset[s.n], 4);
    Page p = encode(c, &s);
    snprintf(group, sizeof group, "page%ld", number);
    show_as(group, "box", "float64", p.box, p.n, 4);
    show_as(group, "row", "int32", p.row, p.n, 0);
    show_as(group, "line", "int32", p.line, p.n, 0);
    show_as(group, "key", "int32", p.key, p.n, 0);
    show_as(group, "characters", "int32", p.chars, p.distinct, c->max_chars);
    show_as(group, "inverse", "int32", p.inverse, p.n, 0);
    for (long k = 0; k < 56; k++) {
        char name[32];
        float *one = floats(p.n);
        for (long i = 0; i < p.n; i++)
            one[i] = p.features[56 * i + k];
        snprintf(name, sizeof name, "feature%ld", k);
        show_as(group, name, "float32", one, p.n, 0);
    }
    if (p.n != whole()) {
        fprintf(stderr, "docextract: page %ld has %ld rows, not those of the targets\n", number, (long)p.n);
        exit(1);
    }
    p.run_terms = whole();
    p.run_places = whole();
    p.tag = read_items(p.n, 4), p.role = read_items(p.n, 4), p.doc = read_items(1, 4);
    p.item = read_items(p.n, 4), p.key_value = read_items(p.n, 4);
    p.run_fields = read_items(p.run_terms, 4);
    p.run_places_of = read_items(3 * p.run_places, 4);
    return p;
}

static void show_pass(const Model *model, const Pass *pass, const char *group, const double *weight, const double *loss)
{
    static const char *const names[TERMS] = {"loss/tag", "loss/run", "loss/role", "loss/doc", "loss/item",
                                             "loss/key_value"};
    const Config *c = &model->c;
    long n = pass->page->n;
    double total = 0.0;
    for (int k = 0; k < 4; k++) {
        char name[32];
        snprintf(name, sizeof name, "position%d", k);
        show_as(group, name, "int32", pass->position[k], n, 0);
    }
    show(group, "pairs", pass->pairs, 3, (long[]){c->P, n, n});
    show(group, "out/tag", pass->tag, 2, (long[]){n, 1 + 2 * c->fields});
    show(group, "out/role", pass->role, 2, (long[]){n, 1 + 2 * c->roles});
    show(group, "out/doc", pass->doc, 1, (long[]){c->types});
    show(group, "out/item", pass->pointer, 2, (long[]){n, n});
    show(group, "out/key_value", pass->pointer + n * n, 2, (long[]){n, n});
    if (pass->on[TAG] || pass->on[RUN])
        show(group, "dout/tag", pass->dtag, 2, (long[]){n, 1 + 2 * c->fields});
    if (pass->on[ROLE])
        show(group, "dout/role", pass->drole, 2, (long[]){n, 1 + 2 * c->roles});
    if (pass->on[DOC])
        show(group, "dout/doc", pass->ddoc, 1, (long[]){c->types});
    if (pass->on[ITEM])
        show(group, "dout/item", pass->dpointer, 2, (long[]){n, n});
    if (pass->on[KEY_VALUE])
        show(group, "dout/key_value", pass->dpointer + n * n, 2, (long[]){n, n});
    for (int k = 0; k < TERMS; k++) {
        if (!pass->on[k])
            continue;
        show_number(group, names[k], loss[k]);
        total = total + weight[k] * loss[k];
    }
    show_number(group, "loss/total", total);
}

int main(int count, char **arguments)
{
    static Model model;
    static Pass empty;
    if (count != 2 || !(input = fopen(arguments[1], "rb"))) {
        fprintf(stderr, "usage: docextract INPUT\n");
        return 2;
    }
    Config *c = read_items(1, sizeof *c);
    model.c = *c;
    free(c);
    c = &model.c;
    uint64_t seed = (uint64_t)whole();
    model.eps = real();
    Settings *run = read_items(1, sizeof *run);
    long pages = (long)whole();
    int given_weights = (int)whole();
    model.repeated = read_items(c->fields, 4);
    Names *names = read_names(c);
    tensors(&model);
    initial(&model, seed);
    show_tensors(&model, "initial", WEIGHT);
    show_file(&model, names, "initial/file");
    for (int i = 0; given_weights && i < model.count; i++) {
        float *file = read_items(model.tensor[i].count, 4);
        for (long k = 0; k < model.tensor[i].count; k++)
            model.tensor[i].w[place(&model.tensor[i], k)] = file[k];
        free(file);
    }
    known_count = (long)whole();
    known = read_items(3 * known_count, 4);
    Page *page = calloc((size_t)pages, sizeof *page);
    for (long p = 0; p < pages; p++)
        page[p] = read_page(c, p);
    for (long p = 0; run->steps && p < pages; p++) {
        char group[64];
        int before = used;
        snprintf(group, sizeof group, "merged%ld", p);
        show_merged(&model, &page[p], (long)names->window, group);
        give_back(before);
    }
    for (long step = 1; step <= run->steps; step++) {
        char group[64], group_of_step[64];
        for (long p = 0; p < run->batch; p++) {
            Pass pass = empty;
            double loss[TERMS];
            long example = example_at(run, pages, (step - 1) * run->batch + p);
            int before = used;
            forward(&model, &page[example], &pass);
            losses(&model, &pass, run->weight, run->field_weight, 1.0 / (double)run->batch, loss);
            backward(&model, &pass);
            snprintf(group, sizeof group, "step%ld/page%ld", step, p);
            show_pass(&model, &pass, group, run->weight, loss);
            show_decoding(group, pass.tag, page[example].n, c->fields, model.repeated, 0.001);
            snprintf(group, sizeof group, "step%ld/page%ld/grad", step, p);
            show_tensors(&model, group, GRADIENT);
            for (int i = 0; i < model.count; i++) {
                Tensor *t = &model.tensor[i];
                for (long j = 0; j < t->count; j++)
                    t->sum[j] = p ? t->sum[j] + t->g[j] : t->g[j];
            }
            for (int k = 0; k < 4; k++)
                free(pass.position[k]);
            free(pass.argmax);
            give_back(before);
        }
        snprintf(group_of_step, sizeof group_of_step, "step%ld", step);
        show_number(group_of_step, "norm", clip(&model, run->max_norm));
        snprintf(group, sizeof group, "step%ld/clipped", step);
        show_tensors(&model, group, SUM);
        double rate = learning_rate(run, step - 1);
        show_number(group_of_step, "rate", rate);
        adamw(&model, run, step, rate);
        snprintf(group, sizeof group, "step%ld/weight", step);
        show_tensors(&model, group, WEIGHT);
        snprintf(group, sizeof group, "step%ld/file", step);
        show_file(&model, names, group);
        snprintf(group, sizeof group, "step%ld/m", step);
        show_tensors(&model, group, MOMENT1);
        snprintf(group, sizeof group, "step%ld/v", step);
        show_tensors(&model, group, MOMENT2);
    }
    return 0;
}

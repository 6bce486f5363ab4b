/* docs/docextract-v0.md section 4 and docs/backward-numerics.md section 9. */
#include "model.h"
#include "arithmetic.h"
#include <stdlib.h>

/* w[t] is 1 for target 0 and `weight` for the others. */
static double cross_entropy(const float *logits, long rows, long columns, const int32_t *target, double weight,
                            double scale, float *dlogits)
{
    double numerator = 0.0, denominator = 0.0, *e = calloc((size_t)columns, sizeof *e);
    for (long r = 0; r < rows; r++)
        if (target[r] >= 0)
            denominator = denominator + (target[r] ? weight : 1.0);
    for (long r = 0; r < rows; r++) {
        const float *z = logits + r * columns;
        float *dz = dlogits + r * columns;
        int32_t t = target[r];
        memset(dz, 0, (size_t)columns * sizeof *dz);
        if (t < 0 || denominator == 0.0)
            continue;
        double most = z[0], sum = 0.0, w = t ? weight : 1.0;
        for (long j = 0; j < columns; j++)
            most = z[j] > most ? z[j] : most;
        for (long j = 0; j < columns; j++) {
            e[j] = exp64((double)z[j] - most);
            sum = sum + e[j];
        }
        numerator = numerator + w * (log64(sum) - ((double)z[t] - most));
        for (long j = 0; j < columns; j++) {
            double share = e[j] / sum;
            if (j == t)
                share = share - 1.0;
            dz[j] = (float)(((scale * w) / denominator) * share);
        }
    }
    free(e);
    return denominator == 0.0 ? 0.0 : numerator / denominator;
}

void losses(Model *model, Pass *pass, const double *weight, double field_weight, double factor, double *loss)
{
    const Config *c = &model->c;
    const Page *page = pass->page;
    long n = page->n, tags = 1 + 2 * c->fields, roles = 1 + 2 * c->roles;
    float *drun = floats(n * tags);
    pass->dtag = floats(n * tags), pass->drole = floats(n * roles), pass->ddoc = floats(c->types);
    pass->dpointer = floats(2 * n * n);
    for (int k = 0; k < TERMS; k++) {
        pass->on[k] = weight[k] > 0.0;
        loss[k] = 0.0;
    }
    if (pass->on[TAG])
        loss[TAG] = cross_entropy(pass->tag, n, tags, page->tag, field_weight, weight[TAG] * factor, pass->dtag);
    if (pass->on[RUN])
        loss[RUN] = run_loss(pass->tag, n, c->fields, model->repeated, page->run_fields, page->run_terms,
                             page->run_places_of, page->run_places, weight[RUN] * factor, drun);
    for (long i = 0; pass->on[RUN] && i < n * tags; i++)
        pass->dtag[i] = pass->on[TAG] ? pass->dtag[i] + drun[i] : drun[i];
    if (pass->on[ROLE])
        loss[ROLE] = cross_entropy(pass->role, n, roles, page->role, 1.0, weight[ROLE] * factor, pass->drole);
    if (pass->on[DOC])
        loss[DOC] = cross_entropy(pass->doc, 1, c->types, page->doc, 1.0, weight[DOC] * factor, pass->ddoc);
    if (pass->on[ITEM])
        loss[ITEM] = cross_entropy(pass->pointer, n, n, page->item, 1.0, weight[ITEM] * factor, pass->dpointer);
    if (pass->on[KEY_VALUE])
        loss[KEY_VALUE] = cross_entropy(pass->pointer + n * n, n, n, page->key_value, 1.0, weight[KEY_VALUE] * factor,
                                        pass->dpointer + n * n);
}

/* Decoding, posteriors and the run loss of given tag logits, one problem after the other. Usage: decode INPUT. */
#include "io.h"
#include "model.h"
#include <stdlib.h>

float *floats(long count)
{
    float *p = calloc((size_t)count + 1, sizeof *p);
    if (!p)
        exit(1);
    return p;
}

int main(int count, char **arguments)
{
    if (count != 2 || !(input = fopen(arguments[1], "rb"))) {
        fprintf(stderr, "usage: decode INPUT\n");
        return 2;
    }
    long problems = (long)whole();
    for (long k = 0; k < problems; k++) {
        char group[32];
        long n = (long)whole(), fields = (long)whole(), terms = (long)whole(), places = (long)whole();
        double floor = real(), loss;
        int32_t *repeated = read_items(fields, 4), *term_field = read_items(terms, 4), *place = read_items(3 * places, 4);
        float *logits = read_items(n * (1 + 2 * fields), 4), *gradient = floats(n * (1 + 2 * fields));
        snprintf(group, sizeof group, "problem%ld", k);
        show_decoding(group, logits, n, fields, repeated, floor);
        loss = run_loss(logits, n, fields, repeated, term_field, terms, place, places, 1.0, gradient);
        show_number(group, "loss", loss);
        show_as(group, "gradient", "float32", gradient, n, 1 + 2 * fields);
        free(repeated), free(term_field), free(place), free(logits), free(gradient);
    }
    return 0;
}

/*
 * The time that jansson alone needs to parse a file: microseconds per parse, averaged over a
 * second. bench_daemon.py, which also measures an average, compares with it.
 */
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include <alertscaler/base/str.h>

#include "clock.h"

int main(int argc, char **argv)
{
    char *text;
    size_t size;
    if (argc != 2 || as_file_read(argv[1], (size_t)1 << 30, &text, &size) != 0) {
        fprintf(stderr, "usage: bench_jansson FILE\n");
        return 2;
    }
    const double start = clock_get_seconds();
    double taken = 0;
    int parses = 0;
    while (taken < 1) {
        for (int i = 0; i < 50; i++, parses++) {
            json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
            if (!root)
                return 1;
            json_decref(root);
        }
        taken = clock_get_seconds() - start;
    }
    printf("%.3f us a parse of %zu bytes\n", taken / parses * 1e6, size);
    free(text);
    return 0;
}

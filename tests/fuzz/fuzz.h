/*
 * What fuzz targets define (libFuzzer's names), and the check that ends the run when a promise
 * is broken: unlike assert, in every kind of build.
 */
#ifndef ALERTSCALER_TESTS_FUZZ_FUZZ_H
#define ALERTSCALER_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Of targets whose inputs are documents: one change of the input, in place. The new size, at most
 * `max_size`. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif

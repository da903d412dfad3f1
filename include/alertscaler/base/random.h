/*
 * Seeded pseudo-random numbers (xoshiro256**, seeded by splitmix64; Blackman and Vigna): the same
 * seed gives the same sequence everywhere. For jitter, identifiers and simulation; never for
 * secrets.
 */
#ifndef ALERTSCALER_BASE_RANDOM_H
#define ALERTSCALER_BASE_RANDOM_H

#include <stdint.h>

#include <alertscaler/base/time.h>

struct as_random {
    uint64_t state[4];
};

void as_random_init(struct as_random *random, uint64_t seed);
uint64_t as_random_get(struct as_random *random);
uint64_t as_random_get_below(struct as_random *random,
                             uint64_t limit); /* 0 .. limit - 1; limit > 0 */

/* A ULID (26 characters of Crockford base 32): 48 bits of milliseconds, 80 random bits. */
#define AS_ULID_SIZE 27
void as_ulid_print(as_wall_time now, struct as_random *random, char text_out[AS_ULID_SIZE]);

#endif

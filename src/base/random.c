/*
 * xoshiro256** 1.0 seeded by splitmix64 (D. Blackman, S. Vigna, https://prng.di.unimi.it), and
 * ULIDs (https://github.com/ulid/spec). Reads no entropy: the caller gives the seed.
 */
#include <alertscaler/base/random.h>

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t number, unsigned bits)
{
    return number << bits | number >> (64 - bits);
}

void as_random_init(struct as_random *random, uint64_t seed)
{
    for (unsigned i = 0; i < 4; i++)
        random->state[i] = splitmix64(&seed);
}

uint64_t as_random_get(struct as_random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* Draws again if the number is in the incomplete last interval, which would favour small
 * results. */
uint64_t as_random_get_below(struct as_random *random, uint64_t limit)
{
    uint64_t surplus = -limit % limit; /* 2^64 modulo limit */
    uint64_t number;
    do
        number = as_random_get(random);
    while (number < surplus);
    return number % limit;
}

void as_ulid_print(as_wall_time now, struct as_random *random, char text_out[AS_ULID_SIZE])
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    uint64_t ms = now.us > 0 ? (uint64_t)(now.us / AS_US_PER_MS) : 0;
    uint64_t high = ms << 16 | as_random_get(random) >> 48;
    uint64_t low = as_random_get(random);
    text_out[AS_ULID_SIZE - 1] = '\0';
    for (unsigned i = AS_ULID_SIZE - 1; i-- > 0;) {
        text_out[i] = digits[low & 31];
        low = low >> 5 | high << 59;
        high >>= 5;
    }
}

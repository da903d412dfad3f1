/*
 * Finds the characters of a JSON text that need no escape, eight bytes at a time, for reader and
 * writer.
 */
#ifndef ALERTSCALER_SRC_DOC_JSON_PLAIN_H
#define ALERTSCALER_SRC_DOC_JSON_PLAIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Sets the high bit of the first control character, '"', '\\' or non-ASCII byte among eight; higher
 * bytes may be marked wrongly. 0: all are plain. */
static inline uint64_t json_mark_special(uint64_t bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones * 0x80;

    /* below 0x80 a difference has its high bit set only after a borrow */
    return (bytes | (bytes - ones * 0x20) | ((bytes ^ ones * '"') - ones) |
            ((bytes ^ ones * '\\') - ones)) &
           highs;
}

/* Number of plain bytes before the first special one among the eight at `text`. */
static inline size_t json_count_plain(const char *text)
{
    uint64_t bytes;

    memcpy(&bytes, text, sizeof(bytes));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap64(bytes); /* makes the first byte the lowest */
#endif
    const uint64_t special = json_mark_special(bytes);
    return special ? (size_t)__builtin_ctzll(special) / 8 : sizeof(bytes);
}

#endif

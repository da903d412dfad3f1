/*
 * Where a JSON text stands for itself: asked of eight bytes at a time, by whoever reads or writes.
 */
#ifndef ALERTSCALER_SRC_WIRE_JSON_JSON_PLAIN_H
#define ALERTSCALER_SRC_WIRE_JSON_JSON_PLAIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Marks in its high bit the first control character, '"', '\\' or byte that is not ASCII among
 * eight; bytes above may be marked wrongly. 0: all of them are plain. */
static inline uint64_t json_mark_special(uint64_t bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones * 0x80;

    /* below 0x80 a difference has its high bit only where it borrowed */
    return (bytes | (bytes - ones * 0x20) | ((bytes ^ ones * '"') - ones) |
            ((bytes ^ ones * '\\') - ones)) &
           highs;
}

/* How many of the eight bytes at `text` are plain, up to the first that is not. */
static inline size_t json_count_plain(const char *text)
{
    uint64_t bytes;

    memcpy(&bytes, text, sizeof(bytes));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap64(bytes); /* the first byte is the lowest */
#endif
    const uint64_t special = json_mark_special(bytes);
    return special ? (size_t)__builtin_ctzll(special) / 8 : sizeof(bytes);
}

#endif

/*
 * Addresses as 16 bytes, with or without the text of a port and of a zone.
 */
#include <alertscaler/base/address.h>

#include <arpa/inet.h>
#include <string.h>

#include <alertscaler/base/number.h>

#define ADDRESS_TEXT_SIZE (INET6_ADDRSTRLEN + 1)
#define V4_BITS           96 /* in front of an IPv4 address */

static const unsigned char v4_prefix[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static bool address_parse(const char *text, size_t size, unsigned char bytes_out[16],
                          bool *is_v4_out)
{
    char copy[ADDRESS_TEXT_SIZE];
    if (size >= sizeof(copy))
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    *is_v4_out = inet_pton(AF_INET, copy, bytes_out + sizeof(v4_prefix)) == 1;
    if (*is_v4_out)
        memcpy(bytes_out, v4_prefix, sizeof(v4_prefix));
    return *is_v4_out || inet_pton(AF_INET6, copy, bytes_out) == 1;
}

/* The address of a peer, without brackets, zone and port. */
static bool address_parse_remote(const char *remote, unsigned char bytes_out[16])
{
    const bool is_bracketed = *remote == '[';
    const char *at = remote + is_bracketed;
    const size_t size = strcspn(at, is_bracketed ? "%]" : ":");
    bool is_v4;
    return address_parse(at, size, bytes_out, &is_v4);
}

/* Whether the first bits are those of the range. */
static bool has_prefix_of(const struct as_address_range *range, const unsigned char bytes[16])
{
    const unsigned whole = range->bits / 8, rest = range->bits % 8;
    if (memcmp(bytes, range->bytes, whole) != 0)
        return false;
    return rest == 0 || (bytes[whole] ^ range->bytes[whole]) >> (8 - rest) == 0;
}

bool as_address_range_parse(const char *text, struct as_address_range *range_out)
{
    struct as_address_range range = {.bits = 128};
    const char *slash = strchr(text, '/');
    const size_t size = slash ? (size_t)(slash - text) : strlen(text);
    int64_t bits = 0;
    bool is_v4;
    if (!address_parse(text, size, range.bytes, &is_v4))
        return false;
    if (slash) {
        if (as_number_parse_i64(slash + 1, strlen(slash + 1), &bits) != 0 || bits < 0 ||
            bits > (is_v4 ? 32 : 128))
            return false;
        range.bits = (unsigned)bits + (is_v4 ? V4_BITS : 0);
    }
    for (unsigned bit = range.bits; bit < 128; bit++) {
        if (range.bytes[bit / 8] & 0x80U >> bit % 8)
            return false;
    }
    *range_out = range;
    return true;
}

bool as_address_range_has(const struct as_address_range *range, const char *remote)
{
    unsigned char bytes[16];
    return address_parse_remote(remote, bytes) && has_prefix_of(range, bytes);
}

bool as_address_is_loopback(const char *remote)
{
    static const struct as_address_range ranges[] = {
        {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127}, V4_BITS + 8},
        {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128}};
    return as_address_range_has(&ranges[0], remote) || as_address_range_has(&ranges[1], remote);
}

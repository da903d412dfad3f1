/*
 * URLs: see the header.
 */
#include <alertscaler/base/url.h>

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <arpa/inet.h>

#include <alertscaler/base/encode.h>
#include <alertscaler/base/number.h>

#define HOST_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
#define IPV6_LETTERS "abcdefABCDEF0123456789:."
#define DIGITS       "0123456789"

/* Characters that stand in a normal form as they are, beside the unreserved ones. */
#define SUB_DELIMITERS   "!$&'()*+,;="
#define KEPT_IN_BRACKETS SUB_DELIMITERS ":[]"
#define KEPT_BEHIND_HOST SUB_DELIMITERS ":@/?"

/* Returns the text behind "http://" or "https://"; NULL for other schemes. */
static const char *skip_scheme(const char *url, bool *is_https_out)
{
    static const char http[] = "http://", https[] = "https://";
    *is_https_out = strncasecmp(url, https, strlen(https)) == 0;
    if (*is_https_out)
        return url + strlen(https);
    return strncasecmp(url, http, strlen(http)) == 0 ? url + strlen(http) : NULL;
}

/* Whether this is the end of an authority, or a port followed by the end. */
static bool is_end(const char *text)
{
    if (*text == ':') {
        const size_t size = strspn(text + 1, DIGITS);
        if (size == 0 || size > 5)
            return false;
        text += 1 + size;
    }
    return !*text || strchr("/?#", *text);
}

static bool take_host(const char *url, bool *is_https_out, char host_out[AS_URL_HOST_SIZE])
{
    const char *host = skip_scheme(url, is_https_out);
    if (!host)
        return false;
    const bool is_bracketed = *host == '[';
    host += is_bracketed;
    const size_t size = strspn(host, is_bracketed ? IPV6_LETTERS : HOST_LETTERS);
    const char *end = host + size;
    if (size == 0 || size >= AS_URL_HOST_SIZE || (is_bracketed && *end++ != ']') || !is_end(end))
        return false;
    for (size_t i = 0; i < size; i++)
        host_out[i] = (char)tolower((unsigned char)host[i]);
    host_out[size] = '\0';
    return true;
}

bool as_url_take_host(const char *url, char host_out[AS_URL_HOST_SIZE])
{
    bool is_https;
    char host[AS_URL_HOST_SIZE];
    if (!take_host(url, &is_https, host))
        return false;
    memcpy(host_out, host, strlen(host) + 1);
    return true;
}

static bool is_private(const char *url, bool may_be_link_local)
{
    bool is_https;
    char host[AS_URL_HOST_SIZE];
    struct in_addr four;
    struct in6_addr six;
    if (!take_host(url, &is_https, host))
        return false;
    if (is_https || strcmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &four) == 1) {
        const uint32_t address = ntohl(four.s_addr);
        return address >> 24 == 127 || (may_be_link_local && address >> 16 == 0xa9fe);
    }
    return inet_pton(AF_INET6, host, &six) == 1 &&
           (IN6_IS_ADDR_LOOPBACK(&six) || (may_be_link_local && IN6_IS_ADDR_LINKLOCAL(&six)));
}

bool as_url_is_private(const char *url)
{
    return is_private(url, false);
}

bool as_url_is_near(const char *url)
{
    return is_private(url, true);
}

/* --- the normal form --- */

/* Decodes the escapes of characters that need none, and escapes all others but those in `keep`. */
static void append_characters(struct as_buf *out, const char *text, size_t size, const char *keep)
{
    for (const char *end = text + size; text < end; text++) {
        uint64_t byte;
        if (end - text > 2 && *text == '%' && as_number_parse_u64_hex(text + 1, 2, &byte) == 0) {
            as_encode_percent(out, (const char[]){(char)byte}, 1, "");
            text += 2;
        } else {
            as_encode_percent(out, text, 1, keep);
        }
    }
}

static void cut(struct as_buf *out, size_t size)
{
    if (as_buf_check(out) == 0 && out->size > size)
        out->data[out->size = size] = '\0';
}

/* Removes dot segments (RFC 3986, 5.2.4), then slashes in a row and at the end. */
static void append_path(struct as_buf *out, const char *path)
{
    const size_t start = out->size;
    while (*path == '/') {
        const size_t size = strcspn(path + 1, "/") + 1;
        if (size == 3 && memcmp(path, "/..", 3) == 0) {
            const char *slash = out->size > start ? strrchr(out->data + start, '/') : NULL;
            cut(out, slash ? (size_t)(slash - out->data) : start);
        } else if (size != 2 || path[1] != '.') {
            as_buf_append(out, path, size);
        }
        path += size;
    }
    size_t end = start;
    for (size_t i = start; i < out->size; i++) {
        if (out->data[i] != '/' || i == start || out->data[i - 1] != '/')
            out->data[end++] = out->data[i];
    }
    cut(out, end);
    while (out->size > start && out->data[out->size - 1] == '/')
        cut(out, out->size - 1);
}

/* Dots at the end, which mark a complete name, are dropped. IPv4 addresses have many forms
 * ("127.1"), which libcurl accepts. */
static void append_host(struct as_buf *out, const char *host, size_t size)
{
    char address[INET6_ADDRSTRLEN];
    struct in_addr four;
    struct in6_addr six;
    AS_CLEANUP(as_buf_deinit) struct as_buf name = AS_BUF_INIT(out->max);
    const bool is_bracketed = size > 2 && host[0] == '[' && host[size - 1] == ']';
    append_characters(&name, host, size, is_bracketed ? KEPT_IN_BRACKETS : SUB_DELIMITERS);
    if (as_buf_check(&name) < 0 || name.size == 0)
        return;
    for (size_t i = 0; i < name.size; i++)
        name.data[i] = (char)tolower((unsigned char)name.data[i]);
    if (strspn(name.data, ".") < name.size) {
        while (name.data[name.size - 1] == '.')
            cut(&name, name.size - 1);
    }
    if (is_bracketed)
        name.data[name.size - 1] = '\0';
    const bool is_six = is_bracketed && inet_pton(AF_INET6, name.data + 1, &six) == 1;
    if (is_six && IN6_IS_ADDR_V4MAPPED(&six))
        as_buf_append_str(out, inet_ntop(AF_INET, &six.s6_addr[12], address, sizeof(address)));
    else if (is_six)
        as_buf_printf(out, "[%s]", inet_ntop(AF_INET6, &six, address, sizeof(address)));
    else if (is_bracketed)
        as_buf_printf(out, "%s]", name.data);
    else if (inet_aton(name.data, &four) == 1)
        as_buf_append_str(out, inet_ntop(AF_INET, &four, address, sizeof(address)));
    else
        as_buf_append(out, name.data, name.size);
}

static void append_authority(struct as_buf *out, const char *text, size_t size, const char *usual)
{
    const char *at = memrchr(text, '@', size);
    const size_t user = at ? (size_t)(at - text) + 1 : 0;
    size_t digits = 0;
    while (digits < size - user && strchr(DIGITS, text[size - 1 - digits]))
        digits++;
    const bool has_port = digits < size - user && text[size - 1 - digits] == ':';
    const char *port = text + size - digits;
    as_buf_append(out, text, user);
    append_host(out, text + user, has_port ? size - user - digits - 1 : size - user);
    while (has_port && digits > 0 && *port == '0') {
        port++;
        digits--;
    }
    if (has_port && digits > 0 && (digits != strlen(usual) || memcmp(port, usual, digits) != 0)) {
        as_buf_append_char(out, ':');
        as_buf_append(out, port, digits);
    }
}

bool as_url_append_normal(const char *url, struct as_buf *out)
{
    bool is_https;
    const char *authority = skip_scheme(url, &is_https);
    const size_t size = authority ? strcspn(authority, "/?#") : 0;
    if (size == 0)
        return false;
    const char *path = authority + size, *query = path + strcspn(path, "?#");
    AS_CLEANUP(as_buf_deinit) struct as_buf characters = AS_BUF_INIT(out->max);
    append_characters(&characters, path, (size_t)(query - path), KEPT_BEHIND_HOST);
    as_buf_append_str(out, is_https ? "https://" : "http://");
    append_authority(out, authority, size, is_https ? "443" : "80");
    append_path(out, characters.size > 0 ? characters.data : "");
    if (*query == '?' && query[1] && query[1] != '#')
        append_characters(out, query, strcspn(query, "#"), KEPT_BEHIND_HOST);
    return true;
}

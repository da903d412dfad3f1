/*
 * URLs: see the header.
 */
#include <alertscaler/base/url.h>

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <arpa/inet.h>

#define HOST_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
#define IPV6_LETTERS "abcdefABCDEF0123456789:."
#define DIGITS       "0123456789"

/* What stands behind the scheme; NULL where it is neither. */
static const char *skip_scheme(const char *url, bool *is_https_out)
{
    static const char http[] = "http://", https[] = "https://";
    *is_https_out = strncasecmp(url, https, strlen(https)) == 0;
    if (*is_https_out)
        return url + strlen(https);
    return strncasecmp(url, http, strlen(http)) == 0 ? url + strlen(http) : NULL;
}

/* Whether this is the end of an authority, or a port and then its end. */
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

/*
 * A listening TCP socket from "HOST:PORT", "[v6]:PORT" or ":PORT". ":PORT" listens on IPv6 with
 * mapped IPv4, or on IPv4 alone if the machine has no IPv6. A host name is resolved once; its first
 * address is used.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/number.h>

#include "connection.h"

#define BACKLOG 1024

/* Splits "HOST:PORT"; removes the brackets of an IPv6 literal. 0 or -EINVAL. */
static int split(const char *address, char host[256], const char **port_out)
{
    const char *colon = strrchr(address, ':');
    if (!colon)
        return -EINVAL;
    const char *from = address, *to = colon;
    bool bracketed = from < to && *from == '[' && to[-1] == ']';
    if (bracketed) {
        from++;
        to--;
    } else if (memchr(from, ':', (size_t)(to - from))) {
        return -EINVAL; /* "::1:80" is ambiguous */
    }
    if (to - from >= 256 || (bracketed && from == to))
        return -EINVAL;
    memcpy(host, from, (size_t)(to - from));
    host[to - from] = '\0';
    int64_t port;
    if (as_number_parse_i64(colon + 1, strlen(colon + 1), &port) != 0 || port < 0 || port > 65535)
        return -EINVAL;
    *port_out = colon + 1;
    return 0;
}

static int open_socket(const struct sockaddr *address, socklen_t size, evutil_socket_t *fd_out)
{
    const int on = 1, off = 0;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    /* Accepted sockets inherit TCP_NODELAY. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
        (address->sa_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) != 0) ||
        bind(fd, address, size) != 0 || listen(fd, BACKLOG) != 0) {
        int code = errno;
        close(fd);
        return -code;
    }
    *fd_out = fd;
    return 0;
}

static int open_everywhere(const char *port_text, evutil_socket_t *fd_out)
{
    int64_t port = 0;
    int status = as_number_parse_i64(port_text, strlen(port_text), &port);
    if (status != 0)
        return status;
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    status = open_socket((const struct sockaddr *)&v6, sizeof(v6), fd_out);
    if (status == -EAFNOSUPPORT || status == -EADDRNOTAVAIL)
        status = open_socket((const struct sockaddr *)&v4, sizeof(v4), fd_out);
    return status;
}

static int open_host(const char *host, const char *port, evutil_socket_t *fd_out,
                     struct as_error *error)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found;
    int status = getaddrinfo(host, port, &hints, &found);
    if (status != 0) {
        as_error_set(error, "%s", status == EAI_SYSTEM ? strerror(errno) : gai_strerror(status));
        return status == EAI_SYSTEM ? -errno : -EADDRNOTAVAIL;
    }
    status = open_socket(found->ai_addr, found->ai_addrlen, fd_out);
    freeaddrinfo(found);
    if (status != 0)
        as_error_set(error, "%s", strerror(-status));
    return status;
}

static uint16_t find_port(evutil_socket_t fd)
{
    struct sockaddr_storage own = {0};
    socklen_t size = sizeof(own);
    if (getsockname(fd, (struct sockaddr *)&own, &size) != 0)
        return 0;
    return ntohs(own.ss_family == AF_INET6
                     ? ((const struct sockaddr_in6 *)(const void *)&own)->sin6_port
                     : ((const struct sockaddr_in *)(const void *)&own)->sin_port);
}

int as_http_listen(const char *address, evutil_socket_t *fd_out, uint16_t *port_out,
                   struct as_error *error)
{
    char host[256];
    const char *port;
    int status = split(address, host, &port);
    if (status != 0) {
        as_error_set(error, "expected \"HOST:PORT\", \"[IPv6]:PORT\" or \":PORT\"");
    } else if (host[0] == '\0') {
        status = open_everywhere(port, fd_out);
        if (status != 0)
            as_error_set(error, "%s", strerror(-status));
    } else {
        status = open_host(host, port, fd_out, error);
    }
    if (status != 0) {
        as_error_wrap(error, "listen on \"%s\"", address);
        return status;
    }
    *port_out = find_port(*fd_out);
    return 0;
}

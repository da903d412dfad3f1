/*
 * Without libsystemd: the protocol is a connect and a send.
 */
#include <alertscaler/notify/notify.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <alertscaler/base/log.h>

static int connect_to(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t size = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || size >= sizeof(address.sun_path))
        return -EINVAL;
    memcpy(address.sun_path, name, size + 1);
    if (name[0] == '@')
        address.sun_path[0] = '\0'; /* the abstract namespace */
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, length) != 0) {
        const int status = -errno;
        if (fd >= 0)
            close(fd);
        return status;
    }
    return fd;
}

int notify_open(void)
{
    const char *name = getenv("NOTIFY_SOCKET");
    if (!name)
        return -1;
    const int fd = connect_to(name);
    if (fd < 0)
        as_log(AS_LOG_WARN, "systemd cannot be told", AS_F("socket", name),
               AS_F("error", strerror(-fd)));
    unsetenv("NOTIFY_SOCKET"); /* not for child processes */
    return fd < 0 ? -1 : fd;
}

void notify_send(int fd, const char *state)
{
    if (fd >= 0 && send(fd, state, strlen(state), MSG_NOSIGNAL) < 0)
        as_log(AS_LOG_WARN, "systemd cannot be told", AS_F("state", state),
               AS_F("error", strerror(errno)));
}

/*
 * The soft limit of open files is low (often 1024) for programs that use select(); this one does
 * not.
 */
#include "descriptors.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include <alertscaler/base/log.h>

#define OTHERS 200 /* files, pipes, connections to API servers and monitoring */

void as_descriptors_raise(unsigned max_connections)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_cur < limit.rlim_max) {
        const struct rlimit raised = {limit.rlim_max, limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit.rlim_cur = limit.rlim_max;
        else
            as_log(AS_LOG_WARN, "cannot raise the limit of open files",
                   AS_F("error", strerror(errno)));
    }
    if (limit.rlim_cur < (rlim_t)max_connections + OTHERS)
        as_log(AS_LOG_WARN,
               "the limit of open files is too low for receiver.max_connections: raise it, as with "
               "LimitNOFILE= of systemd",
               AS_FI("limit", limit.rlim_cur), AS_FI("needed", max_connections + OTHERS));
}

/*
 * POD_NAME comes from the Deployment's manifest (downward API); a pod's host name is the same name,
 * but there a process id adds nothing.
 */
#include <alertscaler/daemon/instance.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <alertscaler/base/str.h>

void as_instance_print(char text_out[AS_INSTANCE_SIZE])
{
    const char *pod = getenv("POD_NAME");
    char host[256] = "localhost";
    if (!as_str_is_empty(pod)) {
        (void)snprintf(text_out, AS_INSTANCE_SIZE, "%.250s", pod);
        return;
    }
    if (gethostname(host, sizeof(host) - 1) != 0)
        (void)snprintf(host, sizeof(host), "localhost");
    (void)snprintf(text_out, AS_INSTANCE_SIZE, "%s/%ld", host, (long)getpid());
}

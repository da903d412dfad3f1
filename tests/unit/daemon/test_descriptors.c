/*
 * The limit of open files. Promises: the soft limit becomes the hard one; there is a warning if
 * that is too low for the configured connections.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/base/log.h>

#include <alertscaler/daemon/daemon_process.h>

static size_t call(rlim_t soft, rlim_t hard, unsigned connections, char log[1024])
{
    int ends[2];
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){soft, hard}), 0);
    cr_assert_eq(pipe2(ends, O_NONBLOCK), 0);
    as_log_configure(AS_LOG_INFO, AS_LOG_LOGFMT, ends[1]);
    as_descriptors_raise(connections);
    ssize_t size = read(ends[0], log, 1023);
    log[size > 0 ? size : 0] = '\0';
    struct rlimit now;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &now), 0);
    return (size_t)now.rlim_cur;
}

Test(descriptors, raises_the_soft_limit)
{
    char log[1024];
    cr_assert_eq(call(256, 1300, 1000, log), 1300);
    cr_assert_str_eq(log, "");
}

Test(descriptors, warns_where_connections_do_not_fit)
{
    char log[1024];
    cr_assert_eq(call(300, 1100, 1000, log), 1100);
    cr_assert(strstr(log, "level=warn") && strstr(log, "limit=1100 needed=1200"), "%s", log);
}

/*
 * Any bytes as an action log, which may come from others, for the commands that read one: each ends
 * with one of its exit statuses. Their output is discarded.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/cli.h"

#include "fuzz.h"

#define ARGUMENTS_MAX 8

static char path[64];

static const char *const calls[][ARGUMENTS_MAX] = {
    {"log", path},
    {"log", "--output=json", "--target=w*", "--rule=busy", path},
    {"log", "verify", path},
    {"explain", "--target=workers", "--at=2026-11-22", path},
    {"explain", "--target=workers", "--at=2026-11-22", "--output=json", path},
    {"replay", path},
};

static int run(const char *const call[ARGUMENTS_MAX])
{
    static char program[] = "alertscaler";
    char *arguments[ARGUMENTS_MAX + 1] = {program};
    int count = 1;

    for (; count <= ARGUMENTS_MAX && call[count - 1]; count++)
        arguments[count] = (char *)call[count - 1];
    return as_cli_main(count, arguments, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    FILE *const saved[] = {stdout, stderr};
    const int fd = memfd_create("log", MFD_CLOEXEC);

    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    FUZZ_CHECK(nowhere && fd >= 0 && write(fd, data, size) == (ssize_t)size);
    FUZZ_CHECK(write(fd, "\n", 1) == 1); /* a line without its end is waited for */
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    stdout = stderr = nowhere;
    int statuses[sizeof(calls) / sizeof(calls[0])];
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        statuses[i] = run(calls[i]);
    stdout = saved[0];
    stderr = saved[1];
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        FUZZ_CHECK(statuses[i] >= 0 && statuses[i] <= 2);
    close(fd);
    return 0;
}

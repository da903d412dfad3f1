/*
 * Reads /proc/self. The start time is the boot time plus proc(5)'s starttime.
 */
#include "process_stats.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#define PROC_FILE_MAX ((size_t)1024 * 1024)

/* The fields that we need of /proc/self/stat, counted from the first after the name. */
enum { STAT_UTIME = 11, STAT_STIME = 12, STAT_STARTTIME = 19, STAT_VSIZE = 20, STAT_RSS = 21 };

static int read_stat(int64_t *fields_out, size_t count)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    size_t size;
    int status = as_file_read("/proc/self/stat", PROC_FILE_MAX, &text, &size);
    if (status != 0)
        return status;
    const char *at = strrchr(text, ')'); /* the name may contain anything */
    if (!at || at[1] != ' ')
        return -EBADMSG;
    at += 2;
    for (size_t i = 0; i < count; i++) {
        const size_t length = strcspn(at, " \n");
        fields_out[i] = 0;
        if (i > 0) { /* the first is a letter */
            status = as_number_parse_i64(at, length, &fields_out[i]);
            if (status != 0)
                return status;
        }
        at += length + (at[length] != '\0');
    }
    return 0;
}

static int read_boot_time(int64_t *seconds_out)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    size_t size;
    int status = as_file_read("/proc/stat", PROC_FILE_MAX, &text, &size);
    if (status != 0)
        return status;
    static const char key[] = "\nbtime ";
    const char *at = strstr(text, key);
    if (!at)
        return -EBADMSG;
    at += sizeof(key) - 1;
    return as_number_parse_i64(at, strcspn(at, "\n"), seconds_out);
}

static int count_open_fds(double *count_out)
{
    DIR *directory = opendir("/proc/self/fd");
    if (!directory)
        return -errno;
    double count = -1; /* without the descriptor of this folder */
    const struct dirent *entry;
    while ((entry = readdir(directory)))
        count += entry->d_name[0] != '.';
    closedir(directory);
    *count_out = count;
    return 0;
}

int process_stats_read(struct process_stats *stats_out)
{
    int64_t fields[STAT_RSS + 1];
    int64_t boot;
    double open_fds = 0;
    struct rlimit limit;
    int status = read_stat(fields, AS_ARRAY_SIZE(fields));
    if (status == 0)
        status = read_boot_time(&boot);
    if (status == 0)
        status = count_open_fds(&open_fds);
    if (status == 0 && getrlimit(RLIMIT_NOFILE, &limit) != 0)
        status = -errno;
    if (status != 0)
        return status;
    const double ticks = (double)sysconf(_SC_CLK_TCK);
    *stats_out = (struct process_stats){
        .cpu_seconds = (double)(fields[STAT_UTIME] + fields[STAT_STIME]) / ticks,
        .start_time_seconds = (double)boot + (double)fields[STAT_STARTTIME] / ticks,
        .resident_bytes = (double)fields[STAT_RSS] * (double)sysconf(_SC_PAGESIZE),
        .virtual_bytes = (double)fields[STAT_VSIZE],
        .open_fds = open_fds,
        .max_fds = (double)limit.rlim_cur,
    };
    return 0;
}

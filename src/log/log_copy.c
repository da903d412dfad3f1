/*
 * Copies of other replicas' records: see the header. A file that was written here ends in .from-
 * and the number of its first record. Files that people copied have other names, and stay.
 */
#include <alertscaler/log/log_copy.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/log/log_absences.h>
#include <alertscaler/log/log_chain.h>
#include <alertscaler/log/log_file.h>
#include <alertscaler/log/log_page.h>
#include <alertscaler/port/clock.h>

#define MARK          ".from-"
#define MODE          0640
#define PAGE_US       (100 * AS_US_PER_MS)
#define ABSENCES_US   AS_US_PER_S
#define REPLICA_MAX   100
#define HASH_SIZE     (AS_AUDIT_HASH_SIZE - 1)
#define DIRECTORY_MAX 100000 /* entries that are looked at */

/*
 * Which records are missing.
 */

struct copy_record { /* the first one of a page */
    int64_t wanted;
    bool is_found;
    struct as_audit_head head;
    char prev[AS_AUDIT_HASH_SIZE];
};

static bool copy_on_record(void *context, const struct as_log_page_record *record)
{
    struct copy_record *wanted = context;
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();
    struct as_error error;
    wanted->is_found = record->seq == wanted->wanted &&
                       as_chain_check_line(chain, record->line, record->size, &wanted->head,
                                           wanted->prev, &error) == AS_CHAIN_OK;
    return false;
}

/* False: no file has this record whole. */
static bool copy_read_record(const char *log_path, int64_t seq, struct copy_record *record_out)
{
    const struct as_log_page_query query = {.log_path = log_path,
                                            .after = seq - 1,
                                            .duration_us = PAGE_US,
                                            .on_record = copy_on_record,
                                            .context = record_out};
    struct as_log_page page;
    struct as_error error;
    *record_out = (struct copy_record){.wanted = seq};
    return as_log_page_read(&query, &page, &error) == 0 && record_out->is_found;
}

struct gap_search {
    const struct as_log_copy_search *search;
    const struct as_log_history_view *view;
    struct as_log_copy_gap *gap;
    bool is_found;
};

/* Whether another replica led before our oldest record. */
static bool copy_is_named(const struct gap_search *search, const struct as_log_gap *gap)
{
    const as_mono_time now = as_system_clock.get_mono(&as_system_clock);
    const struct as_log_absences_query query = {
        .instance = search->search->instance,
        .last = gap->last,
        .deadline = {as_time_add(now.us, ABSENCES_US)},
    };
    struct as_log_absences absences;
    as_log_absences_find(search->view, &query, &absences);
    for (size_t i = 0; i < absences.count; i++) {
        if (*absences.items[i].replica)
            return true;
    }
    return false;
}

static bool copy_on_gap(void *context, const struct as_log_gap *gap)
{
    struct gap_search *search = context;
    const struct as_log_copy_search *wanted = search->search;
    struct copy_record behind, before;
    if (gap->last <= wanted->above)
        return false; /* as are all older ones */
    if (gap->last >= wanted->below || (!gap->from.set && !copy_is_named(search, gap)) ||
        !copy_read_record(wanted->log_path, gap->last + 1, &behind))
        return true;
    *search->gap = (struct as_log_copy_gap){.first = gap->first, .last = gap->last};
    memcpy(search->gap->hash, behind.prev, sizeof(behind.prev));
    if (gap->first > 1 && copy_read_record(wanted->log_path, gap->first - 1, &before))
        memcpy(search->gap->before, before.head.hash, sizeof(before.head.hash));
    search->is_found = true;
    return false;
}

int as_log_copy_find(const struct as_log_history_view *view,
                     const struct as_log_copy_search *search, struct as_log_copy_gap *gap_out,
                     struct as_error *error)
{
    struct gap_search gaps = {.search = search, .view = view, .gap = gap_out};
    if (!view->index || !view->state.is_current) {
        as_error_set(error, "the action log is not read to its end yet");
        return -EAGAIN;
    }
    const int status = as_log_index_find_gaps(view->index, copy_on_gap, &gaps, error);
    return status != 0 ? status : gaps.is_found;
}

/*
 * What is good of an answer: its last records without a hole, if they end with the gap's last one.
 */

struct copy_range {
    const char *begin, *end; /* of whole lines; NULL: none */
    int64_t first;
    struct as_audit_head last;
    char prev[AS_AUDIT_HASH_SIZE]; /* of the first record */
    uint64_t count;
    bool has_later; /* a record behind the gap followed */
};

/* False: the record is not one of these, with an error. */
static bool copy_add(const struct as_log_copy_answer *answer, struct copy_range *range,
                     const struct as_audit_head *head, const char prev[AS_AUDIT_HASH_SIZE],
                     struct as_error *error)
{
    const int64_t seq = (int64_t)head->seq;
    if (seq < answer->first || (range->count > 0 && head->seq <= range->last.seq)) {
        as_error_set(error, "record %" PRId64 " is out of order", seq);
        return false;
    }
    if (range->count > 0 && head->seq == range->last.seq + 1) {
        if (memcmp(prev, range->last.hash, HASH_SIZE) != 0) {
            as_error_set(error, "record %" PRId64 " does not continue the record before it", seq);
            return false;
        }
        range->count++;
    } else {
        range->begin = NULL; /* the caller sets it */
        range->first = seq;
        range->count = 1;
        memcpy(range->prev, prev, sizeof(range->prev));
    }
    range->last = *head;
    return true;
}

static bool copy_read_lines(const struct as_log_copy_answer *answer, struct copy_range *range,
                            struct as_error *error)
{
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();
    const char *at = answer->lines, *end = at + answer->size, *newline;
    while (at < end && (newline = memchr(at, '\n', (size_t)(end - at)))) {
        struct as_audit_head head;
        char prev[AS_AUDIT_HASH_SIZE];
        const size_t size = (size_t)(newline - at);
        if (as_chain_check_line(chain, at, size, &head, prev, error) != AS_CHAIN_OK)
            return false;
        if ((int64_t)head.seq > answer->gap->last) {
            range->has_later = true;
            break;
        }
        if (!copy_add(answer, range, &head, prev, error))
            return false;
        range->begin = range->begin ? range->begin : at;
        range->end = newline + 1;
        at = newline + 1;
    }
    return true;
}

static enum as_log_copy_outcome copy_check(const struct as_log_copy_answer *answer,
                                           struct copy_range *range, struct as_error *error)
{
    const struct as_log_copy_gap *gap = answer->gap;
    if (!copy_read_lines(answer, range, error))
        return AS_LOG_COPY_WRONG;
    if (range->count == 0 || (int64_t)range->last.seq != gap->last)
        return range->has_later || !answer->has_more ? AS_LOG_COPY_NOTHING : AS_LOG_COPY_SHORT;
    if (memcmp(range->last.hash, gap->hash, HASH_SIZE) != 0) {
        as_error_set(error, "record %" PRId64 " is not the one that our next record follows",
                     gap->last);
        return AS_LOG_COPY_WRONG;
    }
    if (range->first == gap->first && *gap->before &&
        memcmp(range->prev, gap->before, HASH_SIZE) != 0) {
        as_error_set(error, "record %" PRId64 " does not continue our record before it",
                     gap->first);
        return AS_LOG_COPY_WRONG;
    }
    return AS_LOG_COPY_DONE;
}

/*
 * The files that were written here.
 */

struct copied_file {
    char *path;
    int64_t first;
    uint64_t size;
};

struct copied_files {
    struct copied_file *items; /* the oldest first */
    size_t count, capacity;
    uint64_t bytes;
};

static void copied_files_deinit(struct copied_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i].path);
    free(files->items);
}

static char *copy_make_directory(const char *log_path, const char **name_out)
{
    const char *slash = strrchr(log_path, '/');
    *name_out = slash ? slash + 1 : log_path;
    return slash ? as_xstrndup(log_path, (size_t)(slash + 1 - log_path)) : as_xstrdup("./");
}

static bool copy_read_first(const char *log_name, const char *name, int64_t *first_out)
{
    const char *mark = strrchr(name, MARK[0]);
    return mark && strncmp(mark, MARK, strlen(MARK)) == 0 &&
           as_audit_file_is_copy(log_name, name) &&
           as_number_parse_i64(mark + strlen(MARK), strlen(mark + strlen(MARK)), first_out) == 0;
}

static int copied_file_compare(const void *left, const void *right)
{
    const struct copied_file *a = left, *b = right;
    return (a->first > b->first) - (a->first < b->first);
}

static int copied_files_read(struct copied_files *files, const char *log_path,
                             struct as_error *error)
{
    const char *log_name;
    AS_CLEANUP(as_free_p) char *directory = copy_make_directory(log_path, &log_name);
    DIR *folder = opendir(directory);
    int64_t first;
    if (!folder) {
        const int code = errno;
        as_error_set_errno(error, code, "%s: read the folder", directory);
        return -code;
    }
    struct dirent *entry;
    for (size_t i = 0; i < DIRECTORY_MAX && (entry = readdir(folder)); i++) {
        struct stat info;
        if (!copy_read_first(log_name, entry->d_name, &first) ||
            fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        files->items =
            as_xgrow(files->items, files->count, &files->capacity, sizeof(*files->items));
        files->items[files->count++] = (struct copied_file){
            as_xasprintf("%s%s", directory, entry->d_name), first, (uint64_t)info.st_size};
        files->bytes += (uint64_t)info.st_size;
    }
    closedir(folder);
    if (files->count > 0)
        qsort(files->items, files->count, sizeof(*files->items), copied_file_compare);
    return 0;
}

/* Deletes the oldest files, as long as they are older than the new one. False: there is no room. */
static bool copy_make_room(const struct copied_files *files,
                           const struct as_log_copy_answer *answer, const struct copy_range *range,
                           struct as_log_copy_result *result)
{
    const uint64_t size = (uint64_t)(range->end - range->begin);
    const struct copied_file *oldest = files->items, *end = files->items + files->count;
    uint64_t bytes = files->bytes + size;
    size_t count = files->count + 1;
    while (oldest < end && oldest->first < range->first &&
           (bytes > answer->bytes_max || count > AS_LOG_COPY_FILES_MAX)) {
        (void)unlink(oldest->path);
        bytes -= oldest->size;
        count--;
        oldest++;
    }
    const bool has_room = bytes <= answer->bytes_max && count <= AS_LOG_COPY_FILES_MAX;
    const bool is_oldest = oldest == end || oldest->first > range->first;
    if (!has_room)
        result->above = answer->gap->last;
    else if (count <= files->count) /* else what was deleted would be copied again */
        result->above = is_oldest ? range->first - 1 : oldest->first - 1;
    return has_room;
}

static char *copy_make_path(const struct as_log_copy_answer *answer, int64_t first)
{
    const char *log_name;
    AS_CLEANUP(as_free_p) char *directory = copy_make_directory(answer->log_path, &log_name);
    char replica[REPLICA_MAX + 1];
    size_t size = 0;
    for (const char *at = answer->replica; *at && size < REPLICA_MAX; at++, size++) {
        const bool is_plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                              (*at >= '0' && *at <= '9') || (*at == '.' && size > 0);
        replica[size] = is_plain ? *at : '-';
    }
    replica[size] = '\0';
    return as_xasprintf("%sreplica-%s-%s" MARK "%" PRId64, directory, size > 0 ? replica : "x",
                        log_name, first);
}

static int copy_check_disk(const struct as_log_copy_answer *answer, uint64_t size,
                           struct as_error *error)
{
    const char *log_name;
    AS_CLEANUP(as_free_p) char *directory = copy_make_directory(answer->log_path, &log_name);
    struct statvfs info;
    if (statvfs(directory, &info) != 0) {
        const int code = errno;
        as_error_set_errno(error, code, "%s", directory);
        return -code;
    }
    if ((uint64_t)info.f_bavail * info.f_frsize >= answer->free_min + size)
        return 0;
    as_error_set(error, "%s: less than %" PRIu64 " MiB are free", directory,
                 answer->free_min >> 20);
    return -ENOSPC;
}

static enum as_log_copy_outcome copy_write(const struct as_log_copy_answer *answer,
                                           const struct copy_range *range,
                                           struct as_log_copy_result *result)
{
    struct copied_files files = {0};
    const size_t size = (size_t)(range->end - range->begin);
    int status = copied_files_read(&files, answer->log_path, &result->error);
    if (status == 0)
        status = copy_check_disk(answer, size, &result->error);
    const bool has_room = status == 0 && copy_make_room(&files, answer, range, result);
    copied_files_deinit(&files);
    if (status != 0)
        return AS_LOG_COPY_FAILED;
    if (!has_room)
        return AS_LOG_COPY_FULL;
    AS_CLEANUP(as_free_p) char *path = copy_make_path(answer, range->first);
    status = as_file_replace(path, MODE, range->begin, size);
    if (status == 0)
        return AS_LOG_COPY_DONE;
    as_error_set_errno(&result->error, -status, "%s: write", path);
    return AS_LOG_COPY_FAILED;
}

void as_log_copy_take(const struct as_log_copy_answer *answer,
                      struct as_log_copy_result *result_out)
{
    struct copy_range range = {0};
    *result_out = (struct as_log_copy_result){.error = AS_ERROR_INIT};
    result_out->outcome = copy_check(answer, &range, &result_out->error);
    result_out->first = range.first;
    result_out->count = range.count;
    if (result_out->outcome == AS_LOG_COPY_DONE)
        result_out->outcome = copy_write(answer, &range, result_out);
}

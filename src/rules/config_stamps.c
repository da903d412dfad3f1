/*
 * The stamps of all files of a configuration, as one text.
 */
#include <alertscaler/rules/config_stamps.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/file.h>

#include "content_hash.h"
#include "rule_files.h"

struct stamping {
    struct content_hash hash;
    struct timespec latest;
    const char *newest;
};

static bool is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* A missing file has a stamp too: an editor may be about to rename another one to its name. */
static void add(struct stamping *stamping, const char *path)
{
    struct as_file_stamp stamp;
    const bool is_there = as_file_stamp_take(path, &stamp) == 0;
    if (!is_there)
        stamp = (struct as_file_stamp){.size = -1};
    const int64_t numbers[] = {
        (int64_t)stamp.device,  (int64_t)stamp.inode, (int64_t)stamp.size,   stamp.modified.tv_sec,
        stamp.modified.tv_nsec, stamp.changed.tv_sec, stamp.changed.tv_nsec,
    };
    content_hash_add(&stamping->hash, path, strlen(path) + 1);
    content_hash_add(&stamping->hash, (const char *)numbers, sizeof(numbers));
    if (is_there && is_later(stamp.changed, stamping->latest)) {
        stamping->latest = stamp.changed;
        stamping->newest = path;
    }
}

void as_config_stamp_files(const struct as_config *config, struct as_config_stamps *stamps_out)
{
    AS_CLEANUP(rule_files_deinit) struct rule_files files = {0};
    AS_CLEANUP(as_free_p) char *folder = rule_files_copy_folder(config->path);
    const struct as_settings *settings = &config->settings;
    struct stamping stamping = {.hash = content_hash_begin(), .newest = config->path};
    for (size_t i = 0; i < settings->rule_file_count; i++)
        rule_files_find(&files, folder, settings->rule_files[i]);
    rule_files_sort(&files);
    add(&stamping, config->path);
    for (size_t i = 0; i < files.count; i++)
        add(&stamping, files.names[i]);
    content_hash_end(&stamping.hash, stamps_out->text);
    (void)snprintf(stamps_out->newest, sizeof(stamps_out->newest), "%s", stamping.newest);
}

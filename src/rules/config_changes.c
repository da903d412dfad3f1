/*
 * The files of a configuration, read again without being parsed: what their digests are now.
 */
#include <alertscaler/rules/config.h>

#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/yaml_tree.h>

#include "content_hash.h"
#include "rule_files.h"

static bool add_file(struct content_hash *hash, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    if (as_file_read(path, AS_YAML_SIZE_MAX, &text, &size) != 0)
        return false;
    content_hash_add(hash, text, size);
    free(text);
    return true;
}

static void hash_files(const char *const *paths, size_t count, char text_out[AS_DIGEST_TEXT_SIZE])
{
    struct content_hash hash = content_hash_begin();
    bool is_whole = true;
    for (size_t i = 0; i < count && is_whole; i++)
        is_whole = add_file(&hash, paths[i]);
    content_hash_end(&hash, text_out);
    if (!is_whole)
        text_out[0] = '\0';
}

void as_config_hash_files(const struct as_config *config, struct as_config_digests *digests_out)
{
    AS_CLEANUP(rule_files_deinit) struct rule_files files = {0};
    AS_CLEANUP(as_free_p) char *folder = rule_files_copy_folder(config->path);
    const struct as_settings *settings = &config->settings;
    for (size_t i = 0; i < settings->rule_file_count; i++)
        rule_files_find(&files, folder, settings->rule_files[i]);
    rule_files_sort(&files);
    hash_files((const char *const *)&config->path, 1, digests_out->config);
    hash_files((const char *const *)files.names, files.count, digests_out->rules);
}

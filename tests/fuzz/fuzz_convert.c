/*
 * Objects of other autoscalers from a stranger. Whatever is converted must be rule files that load,
 * under names of the checked alphabet, with texts for people of visible ASCII.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <alertscaler/base/str.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/tools/convert.h>

#include "fuzz.h"

#define FILES_MAX 64

static int make_file(const void *data, size_t size, char path_out[64])
{
    int fd = memfd_create("convert", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path_out, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void check_name(const char *name)
{
    const char *slash = strchr(name, '/');
    size_t size =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/");
    FUZZ_CHECK(name[size] == '\0' && name[0] != '.' && name[0] != '/');
    FUZZ_CHECK(!slash || (!strchr(slash + 1, '/') && slash[1] != '.'));
}

/* All rule files together, as the daemon loads them. */
static void check_rules(const struct as_conversion *conversion)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct as_config *config = NULL;
    char paths[FILES_MAX][64];
    const char *list[FILES_MAX];
    int fds[FILES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < conversion->file_count && count < FILES_MAX; i++) {
        const struct as_converted_file *file = &conversion->files[i];
        check_name(file->name);
        if (!as_str_starts_with(file->name, "rules/"))
            continue;
        fds[count] = make_file(file->text, file->size, paths[count]);
        list[count] = paths[count];
        count++;
    }
    if (count > 0) {
        int status = as_config_load_rules(list, count, &config, &diagnostics);
        as_diagnostics_print(&diagnostics, stderr);
        FUZZ_CHECK(status == AS_CONFIG_OK && diagnostics.count == 0);
        as_config_free(config);
    }
    as_diagnostics_deinit(&diagnostics);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static void check_items(const struct as_conversion *conversion)
{
    size_t lost = 0;
    for (size_t i = 0; i < conversion->item_count; i++) {
        const struct as_conversion_item *item = &conversion->items[i];
        for (const char *at = item->text; *at; at++)
            FUZZ_CHECK(*at >= ' ' && *at <= '~');
        for (const char *at = item->object; *at; at++)
            FUZZ_CHECK(*at >= ' ' && *at <= '~');
        FUZZ_CHECK(item->line > 0);
        lost += !item->is_carried;
    }
    FUZZ_CHECK(lost == conversion->lost_count);
}

static void convert(enum as_convert_from from, const char *path)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct as_conversion *conversion = NULL;
    int status = as_convert(from, &(struct as_convert_input){.name = path}, 1, "default",
                            &diagnostics, &conversion);
    FUZZ_CHECK((status == AS_CONVERT_OK) == (conversion != NULL));
    FUZZ_CHECK((status == AS_CONVERT_OK) == !diagnostics.has_error);
    if (conversion) {
        check_items(conversion);
        check_rules(conversion);
    }
    as_conversion_free(conversion);
    as_diagnostics_deinit(&diagnostics);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = make_file(data, size, path);
    convert(AS_CONVERT_OBJECTS, path);
    convert(AS_CONVERT_AUTOSCALER, path);
    close(fd);
    return 0;
}

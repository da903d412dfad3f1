/* Any bytes as the file of --web.config.file: refused with errors that have places, or valid
 * settings for the server. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <alertscaler/rules/web_config.h>

#include "fuzz.h"

static size_t count_words(const char *const *words)
{
    size_t count = 0;
    while (words[count])
        count++;
    return count;
}

static void check_settings(const struct as_web_settings *settings)
{
    const struct as_web_tls_settings *tls = &settings->tls;

    if (tls->is_set) {
        FUZZ_CHECK(tls->cert_file && *tls->cert_file && tls->key_file && *tls->key_file);
        FUZZ_CHECK(tls->client_auth < count_words(as_web_client_auth_words));
        FUZZ_CHECK(tls->min_version <= tls->max_version);
        FUZZ_CHECK(tls->max_version < count_words(as_web_version_words));
    }
    for (size_t i = 0; i < settings->header_count; i++) {
        FUZZ_CHECK(*settings->headers[i].name && !strpbrk(settings->headers[i].name, ": \r\n"));
        FUZZ_CHECK(!strpbrk(settings->headers[i].value, "\r\n"));
    }
    for (size_t i = 0; i < settings->user_count; i++)
        FUZZ_CHECK(*settings->users[i].name && strncmp(settings->users[i].hash, "$2", 2) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct as_web_config *config = NULL;
    char path[64];
    const int fd = memfd_create("web", MFD_CLOEXEC);

    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const int r = as_web_config_load(path, &config, &diagnostics);
    FUZZ_CHECK((r == 0) == !diagnostics.has_error && (r == 0) == (config != NULL));
    if (config)
        check_settings(as_web_config_get(config));
    as_web_config_free(config);
    as_diagnostics_deinit(&diagnostics);
    close(fd);
    return 0;
}

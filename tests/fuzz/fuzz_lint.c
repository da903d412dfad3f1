/* Any bytes as alertmanager.yml and as Prometheus' rules, compared with rules that read everything.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <alertscaler/tools/lint.h>

#include "fuzz.h"

static const char rules[] =
    "targets:\n"
    "  t: {kubernetes: {kind: Deployment, namespace: '{{ .Labels.n }}', name: '{{ .Annotations.a "
    "}}'},"
    " max: 5, allow: {namespaces: ['*'], names: ['*']}}\n"
    "rules:\n"
    "  - {name: a, match: [alertname=A, s=t], receivers: [r, q], target: t, scale_up: {by: 1}}\n"
    "  - {name: b, match: ['alertname=~\"B|C\"', s!=u], target: t, scale_down: {by: 1}}\n"
    "  - {name: c, match: ['n=~\".+\"'], target: t, scale_down: {by: 1}}\n";

struct file {
    int handle;
    char path[64];
};

static struct file write_file(const void *data, size_t size)
{
    struct file file = {.handle = memfd_create("fuzz", 0)};
    FUZZ_CHECK(file.handle >= 0);
    FUZZ_CHECK(write(file.handle, data, size) == (ssize_t)size);
    snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.handle);
    return file;
}

static struct as_config *load_rules(struct as_diagnostics *diagnostics)
{
    struct file file = write_file(rules, sizeof(rules) - 1);
    const char *path = file.path;
    struct as_config *config = NULL;
    FUZZ_CHECK(as_config_load_rules(&path, 1, &config, diagnostics) == AS_CONFIG_OK);
    return config; /* its file stays open: the lint reads it again */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct as_config *config;
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct file file = write_file(data, size);
    const char *path = file.path;
    struct as_lint_sources both[] = {{.alertmanager = path},
                                     {.prometheus_rules = &path, .prometheus_rule_count = 1}};
    if (!config)
        config = load_rules(&diagnostics);
    for (size_t i = 0; i < 2; i++) {
        struct as_lint *lint = NULL;
        as_diagnostics_deinit(&diagnostics);
        int r = as_lint_new(&both[i], &diagnostics, &lint);
        FUZZ_CHECK(r == AS_LINT_OK || r == AS_LINT_INVALID);
        FUZZ_CHECK((r == AS_LINT_OK) == !diagnostics.has_error);
        FUZZ_CHECK((r == AS_LINT_OK) == (lint != NULL));
        if (lint)
            as_lint_check(lint, config, &diagnostics);
        FUZZ_CHECK((r == AS_LINT_OK) == !diagnostics.has_error);
        as_lint_free(lint);
    }
    as_diagnostics_deinit(&diagnostics);
    close(file.handle);
    return 0;
}

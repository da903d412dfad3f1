/* Any text as a kubeconfig: refused with a reason, or read and usable. */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "kube/kubeconfig.h"

static void check_no_line_break(const char *text)
{
    FUZZ_CHECK(!text || !strpbrk(text, "\r\n"));
}

static void check_config(const struct as_kubeconfig *config)
{
    FUZZ_CHECK(config->server && strncmp(config->server, "http", 4) == 0);
    FUZZ_CHECK(config->server[strlen(config->server) - 1] != '/');
    check_no_line_break(config->server);
    check_no_line_break(config->token);
    check_no_line_break(config->username);
    check_no_line_break(config->password);
    FUZZ_CHECK(!(config->cert_file || config->cert_pem) == !(config->key_file || config->key_pem));
    FUZZ_CHECK(!config->ca_file || !config->ca_pem);
    if (config->exec.command)
        FUZZ_CHECK(config->exec.api_version && config->exec.env &&
                   strcmp(config->exec.argv[0], config->exec.command) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_kubeconfig_file file = {"dir/config", (const char *)data, size};
    struct as_kubeconfig *config = NULL;
    struct as_error error = AS_ERROR_INIT;
    int r = as_kubeconfig_parse(&file, 1, NULL, &config, &error);

    if (r < 0) {
        FUZZ_CHECK(r == -EINVAL && *error.text && !config);
        return 0;
    }
    check_config(config);
    as_kubeconfig_free(config);
    return 0;
}

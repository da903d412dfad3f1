/*
 * kubeconfig.h: files are read as kubectl reads them, and errors name file, line and key without
 * ever showing a secret. Files and expected results are in tests/golden/kubeconfig;
 * AS_UPDATE_GOLDEN=1 rewrites them.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>

#include "kube/kubeconfig.h"
#include "source_root.h"

#define GOLDEN TEST_SOURCE_ROOT "/tests/golden/kubeconfig/"

static void print_text(struct as_buf *out, const char *key, const char *value)
{
    if (value)
        as_buf_printf(out, "%s: %.*s\n", key, (int)strcspn(value, "\n"), value);
}

static void print_list(struct as_buf *out, const char *key, char *const *list)
{
    for (size_t i = 0; list && list[i]; i++)
        print_text(out, key, list[i]);
}

static void print_config(struct as_buf *out, const struct as_kubeconfig *config)
{
    print_text(out, "server", config->server);
    print_text(out, "tls_server_name", config->tls_server_name);
    print_text(out, "proxy_url", config->proxy_url);
    print_text(out, "namespace", config->namespace_);
    print_text(out, "ca_file", config->ca_file);
    print_text(out, "ca_pem", config->ca_pem);
    if (config->insecure_skip_verify)
        print_text(out, "insecure_skip_verify", "true");
    print_text(out, "cert_file", config->cert_file);
    print_text(out, "cert_pem", config->cert_pem);
    print_text(out, "key_file", config->key_file);
    print_text(out, "key_pem", config->key_pem);
    print_text(out, "token", config->token);
    print_text(out, "token_file", config->token_file);
    print_text(out, "username", config->username);
    print_text(out, "password", config->password);
    print_text(out, "exec.api_version", config->exec.api_version);
    print_text(out, "exec.command", config->exec.command);
    print_list(out, "exec.argv", config->exec.argv);
    print_list(out, "exec.env", config->exec.env);
    if (config->exec.provide_cluster_info)
        print_text(out, "exec.provide_cluster_info", "true");
    print_text(out, "exec.install_hint", config->exec.install_hint);
}

static void describe(const char *path, struct as_buf *out)
{
    AS_CLEANUP(as_free_p) char *text = NULL;
    AS_CLEANUP(as_kubeconfig_free_p) struct as_kubeconfig *config = NULL;
    struct as_error error = AS_ERROR_INIT;
    size_t size;
    cr_assert_eq(as_file_read(path, 1 << 20, &text, &size), 0);
    char shown[256];
    snprintf(shown, sizeof(shown), "conf/%s", strrchr(path, '/') + 1);
    struct as_kubeconfig_file file = {shown, text, size};
    if (as_kubeconfig_parse(&file, 1, NULL, &config, &error) == 0)
        print_config(out, config);
    else
        as_buf_printf(out, "error: %s\n", error.text);
}

static void check_golden(const char *path, const struct as_buf *got)
{
    AS_CLEANUP(as_free_p) char *want_path = as_xasprintf("%.*s.want", (int)strlen(path) - 5, path);
    AS_CLEANUP(as_free_p) char *want = NULL;
    size_t size;
    if (getenv("AS_UPDATE_GOLDEN")) {
        FILE *file = fopen(want_path, "w");
        fputs(got->data, file);
        fclose(file);
    }
    cr_assert_eq(as_file_read(want_path, 1 << 20, &want, &size), 0, "%s", want_path);
    cr_expect_str_eq(got->data, want, "%s", path);
    cr_expect(strstr(got->data, "very-secret") == NULL);
}

Test(kubeconfig, golden_files)
{
    glob_t files;
    cr_assert_eq(glob(GOLDEN "*.yaml", 0, NULL, &files), 0);
    cr_assert(files.gl_pathc >= 30);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf got = AS_BUF_INIT(65536);
        describe(files.gl_pathv[i], &got);
        check_golden(files.gl_pathv[i], &got);
        bool is_bad = strncmp(strrchr(files.gl_pathv[i], '/'), "/bad-", 5) == 0;
        cr_expect_eq(is_bad, as_str_starts_with(got.data, "error: "), "%s", files.gl_pathv[i]);
    }
    globfree(&files);
}

#define FIRST                                                                                      \
    "current-context: one\n"                                                                       \
    "clusters: [{name: c, cluster: {server: 'https://first'}}]\n"                                  \
    "contexts: [{name: one, context: {cluster: c, user: u}}]\n"                                    \
    "users: [{name: u, user: {token: first}}]\n"
#define SECOND                                                                                     \
    "current-context: two\n"                                                                       \
    "clusters: [{name: c, cluster: {server: 'https://second', tls-server-name: x}}]\n"             \
    "contexts: [{name: two, context: {cluster: c, user: v}}]\n"                                    \
    "users: [{name: u, user: {token: second, username: w}},"                                       \
    " {name: v, user: {tokenFile: t}}]\n"

/* Whole entries: nothing of the second file's `c` and `u` remains. */
Test(kubeconfig, of_several_files_the_first_counts)
{
    const struct as_kubeconfig_file files[] = {{"/a/config", FIRST, strlen(FIRST)},
                                               {"/b/config", SECOND, strlen(SECOND)}};
    struct as_kubeconfig *config;
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(as_kubeconfig_parse(files, 2, NULL, &config, &error), 0, "%s", error.text);
    cr_expect_str_eq(config->server, "https://first");
    cr_expect_null(config->tls_server_name);
    cr_expect_str_eq(config->token, "first");
    cr_expect_null(config->username);
    as_kubeconfig_free(config);

    cr_assert_eq(as_kubeconfig_parse(files, 2, "two", &config, &error), 0, "%s", error.text);
    cr_expect_str_eq(config->server, "https://first");
    cr_expect_str_eq(config->token_file, "/b/t");
    as_kubeconfig_free(config);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

Test(kubeconfig, a_list_leaves_out_what_is_not_there)
{
    char directory[] = "/tmp/as-kubeconfig-XXXXXX", path[64], list[256];
    struct as_kubeconfig *config;
    struct as_error error = AS_ERROR_INIT;
    cr_assert_not_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/b", directory);
    write_file(path, SECOND);
    snprintf(list, sizeof(list), ":%s/a::%s:", directory, path);

    cr_expect_eq(as_kubeconfig_load_list(list, NULL, &config, &error), 0, "%s", error.text);
    cr_expect_str_eq(config->server, "https://second");
    as_kubeconfig_free(config);
    cr_expect_eq(as_kubeconfig_load_list("/nonexistent:/neither", NULL, &config, &error), -ENOENT);
    cr_expect_eq(as_kubeconfig_load("/nonexistent", NULL, &config, &error), -ENOENT);
    cr_expect_eq(as_kubeconfig_load(directory, NULL, &config, &error), -EISDIR);
    unlink(path);
    rmdir(directory);
}

/*
 * One context of the user's kubeconfig files, resolved: the server and the credentials. A text that
 * is not given is NULL. Base64 is decoded; relative paths are relative to their file.
 *
 * Files are merged as kubectl does: if several files have an entry of the same name, or a
 * current-context, the first file's counts, whole. Unknown keys are ignored. auth-provider, which
 * kubectl has dropped, is an error: otherwise it would later fail as an unexplained 401.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBECONFIG_H
#define ALERTSCALER_SRC_KUBE_KUBECONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

struct as_kubeconfig_exec {
    char *api_version; /* NULL: no plugin */
    char *command;
    char **argv;               /* command first, NULL at the end */
    char **env;                /* "NAME=value", NULL at the end */
    bool provide_cluster_info; /* in KUBERNETES_EXEC_INFO */
    char *install_hint;
};

struct as_kubeconfig {
    char *server, *tls_server_name, *proxy_url;
    char *namespace_; /* of the context */
    char *ca_file, *ca_pem, *ca_base64;
    bool insecure_skip_verify;
    char *cert_file, *cert_pem, *key_file, *key_pem;
    char *token, *token_file;
    char *username, *password;
    struct as_kubeconfig_exec exec;
};

struct as_kubeconfig_file {
    const char *path; /* for errors, and as the base of relative paths */
    const char *text;
    size_t size;
};

/*
 * Resolves the context `context` (NULL: the current one) of the merged files. 0; or -EINVAL with an
 * error that names file and key. Pure: reads no file.
 */
int as_kubeconfig_parse(const struct as_kubeconfig_file *files, size_t count, const char *context,
                        struct as_kubeconfig **config_out, struct as_error *error) AS_MUST_USE;

/* Reads one file and parses it. As above; -ENOENT if the file does not exist. */
int as_kubeconfig_load(const char *path, const char *context, struct as_kubeconfig **config_out,
                       struct as_error *error) AS_MUST_USE;

/* As above, for a list as in $KUBECONFIG (separated by ':'). Missing files are skipped; -ENOENT if
 * all are missing. */
int as_kubeconfig_load_list(const char *paths, const char *context,
                            struct as_kubeconfig **config_out, struct as_error *error) AS_MUST_USE;
struct as_kubeconfig *as_kubeconfig_free(struct as_kubeconfig *config); /* wipes the secrets */

/* Decodes the standard alphabet with correct padding, for free(); NULL for anything else. */
char *kubeconfig_decode_base64(const char *text) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct as_kubeconfig *, as_kubeconfig_free)

#endif

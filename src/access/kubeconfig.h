/*
 * One context of the user's kubeconfig files, resolved: which server, and as whom. Every text is
 * NULL where it is not given. Base64 is decoded, relative paths are made relative to their file.
 *
 * Files are merged as kubectl does: of the entries of one name, and of current-context, the first
 * file's count, whole. Unknown keys are ignored. What kubectl has dropped (auth-provider) is an
 * error, because it would otherwise fail later as a 401 that explains nothing.
 */
#ifndef ALERTSCALER_SRC_ACCESS_KUBECONFIG_H
#define ALERTSCALER_SRC_ACCESS_KUBECONFIG_H

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
    char *ca_file, *ca_pem, *ca_base64;
    bool insecure_skip_verify;
    char *cert_file, *cert_pem, *key_file, *key_pem;
    char *token, *token_file;
    char *username, *password;
    struct as_kubeconfig_exec exec;
};

struct as_kubeconfig_file {
    const char *path; /* for errors, and for the paths in it */
    const char *text;
    size_t size;
};

/*
 * The context `context` (NULL: the current one) of the merged files. 0; or -EINVAL with an error
 * that names file and key. Pure: reads no file.
 */
int as_kubeconfig_parse(const struct as_kubeconfig_file *files, size_t count, const char *context,
                        struct as_kubeconfig **config_out, struct as_error *error) AS_MUST_USE;

/* Reads one file and parses it. As above; -ENOENT where it is not there. */
int as_kubeconfig_load(const char *path, const char *context, struct as_kubeconfig **config_out,
                       struct as_error *error) AS_MUST_USE;

/* The same for a list as in $KUBECONFIG (separated by ':'): files that do not exist are left out,
 * but -ENOENT when none is there. */
int as_kubeconfig_load_list(const char *paths, const char *context,
                            struct as_kubeconfig **config_out, struct as_error *error) AS_MUST_USE;
struct as_kubeconfig *as_kubeconfig_free(struct as_kubeconfig *config); /* wipes the secrets */

AS_DEFINE_CLEANUP(struct as_kubeconfig *, as_kubeconfig_free)

#endif

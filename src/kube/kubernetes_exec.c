/*
 * Input and output of kubectl's credential plugins (client.authentication.k8s.io, v1 and v1beta1,
 * which differ in the version only).
 */
#include <alertscaler/kube/kube_documents.h>

#include <errno.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include <alertscaler/doc/json_dump.h>
#include <alertscaler/doc/json_tree.h>

static void set_string(json_t *object, const char *name, const char *text)
{
    if (text)
        json_object_set_new(object, name, json_string(text));
}

void as_kube_exec_info_encode(const struct as_kube_exec_info *info, struct as_buf *out)
{
    json_t *spec = json_pack("{s:b}", "interactive", 0);
    if (info->server) {
        json_t *cluster = json_object();
        set_string(cluster, "server", info->server);
        set_string(cluster, "tls-server-name", info->tls_server_name);
        set_string(cluster, "certificate-authority-data", info->ca_base64);
        set_string(cluster, "proxy-url", info->proxy_url);
        if (info->insecure_skip_verify)
            json_object_set_new(cluster, "insecure-skip-tls-verify", json_true());
        json_object_set_new(spec, "cluster", cluster);
    }
    AS_CLEANUP(as_json_free_p)
    json_t *json = json_pack("{s:s, s:s, s:o}", "apiVersion", info->api_version, "kind",
                             "ExecCredential", "spec", spec);
    as_json_dump(json, out);
}

static char *copy_string(const struct tree_value *object, const char *name)
{
    const char *text = tree_find_text(object, name);
    return as_str_is_empty(text) ? NULL : as_xstrdup(text);
}

static int check_head(const struct tree_value *object, const char *api_version,
                      struct as_error *error)
{
    const char *kind = tree_find_text(object, "kind");
    const char *version = tree_find_text(object, "apiVersion");
    if (!as_str_equal(kind, "ExecCredential")) {
        as_error_set(error, "kind: expected ExecCredential");
        return -EBADMSG;
    }
    if (!as_str_equal(version, api_version)) {
        as_error_set(error, "apiVersion: expected %s, as the kubeconfig says", api_version);
        return -EBADMSG;
    }
    return 0;
}

int as_kube_exec_credential_decode(const char *json, size_t size, const char *api_version,
                                   struct as_kube_exec_credential *credential_out,
                                   struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    int code = tree_load_object(&tree, json, size, error);
    if (code || (code = check_head(tree.root, api_version, error)))
        return code;
    const struct tree_value *status = tree_find(tree.root, "status");
    const char *expires = tree_find_text(status, "expirationTimestamp");
    as_maybe_time time = {.set = expires != NULL};
    if (expires && as_wall_time_parse(expires, strlen(expires), &time.at) < 0) {
        as_error_set(error, "status.expirationTimestamp: expected a time in RFC 3339");
        return -EBADMSG;
    }
    struct as_kube_exec_credential credential = {
        .token = copy_string(status, "token"),
        .cert_pem = copy_string(status, "clientCertificateData"),
        .key_pem = copy_string(status, "clientKeyData"),
        .expires = time,
    };
    const char *problem = NULL;
    if (!credential.token && !credential.cert_pem)
        problem = "status: neither token nor clientCertificateData";
    else if (!credential.cert_pem != !credential.key_pem)
        problem = "status: clientCertificateData and clientKeyData come together";
    if (problem) {
        as_kube_exec_credential_deinit(&credential);
        as_error_set(error, "%s", problem);
        return -EBADMSG;
    }
    *credential_out = credential;
    return 0;
}

void as_kube_exec_credential_deinit(struct as_kube_exec_credential *credential)
{
    as_wipe_free(credential->token);
    as_wipe_free(credential->cert_pem);
    as_wipe_free(credential->key_pem);
    *credential = (struct as_kube_exec_credential){.token = NULL};
}

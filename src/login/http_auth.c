/*
 * Prometheus' `http_config`: see the header. Header lines are built for each request, because each
 * file may have changed; they are wiped before they are freed.
 */
#include <alertscaler/login/http_auth.h>

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/http/secret_file.h>

struct as_http_auth {
    const struct as_http_settings *settings;
    const struct as_clock *clock;
    struct as_secret_file username, password, credentials;
    struct as_secret_file *header_files; /* of all headers, one after the other */
    size_t header_file_count;

    char **lines; /* of the present request */
    size_t line_count;
    const char **all; /* `extra` and ours, NULL at the end */
};

static void open_file(struct as_secret_file *file, const char *path)
{
    if (path)
        as_secret_file_init(file, path);
}

struct as_http_auth *as_http_auth_new(const struct as_http_settings *settings,
                                      const struct as_clock *clock)
{
    struct as_http_auth *auth = as_xcalloc(1, sizeof(*auth));
    size_t values = 0, files = 0;
    auth->settings = settings;
    auth->clock = clock;
    open_file(&auth->username, settings->basic_auth.username_file);
    open_file(&auth->password, settings->basic_auth.password_file);
    open_file(&auth->credentials, settings->authorization.credentials_file);
    for (size_t i = 0; i < settings->header_count; i++) {
        values += settings->headers[i].value_count;
        files += settings->headers[i].file_count;
    }
    auth->lines = as_xcalloc(1 + values + files, sizeof(*auth->lines)); /* 1: Authorization */
    auth->header_files = as_xcalloc(files, sizeof(*auth->header_files));
    for (size_t i = 0; i < settings->header_count; i++)
        for (size_t k = 0; k < settings->headers[i].file_count; k++)
            open_file(&auth->header_files[auth->header_file_count++],
                      settings->headers[i].files[k]);
    return auth;
}

static void forget_lines(struct as_http_auth *auth)
{
    while (auth->line_count > 0)
        as_wipe_free(auth->lines[--auth->line_count]);
}

struct as_http_auth *as_http_auth_free(struct as_http_auth *auth)
{
    if (!auth)
        return NULL;
    forget_lines(auth);
    for (size_t i = 0; i < auth->header_file_count; i++)
        as_secret_file_deinit(&auth->header_files[i]);
    as_secret_file_deinit(&auth->username);
    as_secret_file_deinit(&auth->password);
    as_secret_file_deinit(&auth->credentials);
    free(auth->header_files);
    free(auth->lines);
    free(auth->all);
    free(auth);
    return NULL;
}

static int get_secret(struct as_http_auth *auth, struct as_secret_file *file, const char *key,
                      const char **text_out, struct as_error *error)
{
    int status = as_secret_file_get(file, auth->clock->get_mono(auth->clock), 0, text_out, error);
    if (status)
        as_error_wrap(error, "%s", key);
    return status;
}

static void add_basic(struct as_http_auth *auth, const char *username, const char *password)
{
    char *pair = as_xasprintf("%s:%s", username, password);
    size_t size = strlen(pair);
    char *base64 = as_xmalloc(4 * ((size + 2) / 3) + 1);
    EVP_EncodeBlock((unsigned char *)base64, (const unsigned char *)pair, (int)size);
    auth->lines[auth->line_count++] = as_xasprintf("Authorization: Basic %s", base64);
    as_wipe_free(pair);
    as_wipe_free(base64);
}

static int add_authorization(struct as_http_auth *auth, struct as_error *error)
{
    const struct as_http_settings *settings = auth->settings;
    const char *secret = "", *username = settings->basic_auth.username;
    int status = 0;
    if (auth->credentials.path) {
        status = get_secret(auth, &auth->credentials, "credentials_file", &secret, error);
        if (status)
            return status;
        auth->lines[auth->line_count++] =
            as_xasprintf("Authorization: %s %s", settings->authorization.type, secret);
        return 0;
    }
    if (auth->username.path)
        status = get_secret(auth, &auth->username, "username_file", &username, error);
    if (!status && auth->password.path)
        status = get_secret(auth, &auth->password, "password_file", &secret, error);
    if (!status && username)
        add_basic(auth, username, secret);
    return status;
}

static int add_headers(struct as_http_auth *auth, struct as_error *error)
{
    struct as_secret_file *file = auth->header_files;
    for (size_t i = 0; i < auth->settings->header_count; i++) {
        const struct as_header_settings *header = &auth->settings->headers[i];
        for (size_t k = 0; k < header->value_count; k++)
            auth->lines[auth->line_count++] =
                as_xasprintf("%s: %s", header->name, header->values[k]);
        for (size_t k = 0; k < header->file_count; k++) {
            const char *value;
            int status = get_secret(auth, file++, header->name, &value, error);
            if (status)
                return status;
            auth->lines[auth->line_count++] = as_xasprintf("%s: %s", header->name, value);
        }
    }
    return 0;
}

int as_http_auth_apply(struct as_http_auth *auth, const char *const *extra,
                       struct as_http_request *request, struct as_error *error)
{
    const struct as_http_settings *settings = auth->settings;
    size_t count = 0;
    forget_lines(auth);
    int status = add_authorization(auth, error);
    if (status || (status = add_headers(auth, error)))
        return status;
    while (extra && extra[count])
        count++;
    auth->all = as_xrealloc_array(auth->all, count + auth->line_count + 1, sizeof(*auth->all));
    if (count > 0)
        memcpy(auth->all, extra, count * sizeof(*auth->all));
    memcpy(auth->all + count, auth->lines, auth->line_count * sizeof(*auth->all));
    auth->all[count + auth->line_count] = NULL;
    request->headers = auth->all;
    request->proxy_url = settings->proxy_url;
    request->tls = (struct as_http_tls){
        .ca_file = settings->tls.ca_file,
        .cert_file = settings->tls.cert_file,
        .key_file = settings->tls.key_file,
        .server_name = settings->tls.server_name,
        .insecure_skip_verify = settings->tls.insecure_skip_verify,
    };
    return 0;
}

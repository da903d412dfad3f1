/*
 * Translates Go's words to OpenSSL's.
 */
#include <alertscaler/daemon/web_tls.h>

#include <string.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>

#define LIST_MAX ((size_t)4096)

struct word {
    const char *go, *openssl;
};

static const struct word ciphers[] = {
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA"},
    {"TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"},
    {"TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"},
    {"TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"},
    {"TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"},
};

static const struct word curves[] = {
    {"CurveP256", "P-256"},
    {"CurveP384", "P-384"},
    {"CurveP521", "P-521"},
    {"X25519", "X25519"},
};

static const char *web_tls_find(const struct word *words, size_t count, const char *go_name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i].go, go_name) == 0)
            return words[i].openssl;
    }
    return NULL;
}

const char *as_web_tls_find_cipher(const char *go_name)
{
    return web_tls_find(ciphers, AS_ARRAY_SIZE(ciphers), go_name);
}

const char *as_web_tls_find_curve(const char *go_name)
{
    return web_tls_find(curves, AS_ARRAY_SIZE(curves), go_name);
}

/* "A:B"; NULL if no word has a translation. */
static const char *join(const char *const *names, size_t count,
                        const char *(*find_name)(const char *go_name), struct as_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = find_name(names[i]);
        if (!name)
            continue;
        if (out->size > 0)
            as_buf_append_char(out, ':');
        as_buf_append_str(out, name);
    }
    as_buf_append_char(out, '\0');
    return out->size > 1 && as_buf_check(out) == 0 ? out->data : NULL;
}

int as_web_tls_new(const struct as_web_tls_settings *settings, struct as_tls_server **tls_out,
                   struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf cipher_list = AS_BUF_INIT(LIST_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf curve_list = AS_BUF_INIT(LIST_MAX);
    if (!settings->is_set) {
        *tls_out = NULL;
        return 0;
    }
    struct as_tls_server_config config = {
        .cert_file = settings->cert_file,
        .key_file = settings->key_file,
        .client_ca_file = settings->client_ca_file,
        .client_auth = (enum as_tls_client_auth)settings->client_auth,
        .allowed_sans = settings->client_allowed_sans,
        .allowed_san_count = settings->client_allowed_san_count,
        .min_version = (enum as_tls_version)(settings->min_version + 1),
        .max_version = (enum as_tls_version)(settings->max_version + 1),
        .ciphers = join(settings->cipher_suites, settings->cipher_suite_count,
                        as_web_tls_find_cipher, &cipher_list),
        .curves = join(settings->curve_preferences, settings->curve_preference_count,
                       as_web_tls_find_curve, &curve_list),
        .prefer_server_ciphers = settings->prefer_server_cipher_suites,
    };
    /* only suites of TLS 1.3: none is left for older versions */
    if (settings->cipher_suite_count > 0 && !config.ciphers)
        config.min_version = AS_TLS_1_3;
    return as_tls_server_new(&config, tls_out, error);
}

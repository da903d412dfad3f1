/*
 * TLS of the server: the certificate of a client, and the settings and files of the server.
 *
 * Invariant: there is always one working context, the last one that could be made. Changed files
 * are first tried in a separate context.
 */
#include <alertscaler/http/tls_server.h>

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

#include "tls.h"

/*
 * The client's certificate: whether it is allowed, and whose name it gives.
 *
 * Names are compared whole, without wild cards: DNS names ignoring case, IP addresses as addresses,
 * e-mail addresses and URIs byte by byte. A name with a control character or a NUL is ignored. The
 * common name alone does not give access.
 */

#define NAME_MAX_SIZE 512

static bool is_name(const char *bytes, size_t size)
{
    if (size == 0 || size >= NAME_MAX_SIZE || !as_str_is_utf8(bytes, size))
        return false;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)bytes[i] < 0x20 || bytes[i] == 0x7f)
            return false;
    return true;
}

/* The name as text, for free(); NULL for other kinds of names. */
static char *print_name(const GENERAL_NAME *name)
{
    char address[INET6_ADDRSTRLEN];
    int type;
    const ASN1_STRING *value = GENERAL_NAME_get0_value(name, &type);
    if (type != GEN_DNS && type != GEN_URI && type != GEN_EMAIL && type != GEN_IPADD)
        return NULL; /* the value of other kinds is not a string */
    const char *bytes = (const char *)ASN1_STRING_get0_data(value);
    size_t size = (size_t)ASN1_STRING_length(value);
    if (type == GEN_IPADD) {
        if ((size != 4 && size != 16) ||
            !inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, address, sizeof(address)))
            return NULL;
        return as_xstrdup(address);
    }
    return is_name(bytes, size) ? as_xstrndup(bytes, size) : NULL;
}

static bool is_same_address(const ASN1_STRING *value, const char *text)
{
    unsigned char parsed[16];
    size_t size = (size_t)ASN1_STRING_length(value);
    return (size == 4 || size == 16) &&
           inet_pton(size == 4 ? AF_INET : AF_INET6, text, parsed) == 1 &&
           memcmp(parsed, ASN1_STRING_get0_data(value), size) == 0;
}

static bool is_same_name(const GENERAL_NAME *name, const char *printed, const char *allowed)
{
    int type;
    const ASN1_STRING *value = GENERAL_NAME_get0_value(name, &type);
    if (type == GEN_IPADD)
        return is_same_address(value, allowed);
    return type == GEN_DNS ? strcasecmp(printed, allowed) == 0 : strcmp(printed, allowed) == 0;
}

/* The first allowed name in the certificate, as spelled in the settings; borrowed, or NULL. */
static const char *find_allowed(const struct as_tls_context *context, const GENERAL_NAMES *names)
{
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        AS_CLEANUP(as_free_p) char *printed = print_name(name);
        for (size_t k = 0; printed && k < context->allowed_san_count; k++)
            if (is_same_name(name, printed, context->allowed_sans[k]))
                return context->allowed_sans[k];
    }
    return NULL;
}

static int verify(X509_STORE_CTX *store, void *user)
{
    const struct as_tls_context *context = user;
    if (context->client_auth >= AS_TLS_CLIENT_VERIFY_IF_GIVEN && X509_verify_cert(store) != 1)
        return 0;
    X509_STORE_CTX_set_error(store, X509_V_OK);
    if (context->allowed_san_count == 0)
        return 1;
    GENERAL_NAMES *names =
        X509_get_ext_d2i(X509_STORE_CTX_get0_cert(store), NID_subject_alt_name, NULL, NULL);
    bool allowed = find_allowed(context, names) != NULL;
    GENERAL_NAMES_free(names);
    if (!allowed)
        X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    return allowed;
}

static void as_tls_context_watch_clients(struct as_tls_context *context)
{
    static const int modes[] = {
        [AS_TLS_CLIENT_NONE] = SSL_VERIFY_NONE,
        [AS_TLS_CLIENT_REQUEST] = SSL_VERIFY_PEER,
        [AS_TLS_CLIENT_REQUIRE_ANY] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
        [AS_TLS_CLIENT_VERIFY_IF_GIVEN] = SSL_VERIFY_PEER,
        [AS_TLS_CLIENT_REQUIRE_AND_VERIFY] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
    };
    SSL_CTX_set_verify(context->ssl, modes[context->client_auth], NULL);
    SSL_CTX_set_cert_verify_callback(context->ssl, verify, context);
}

static char *find_alternative(const GENERAL_NAMES *names)
{
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        int type;
        GENERAL_NAME_get0_value(name, &type);
        char *printed = type == GEN_DNS || type == GEN_URI ? print_name(name) : NULL;
        if (printed)
            return printed;
    }
    return NULL;
}

static char *find_common_name(const X509 *certificate)
{
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at < 0)
        return NULL;
    unsigned char *bytes = NULL;
    int size =
        ASN1_STRING_to_UTF8(&bytes, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    char *name = NULL;
    if (size > 0 && is_name((const char *)bytes, (size_t)size))
        name = as_xstrndup((const char *)bytes, (size_t)size);
    OPENSSL_free(bytes);
    return name;
}

char *as_tls_context_find_name(const struct as_tls_context *context, const SSL *ssl)
{
    X509 *certificate = SSL_get0_peer_certificate(ssl);
    if (!certificate || context->client_auth < AS_TLS_CLIENT_VERIFY_IF_GIVEN ||
        SSL_get_verify_result(ssl) != X509_V_OK)
        return NULL;
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    const char *allowed = find_allowed(context, names);
    char *name = allowed ? as_xstrdup(allowed) : find_alternative(names);
    GENERAL_NAMES_free(names);
    return name ? name : find_common_name(certificate);
}

void as_tls_explain(const SSL *ssl, unsigned long code, char *line_out, size_t size)
{
    long verified = SSL_get_verify_result(ssl);
    const char *reason = ERR_reason_error_string(code);
    if (verified == X509_V_ERR_APPLICATION_VERIFICATION)
        snprintf(line_out, size, "the client's certificate has none of the allowed names");
    else if (verified != X509_V_OK)
        snprintf(line_out, size, "client's certificate: %s",
                 X509_verify_cert_error_string(verified));
    else
        snprintf(line_out, size, "%s", reason ? reason : "the connection was cut");
}

/*
 * Settings and files.
 *
 * A file counts as changed when its inode, size or times change; a moved symbolic link (as in
 * mounted secrets) changes them too.
 *
 * No session resumption, neither by ticket nor by cache: a resumed session would not check the
 * client's certificate again. No renegotiation, no compression.
 */

#define FILE_MAX   ((size_t)1024 * 1024)
#define LOOK_EVERY AS_US_PER_S
#define FILES      3 /* certificate, key, client CAs */

struct as_tls_server {
    struct as_tls_server_config config; /* owns its texts */
    struct as_tls_context *context;
    struct as_file_stamp stamps[FILES];
    int64_t checked_us;
    bool failing; /* the present files cannot be used, and this was logged */
};

static char *copy(const char *text)
{
    return text ? as_xstrdup(text) : NULL;
}

static void free_texts(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)texts[i]);
    free((void *)(uintptr_t)texts);
}

static char **copy_texts(const char *const *texts, size_t count)
{
    char **copies = as_xcalloc(count + 1, sizeof(*copies));
    for (size_t i = 0; i < count; i++)
        copies[i] = as_xstrdup(texts[i]);
    return copies;
}

static struct as_tls_context *new_context(const struct as_tls_server_config *config)
{
    struct as_tls_context *context = as_xcalloc(1, sizeof(*context));
    context->references = 1;
    context->client_auth = config->client_auth;
    context->allowed_sans = copy_texts(config->allowed_sans, config->allowed_san_count);
    context->allowed_san_count = config->allowed_san_count;
    context->ssl = SSL_CTX_new(TLS_server_method());
    if (!context->ssl)
        abort(); /* out of memory */
    return context;
}

struct as_tls_context *as_tls_context_release(struct as_tls_context *context)
{
    if (!context || --context->references > 0)
        return NULL;
    SSL_CTX_free(context->ssl);
    free_texts((const char *const *)context->allowed_sans, context->allowed_san_count);
    free(context);
    return NULL;
}

AS_DEFINE_CLEANUP(struct as_tls_context *, as_tls_context_release)

/* OpenSSL's reason for its last failure. */
static const char *get_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return reason ? reason : "OpenSSL gives no reason";
}

/* The file's bytes as a BIO over *bytes_out; pass *bytes_out to wipe(). */
static int read_file(const char *what, const char *path, char **bytes_out, BIO **bio_out,
                     size_t *size_out, struct as_error *error)
{
    int status = as_file_read(path, FILE_MAX, bytes_out, size_out);
    if (status != 0) {
        as_error_set_errno(error, status, "%s \"%s\"", what, path);
        return status;
    }
    *bio_out = BIO_new_mem_buf(*bytes_out, (int)*size_out);
    if (!*bio_out)
        abort(); /* a small allocation of ours */
    return 0;
}

static void wipe(char *bytes, BIO *bio, size_t size)
{
    BIO_free(bio);
    explicit_bzero(bytes, size);
    free(bytes);
}

static int refuse_password(char *buffer, int size, int writing, void *user)
{
    return -1; /* otherwise OpenSSL would ask on the terminal */
}

/* The leaf and its chain, as `use_certificate_chain_file` does. */
static bool use_chain(SSL_CTX *ssl, BIO *bio)
{
    X509 *certificate = PEM_read_bio_X509_AUX(bio, NULL, refuse_password, NULL);
    if (!certificate)
        return false;
    bool used = SSL_CTX_use_certificate(ssl, certificate) == 1;
    X509_free(certificate);
    while (used && (certificate = PEM_read_bio_X509(bio, NULL, refuse_password, NULL))) {
        used = SSL_CTX_add0_chain_cert(ssl, certificate) == 1;
        if (!used)
            X509_free(certificate);
    }
    if (used && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return false; /* what follows is neither a certificate nor the end */
    ERR_clear_error();
    return used;
}

static bool use_key(SSL_CTX *ssl, BIO *bio)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, refuse_password, NULL);
    bool used = key && SSL_CTX_use_PrivateKey(ssl, key) == 1 && SSL_CTX_check_private_key(ssl) == 1;
    EVP_PKEY_free(key);
    return used;
}

/* PEM from memory. */
static int use_text(SSL_CTX *ssl, const char *what, const char *pem,
                    bool (*use)(SSL_CTX *ssl, BIO *bio), struct as_error *error)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    if (!bio)
        abort(); /* a small allocation of ours */
    const bool is_used = use(ssl, bio);
    if (!is_used)
        as_error_set(error, "%s: %s", what, get_reason());
    BIO_free(bio);
    return is_used ? 0 : -EINVAL;
}

/* Each is trusted by itself, even if it is not a root. */
static bool use_client_cas(SSL_CTX *ssl, BIO *bio)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ssl);
    X509 *certificate;
    unsigned count = 0;
    while ((certificate = PEM_read_bio_X509(bio, NULL, refuse_password, NULL))) {
        bool used = X509_STORE_add_cert(store, certificate) == 1 &&
                    SSL_CTX_add_client_CA(ssl, certificate) == 1;
        X509_free(certificate);
        if (!used)
            return false;
        count++;
    }
    if (count == 0 || ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return false;
    ERR_clear_error();
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    return true;
}

static int use_file(SSL_CTX *ssl, const char *what, const char *path,
                    bool (*use)(SSL_CTX *ssl, BIO *bio), struct as_error *error)
{
    char *bytes;
    BIO *bio;
    size_t size;
    int status = read_file(what, path, &bytes, &bio, &size, error);
    if (status != 0)
        return status;
    if (!use(ssl, bio)) {
        as_error_set(error, "%s \"%s\": %s", what, path, get_reason());
        status = -EINVAL;
    }
    wipe(bytes, bio, size);
    return status;
}

static int load_files(SSL_CTX *ssl, const struct as_tls_server_config *config,
                      struct as_error *error)
{
    ERR_clear_error();
    if (config->cert_pem) {
        const int used = use_text(ssl, "TLS certificate", config->cert_pem, use_chain, error);
        return used != 0 ? used : use_text(ssl, "TLS key", config->key_pem, use_key, error);
    }
    int status = use_file(ssl, "TLS certificate", config->cert_file, use_chain, error);
    if (status == 0)
        status = use_file(ssl, "TLS key", config->key_file, use_key, error);
    if (status == 0 && config->client_ca_file)
        status = use_file(ssl, "TLS client CAs", config->client_ca_file, use_client_cas, error);
    return status;
}

static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_size,
                           const unsigned char *offered, unsigned offered_size, void *user)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *found;
    if (SSL_select_next_proto(&found, chosen_size, ours, sizeof(ours) - 1, offered, offered_size) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

static int use_versions(SSL_CTX *ssl, const struct as_tls_server_config *config,
                        struct as_error *error)
{
    static const int versions[] = {[AS_TLS_1_0] = TLS1_VERSION,
                                   [AS_TLS_1_1] = TLS1_1_VERSION,
                                   [AS_TLS_1_2] = TLS1_2_VERSION,
                                   [AS_TLS_1_3] = TLS1_3_VERSION};
    enum as_tls_version min = config->min_version != AS_TLS_ANY ? config->min_version : AS_TLS_1_2;
    if (config->max_version != AS_TLS_ANY && config->max_version < min) {
        as_error_set(error, "the highest TLS version is lower than the lowest");
        return -EINVAL;
    }
    /* OpenSSL's security levels above 0 refuse SHA-1, which these versions need. */
    if (min < AS_TLS_1_2)
        SSL_CTX_set_security_level(ssl, 0);
    if (SSL_CTX_set_min_proto_version(ssl, versions[min]) != 1 ||
        SSL_CTX_set_max_proto_version(ssl, versions[config->max_version]) != 1) {
        as_error_set(error, "TLS versions: %s", get_reason());
        return -EINVAL;
    }
    return 0;
}

static int use_settings(SSL_CTX *ssl, const struct as_tls_server_config *config,
                        struct as_error *error)
{
    ERR_clear_error();
    /* A peer that only closes the connection is no attack: HTTP says where a message ends. */
    SSL_CTX_set_options(ssl, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (config->prefer_server_ciphers)
        SSL_CTX_set_options(ssl, SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_num_tickets(ssl, 0);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, NULL);
    int status = use_versions(ssl, config, error);
    if (status != 0)
        return status;
    if (config->ciphers && SSL_CTX_set_cipher_list(ssl, config->ciphers) != 1) {
        as_error_set(error, "TLS ciphers \"%s\": %s", config->ciphers, get_reason());
        return -EINVAL;
    }
    if (config->curves && SSL_CTX_set1_groups_list(ssl, config->curves) != 1) {
        as_error_set(error, "TLS curves \"%s\": one of them is unknown", config->curves);
        return -EINVAL;
    }
    return 0;
}

static int make_context(const struct as_tls_server_config *config,
                        struct as_tls_context **context_out, struct as_error *error)
{
    AS_CLEANUP(as_tls_context_release_p) struct as_tls_context *context = new_context(config);
    int status = use_settings(context->ssl, config, error);
    if (status == 0)
        status = load_files(context->ssl, config, error);
    if (status != 0)
        return status;
    as_tls_context_watch_clients(context);
    *context_out = context;
    context = NULL;
    return 0;
}

static void take_stamps(const struct as_tls_server *tls, struct as_file_stamp stamps[FILES])
{
    const char *const paths[FILES] = {tls->config.cert_file, tls->config.key_file,
                                      tls->config.client_ca_file};
    for (size_t i = 0; i < FILES; i++) {
        stamps[i] = (struct as_file_stamp){0};
        if (paths[i] && as_file_stamp_take(paths[i], &stamps[i]) != 0)
            stamps[i].size = -1; /* gone */
    }
}

static bool are_same(const struct as_file_stamp a[FILES], const struct as_file_stamp b[FILES])
{
    bool same = true;
    for (size_t i = 0; i < FILES; i++)
        same &= as_file_stamp_is_same(&a[i], &b[i]);
    return same;
}

/* Files that cannot be used are tried at every check: the reason may not be in their content. */
static void look(struct as_tls_server *tls)
{
    struct as_file_stamp stamps[FILES];
    struct as_error error = AS_ERROR_INIT;
    struct as_tls_context *context;
    take_stamps(tls, stamps);
    if (!tls->failing && are_same(stamps, tls->stamps))
        return;
    memcpy(tls->stamps, stamps, sizeof(stamps));
    if (make_context(&tls->config, &context, &error) != 0) {
        if (!tls->failing)
            as_log(AS_LOG_ERROR, "changed TLS files cannot be used: the old ones stay",
                   AS_F("error", error.text));
        tls->failing = true;
        return;
    }
    as_log(AS_LOG_INFO, "TLS files read again", AS_F("certificate", tls->config.cert_file));
    tls->failing = false;
    as_tls_context_release(tls->context);
    tls->context = context;
}

struct as_tls_context *as_tls_server_take_context(struct as_tls_server *tls, int64_t now_us)
{
    if (tls->config.cert_file && now_us - tls->checked_us >= LOOK_EVERY) {
        tls->checked_us = now_us;
        look(tls);
    }
    tls->context->references++;
    return tls->context;
}

static int check(const struct as_tls_server_config *config, struct as_error *error)
{
    bool verifies = config->client_auth >= AS_TLS_CLIENT_VERIFY_IF_GIVEN;
    const char *problem = NULL;
    if (config->cert_pem ? !config->key_pem
                         : as_str_is_empty(config->cert_file) || as_str_is_empty(config->key_file))
        problem = "a certificate and its key are needed";
    else if (verifies && !config->client_ca_file)
        problem = "client CAs are needed to verify clients' certificates";
    else if (config->client_ca_file && config->client_auth == AS_TLS_CLIENT_NONE)
        problem = "there are client CAs, but clients are not asked for certificates";
    else if (config->allowed_san_count > 0 && config->client_auth == AS_TLS_CLIENT_NONE)
        problem = "there are allowed names, but clients are not asked for certificates";
    if (problem)
        as_error_set(error, "TLS: %s", problem);
    return problem ? -EINVAL : 0;
}

int as_tls_server_new(const struct as_tls_server_config *config, struct as_tls_server **tls_out,
                      struct as_error *error)
{
    int status = check(config, error);
    if (status != 0)
        return status;
    AS_CLEANUP(as_tls_server_free_p)
    struct as_tls_server *tls = as_xcalloc(1, sizeof(*tls));
    tls->config = *config;
    tls->config.cert_file = copy(config->cert_file);
    tls->config.key_file = copy(config->key_file);
    tls->config.client_ca_file = copy(config->client_ca_file);
    tls->config.ciphers = copy(config->ciphers);
    tls->config.curves = copy(config->curves);
    tls->config.allowed_sans =
        (const char *const *)copy_texts(config->allowed_sans, config->allowed_san_count);
    take_stamps(tls, tls->stamps); /* before reading, to find later changes */
    status = make_context(&tls->config, &tls->context, error);
    tls->config.cert_pem = tls->config.key_pem = NULL; /* borrowed */
    if (status != 0)
        return status;
    *tls_out = tls;
    tls = NULL;
    return 0;
}

int64_t as_tls_server_get_expiry(const struct as_tls_server *tls)
{
    const X509 *certificate = SSL_CTX_get0_certificate(tls->context->ssl);
    ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
    int days = 0, seconds = 0;
    const bool is_known =
        certificate && epoch &&
        ASN1_TIME_diff(&days, &seconds, epoch, X509_get0_notAfter(certificate)) == 1;
    ASN1_TIME_free(epoch);
    return is_known ? (int64_t)days * 86400 + seconds : 0;
}

struct as_tls_server *as_tls_server_free(struct as_tls_server *tls)
{
    if (!tls)
        return NULL;
    as_tls_context_release(tls->context);
    const char *const texts[] = {tls->config.cert_file, tls->config.key_file,
                                 tls->config.client_ca_file, tls->config.ciphers,
                                 tls->config.curves};
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        free((void *)(uintptr_t)texts[i]);
    free_texts(tls->config.allowed_sans, tls->config.allowed_san_count);
    free(tls);
    return NULL;
}

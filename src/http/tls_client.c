/*
 * The client's certificate: whether it is allowed, and whose name it gives.
 *
 * Names are compared whole, without wild cards: DNS names ignoring case, IP addresses as addresses,
 * e-mail addresses and URIs byte by byte. A name with a control character or a NUL is ignored. The
 * common name alone does not give access.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "tls.h"

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

void as_tls_context_watch_clients(struct as_tls_context *context)
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

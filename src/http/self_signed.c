/*
 * Certificates of a server that nobody else signs: makes them, and judges those that were made.
 */
#include <alertscaler/http/self_signed.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>

#define EARLIER_S   3600
#define SERIAL_BITS 127
#define NAMES_MAX   ((size_t)8 * 1024)

/* What fails only without memory or random numbers. */
static void self_signed_need(bool is_done)
{
    if (!is_done)
        abort();
}

static void certificate_set_time(ASN1_TIME *time, int64_t seconds)
{
    self_signed_need(ASN1_TIME_set(time, (time_t)seconds) != NULL);
}

static void set_serial(X509 *certificate)
{
    BIGNUM *number = BN_new();
    self_signed_need(number &&
                     BN_rand(number, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
                     BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)));
    BN_free(number);
}

static void self_signed_extend(X509 *certificate, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    self_signed_need(extension && X509_add_ext(certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

static X509 *begin_certificate(EVP_PKEY *key, const char *name, as_wall_time now, int64_t life_us)
{
    X509 *certificate = X509_new();
    const int64_t begin = now.us / AS_US_PER_S - EARLIER_S;
    self_signed_need(certificate && X509_set_version(certificate, X509_VERSION_3) == 1 &&
                     X509_set_pubkey(certificate, key) == 1 &&
                     X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN",
                                                MBSTRING_UTF8, (const unsigned char *)name, -1, -1,
                                                0) == 1);
    set_serial(certificate);
    certificate_set_time(X509_getm_notBefore(certificate), begin);
    certificate_set_time(X509_getm_notAfter(certificate),
                         begin + EARLIER_S + life_us / AS_US_PER_S);
    return certificate;
}

static void self_signed_sign(X509 *certificate, const X509 *issuer, EVP_PKEY *key)
{
    self_signed_need(X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
                     X509_sign(certificate, key, EVP_sha256()) > 0);
}

static bool is_address(const char *name)
{
    unsigned char address[16];
    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

/* "DNS:a,IP:10.0.0.1" */
static char *certificate_print_names(const char *const *names, size_t count)
{
    struct as_buf text = AS_BUF_INIT(NAMES_MAX);
    for (size_t i = 0; i < count; i++)
        as_buf_printf(&text, "%s%s:%s", i > 0 ? "," : "", is_address(names[i]) ? "IP" : "DNS",
                      names[i]);
    as_buf_append_char(&text, '\0');
    self_signed_need(as_buf_check(&text) == 0);
    return as_buf_take(&text, NULL);
}

/* The text of a BIO, which is wiped and freed. */
static char *take_text(BIO *bio)
{
    char *bytes;
    const long size = BIO_get_mem_data(bio, &bytes);
    char *text = as_xstrndup(bytes, (size_t)size);
    explicit_bzero(bytes, (size_t)size);
    BIO_free(bio);
    return text;
}

static char *print_certificate(X509 *certificate)
{
    BIO *bio = BIO_new(BIO_s_mem());
    self_signed_need(bio && PEM_write_bio_X509(bio, certificate) == 1);
    return take_text(bio);
}

static char *print_key(EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_mem());
    self_signed_need(bio && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1);
    return take_text(bio);
}

struct as_self_signed as_self_signed_make(const char *const *names, size_t count, as_wall_time now,
                                          int64_t life_us)
{
    EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
    self_signed_need(ca_key && key);
    AS_CLEANUP(as_free_p) char *alternatives = certificate_print_names(names, count);
    X509 *ca = begin_certificate(ca_key, "alertscaler admission CA", now, life_us);
    self_signed_extend(ca, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
    self_signed_extend(ca, ca, NID_key_usage, "critical,keyCertSign");
    self_signed_extend(ca, ca, NID_subject_key_identifier, "hash");
    self_signed_sign(ca, ca, ca_key);
    X509 *certificate = begin_certificate(key, "alertscaler admission", now, life_us);
    self_signed_extend(certificate, ca, NID_basic_constraints, "critical,CA:FALSE");
    self_signed_extend(certificate, ca, NID_key_usage, "critical,digitalSignature");
    self_signed_extend(certificate, ca, NID_ext_key_usage, "serverAuth");
    self_signed_extend(certificate, ca, NID_authority_key_identifier, "keyid");
    self_signed_extend(certificate, ca, NID_subject_alt_name, alternatives);
    self_signed_sign(certificate, ca, ca_key);
    const struct as_self_signed made = {.ca = print_certificate(ca),
                                        .certificate = print_certificate(certificate),
                                        .key = print_key(key)};
    X509_free(ca);
    X509_free(certificate);
    EVP_PKEY_free(ca_key);
    EVP_PKEY_free(key);
    return made;
}

void as_self_signed_deinit(struct as_self_signed *self_signed)
{
    free(self_signed->ca);
    free(self_signed->certificate);
    if (self_signed->key)
        explicit_bzero(self_signed->key, strlen(self_signed->key));
    free(self_signed->key);
    *self_signed = (struct as_self_signed){NULL};
}

static int answer_no_password(char *buffer, int size, int writing, void *user)
{
    return -1; /* otherwise OpenSSL would ask on the terminal */
}

static X509 *parse_certificate(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    self_signed_need(bio != NULL);
    X509 *certificate = PEM_read_bio_X509(bio, NULL, answer_no_password, NULL);
    BIO_free(bio);
    ERR_clear_error();
    return certificate;
}

static EVP_PKEY *parse_key(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    self_signed_need(bio != NULL);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, answer_no_password, NULL);
    BIO_free(bio);
    ERR_clear_error();
    return key;
}

char *as_self_signed_copy_first(const char *pem)
{
    X509 *certificate = parse_certificate(pem);
    char *first = certificate ? print_certificate(certificate) : NULL;
    X509_free(certificate);
    return first;
}

static bool has_names(X509 *certificate, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int found = is_address(names[i]) ? X509_check_ip_asc(certificate, names[i], 0)
                                               : X509_check_host(certificate, names[i], 0, 0, NULL);
        if (found != 1)
            return false;
    }
    return true;
}

static bool are_fitting(X509 *ca, X509 *certificate, EVP_PKEY *key)
{
    const bool fit = X509_check_private_key(certificate, key) == 1 &&
                     X509_verify(certificate, X509_get0_pubkey(ca)) == 1;
    ERR_clear_error();
    return fit;
}

/* Seconds since `begin`, and from `begin` to the end. */
static bool measure_life(const X509 *certificate, int64_t now, int64_t *age_out, int64_t *life_out)
{
    int days, seconds;
    ASN1_TIME *present = ASN1_TIME_set(NULL, (time_t)now);
    self_signed_need(present != NULL);
    bool is_known = ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(certificate), present) == 1;
    *age_out = is_known ? (int64_t)days * 86400 + seconds : 0;
    is_known = is_known && ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(certificate),
                                          X509_get0_notAfter(certificate)) == 1;
    *life_out = is_known ? (int64_t)days * 86400 + seconds : 0;
    ASN1_TIME_free(present);
    return is_known;
}

enum as_self_signed_state as_self_signed_check(const struct as_self_signed *self_signed,
                                               const char *const *names, size_t count,
                                               as_wall_time now)
{
    if (!self_signed->ca || !self_signed->certificate || !self_signed->key)
        return AS_SELF_SIGNED_BAD;
    enum as_self_signed_state state = AS_SELF_SIGNED_BAD;
    X509 *ca = parse_certificate(self_signed->ca);
    X509 *certificate = parse_certificate(self_signed->certificate);
    EVP_PKEY *key = parse_key(self_signed->key);
    int64_t age, life;
    if (ca && certificate && key && are_fitting(ca, certificate, key) &&
        has_names(certificate, names, count) &&
        measure_life(certificate, now.us / AS_US_PER_S, &age, &life) && age >= 0 && age < life)
        state = age < life / 3 * 2 ? AS_SELF_SIGNED_GOOD : AS_SELF_SIGNED_DUE;
    X509_free(ca);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return state;
}

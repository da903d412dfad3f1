#include "identity.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

static void require(int done)
{
    if (!done)
        abort();
}

static void add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    require(extension && X509_add_ext(certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

static char *take_pem(BIO *bio)
{
    char *bytes;
    long size = BIO_get_mem_data(bio, &bytes);
    char *pem = strndup(bytes, (size_t)size);
    BIO_free(bio);
    return pem;
}

struct identity identity_make(const char *name, const char *alternative,
                              const struct identity *issuer)
{
    static long serial;
    struct identity made = {.key = EVP_EC_gen("P-256"), .certificate = X509_new()};
    X509 *signer = issuer ? issuer->certificate : made.certificate;
    X509_set_version(made.certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(made.certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made.certificate), 3600);
    X509_set_pubkey(made.certificate, made.key);
    if (name)
        X509_NAME_add_entry_by_txt(X509_get_subject_name(made.certificate), "CN", MBSTRING_UTF8,
                                   (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(made.certificate, X509_get_subject_name(signer));
    if (!issuer)
        add_extension(made.certificate, signer, NID_basic_constraints, "critical,CA:TRUE");
    if (alternative)
        add_extension(made.certificate, signer, NID_subject_alt_name, alternative);
    require(X509_sign(made.certificate, issuer ? issuer->key : made.key, EVP_sha256()) > 0);
    BIO *certificate = BIO_new(BIO_s_mem()), *key = BIO_new(BIO_s_mem());
    require(PEM_write_bio_X509(certificate, made.certificate) &&
            PEM_write_bio_PrivateKey(key, made.key, NULL, NULL, 0, NULL, NULL));
    made.certificate_pem = take_pem(certificate);
    made.key_pem = take_pem(key);
    return made;
}

void identity_free(struct identity *identity)
{
    EVP_PKEY_free(identity->key);
    X509_free(identity->certificate);
    free(identity->certificate_pem);
    free(identity->key_pem);
}

/*
 * Keys and certificates for tests, created at run time (P-256, valid for an hour).
 */
#ifndef TESTS_IDENTITY_H
#define TESTS_IDENTITY_H

#include <openssl/x509.h>

struct identity {
    EVP_PKEY *key;
    X509 *certificate;
    char *certificate_pem, *key_pem;
};

/* Signed by `issuer`, or by itself (then it is an authority). `name` is the common name, or NULL;
 * `alternative` as in openssl.cnf ("DNS:a.test,IP:127.0.0.1"), or NULL. */
struct identity identity_make(const char *name, const char *alternative,
                              const struct identity *issuer);
void identity_free(struct identity *identity);

#endif

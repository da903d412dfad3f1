/* Certificates that the server makes for itself: their times, their names, and the chain. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/http/self_signed.h>
#include <alertscaler/http/tls_server.h>

static const char *const names[] = {"hook.ours.svc", "10.0.0.1"};
static const as_wall_time start = {INT64_C(1800000000) * AS_US_PER_S};
static struct as_self_signed made;

static void setup(void)
{
    made = as_self_signed_make(names, AS_ARRAY_SIZE(names), start, AS_SELF_SIGNED_LIFE_US);
}

static void teardown(void)
{
    as_self_signed_deinit(&made);
}

TestSuite(self_signed, .init = setup, .fini = teardown);

static enum as_self_signed_state check_after(int64_t us)
{
    return as_self_signed_check(&made, names, AS_ARRAY_SIZE(names), (as_wall_time){start.us + us});
}

Test(self_signed, it_is_due_after_two_thirds_of_its_time)
{
    cr_assert_eq(check_after(0), AS_SELF_SIGNED_GOOD);
    cr_assert_eq(check_after(-59 * AS_US_PER_MIN), AS_SELF_SIGNED_GOOD, "a clock that is behind");
    cr_assert_eq(check_after(-61 * AS_US_PER_MIN), AS_SELF_SIGNED_BAD);
    cr_assert_eq(check_after(243 * AS_US_PER_DAY), AS_SELF_SIGNED_GOOD);
    cr_assert_eq(check_after(244 * AS_US_PER_DAY), AS_SELF_SIGNED_DUE);
    cr_assert_eq(check_after(364 * AS_US_PER_DAY), AS_SELF_SIGNED_DUE);
    cr_assert_eq(check_after(365 * AS_US_PER_DAY), AS_SELF_SIGNED_BAD);
}

Test(self_signed, other_names_are_not_its_own)
{
    static const char *const others[] = {"ours.svc", "a.hook.ours.svc", "10.0.0.2", "hook.ours",
                                         "::1"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++)
        cr_assert_eq(as_self_signed_check(&made, &others[i], 1, start), AS_SELF_SIGNED_BAD, "%s",
                     others[i]);
}

Test(self_signed, its_parts_must_fit)
{
    struct as_self_signed other =
        as_self_signed_make(names, AS_ARRAY_SIZE(names), start, AS_SELF_SIGNED_LIFE_US);
    const struct as_self_signed mixed[] = {
        {other.ca, made.certificate, made.key},
        {made.ca, other.certificate, made.key},
        {made.ca, made.certificate, other.key},
        {NULL, made.certificate, made.key},
        {made.ca, NULL, made.key},
        {made.ca, made.certificate, NULL},
        {made.key, made.certificate, made.key},
        {made.ca, made.key, made.key},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(mixed); i++)
        cr_assert_eq(as_self_signed_check(&mixed[i], NULL, 0, start), AS_SELF_SIGNED_BAD, "%zu", i);
    as_self_signed_deinit(&other);
}

static X509 *parse(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    cr_assert(certificate);
    return certificate;
}

/* As a client verifies a server. */
Test(self_signed, a_client_that_trusts_the_authority_accepts_it)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    X509 *ca = parse(made.ca), *certificate = parse(made.certificate);
    X509_STORE_add_cert(store, ca);
    X509_STORE_CTX_init(context, store, certificate, NULL);
    X509_VERIFY_PARAM *wanted = X509_STORE_CTX_get0_param(context);
    X509_VERIFY_PARAM_set_time(wanted, (time_t)(start.us / AS_US_PER_S));
    X509_VERIFY_PARAM_set_purpose(wanted, X509_PURPOSE_SSL_SERVER);
    X509_VERIFY_PARAM_set1_host(wanted, names[0], 0);
    X509_VERIFY_PARAM_set_flags(wanted, X509_V_FLAG_X509_STRICT);
    cr_assert_eq(X509_verify_cert(context), 1, "%s",
                 X509_verify_cert_error_string(X509_STORE_CTX_get_error(context)));
    cr_assert_eq(X509_check_ca(certificate), 0);
    cr_assert_eq(EVP_PKEY_get_bits(X509_get0_pubkey(certificate)), 256);
    X509_free(ca);
    X509_free(certificate);
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
}

Test(self_signed, the_first_of_several_is_copied)
{
    AS_CLEANUP(as_free_p) char *both = as_xasprintf("%s%s", made.ca, made.certificate);
    AS_CLEANUP(as_free_p) char *first = as_self_signed_copy_first(both);
    cr_assert_str_eq(first, made.ca);
    cr_assert_null(as_self_signed_copy_first("no certificate"));
}

Test(self_signed, the_server_takes_it_from_memory)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_tls_server *tls = NULL;
    const struct as_tls_server_config good = {.cert_pem = made.certificate, .key_pem = made.key};
    cr_assert_eq(as_tls_server_new(&good, &tls, &error), 0, "%s", error.text);
    cr_assert_eq(as_tls_server_get_expiry(tls), (start.us + AS_SELF_SIGNED_LIFE_US) / AS_US_PER_S);
    as_tls_server_free(tls);
    const struct as_tls_server_config mixed = {.cert_pem = made.ca, .key_pem = made.key};
    cr_assert_lt(as_tls_server_new(&mixed, &tls, &error), 0);
    cr_assert(strstr(error.text, "TLS key: "), "%s", error.text);
    cr_assert_null(strstr(error.text, "PRIVATE"));
    const struct as_tls_server_config no_key = {.cert_pem = made.certificate};
    cr_assert_lt(as_tls_server_new(&no_key, &tls, &error), 0);
}

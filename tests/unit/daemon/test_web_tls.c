/*
 * Each TLS word of the web configuration has a name that OpenSSL knows.
 */
#include <alertscaler/daemon/web_tls.h>

#include <criterion/criterion.h>
#include <openssl/ssl.h>
#include <string.h>

Test(web_tls, every_cipher_suite_is_openssls)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    size_t count = 0;
    for (const char *const *word = as_web_cipher_words; *word; word++) {
        const char *name = as_web_tls_find_cipher(*word);
        const bool is_newest = !strstr(*word, "_WITH_");
        cr_expect_eq(name == NULL, is_newest, "%s", *word);
        if (!name)
            continue;
        count++;
        cr_expect_eq(SSL_CTX_set_cipher_list(context, name), 1, "%s", name);
        const SSL_CIPHER *cipher = NULL;
        STACK_OF(SSL_CIPHER) *list = SSL_CTX_get_ciphers(context);
        for (int i = 0; i < sk_SSL_CIPHER_num(list); i++) {
            if (strcmp(SSL_CIPHER_get_name(sk_SSL_CIPHER_value(list, i)), name) == 0)
                cipher = sk_SSL_CIPHER_value(list, i);
        }
        /* the standard's name, which is Go's but for two that Go shortened */
        cr_assert(cipher, "%s", name);
        cr_expect_eq(strncmp(SSL_CIPHER_standard_name(cipher), *word, strlen(*word)), 0, "%s: %s",
                     *word, SSL_CIPHER_standard_name(cipher));
    }
    cr_expect_eq(count, 14);
    SSL_CTX_free(context);
}

Test(web_tls, every_curve_is_openssls)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    for (const char *const *word = as_web_curve_words; *word; word++) {
        const char *name = as_web_tls_find_curve(*word);
        cr_assert(name, "%s", *word);
        cr_expect_eq(SSL_CTX_set1_curves_list(context, name), 1, "%s", name);
    }
    SSL_CTX_free(context);
}

Test(web_tls, the_words_are_in_the_order_of_what_they_become)
{
    cr_expect_str_eq(as_web_client_auth_words[AS_TLS_CLIENT_NONE], "NoClientCert");
    cr_expect_str_eq(as_web_client_auth_words[AS_TLS_CLIENT_REQUEST], "RequestClientCert");
    cr_expect_str_eq(as_web_client_auth_words[AS_TLS_CLIENT_REQUIRE_ANY], "RequireAnyClientCert");
    cr_expect_str_eq(as_web_client_auth_words[AS_TLS_CLIENT_VERIFY_IF_GIVEN],
                     "VerifyClientCertIfGiven");
    cr_expect_str_eq(as_web_client_auth_words[AS_TLS_CLIENT_REQUIRE_AND_VERIFY],
                     "RequireAndVerifyClientCert");
    cr_expect_str_eq(as_web_version_words[AS_TLS_1_0 - 1], "TLS10");
    cr_expect_str_eq(as_web_version_words[AS_TLS_1_3 - 1], "TLS13");
}

Test(web_tls, without_its_part_there_is_no_tls)
{
    struct as_tls_server *tls = (struct as_tls_server *)&tls;
    cr_assert_eq(as_web_tls_new(&(struct as_web_tls_settings){0}, &tls, NULL), 0);
    cr_expect_null(tls);
}

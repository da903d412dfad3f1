/*
 * The HTTP client over TLS, against OpenSSL. Promises: it only talks to servers with a valid
 * certificate for the requested name; certificates come from files or memory; a failed handshake
 * counts as unreachable, because nothing was sent.
 */
#include <alertscaler/http/client.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <openssl/ssl.h>

#include "../../support/identity.h"
#include "http/connection.h"

#define WAIT_MS 10000

static struct identity authority, stranger, server_identity, client_identity;

static struct event_base *base;
static struct as_http_client *client;
static SSL_CTX *tls;
static struct evconnlistener *listener;
static uint16_t port;
static char seen_request[2048], seen_name[64], seen_protocols[64];
static unsigned accepts;

static void on_event(struct bufferevent *stream, short what, void *context)
{
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        bufferevent_free(stream);
}

/* Answers with the common name in the client's certificate. */
static void on_read(struct bufferevent *stream, void *context)
{
    struct evbuffer *input = bufferevent_get_input(stream);
    if (evbuffer_search(input, "\r\n\r\n", 4, NULL).pos < 0)
        return;
    int size = evbuffer_remove(input, seen_request, sizeof(seen_request) - 1);
    seen_request[size > 0 ? size : 0] = '\0';
    SSL *ssl = bufferevent_openssl_get_ssl(stream);
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    snprintf(seen_name, sizeof(seen_name), "%s", name ? name : "");
    char peer[64] = "";
    X509 *certificate = SSL_get1_peer_certificate(ssl);
    if (certificate)
        X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, peer,
                                  sizeof(peer));
    X509_free(certificate);
    evbuffer_add_printf(bufferevent_get_output(stream),
                        "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(peer), peer);
}

static void on_accept(struct evconnlistener *from, evutil_socket_t fd, struct sockaddr *peer,
                      int peer_size, void *context)
{
    struct bufferevent *stream = bufferevent_openssl_socket_new(
        base, fd, SSL_new(tls), BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
    accepts++;
    bufferevent_setcb(stream, on_read, NULL, on_event, NULL);
    bufferevent_enable(stream, EV_READ | EV_WRITE);
}

static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_size,
                           const unsigned char *offered, unsigned offered_size, void *context)
{
    size_t at = 0;
    for (unsigned i = 0; i < offered_size; i += offered[i] + 1u)
        at += (size_t)snprintf(seen_protocols + at, sizeof(seen_protocols) - at, "%.*s ",
                               offered[i], (const char *)offered + i + 1);
    *chosen = (const unsigned char *)"http/1.1";
    *chosen_size = 8;
    return SSL_TLSEXT_ERR_OK;
}

static void start_all(void)
{
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    authority = identity_make("authority", NULL, NULL);
    stranger = identity_make("stranger", NULL, NULL);
    server_identity = identity_make("server", "DNS:server.test,DNS:localhost", &authority);
    client_identity = identity_make("someone", NULL, &authority);
    tls = SSL_CTX_new(TLS_server_method());
    cr_assert(SSL_CTX_use_certificate(tls, server_identity.certificate) == 1 &&
              SSL_CTX_use_PrivateKey(tls, server_identity.key) == 1);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(tls), authority.certificate);
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_alpn_select_cb(tls, choose_protocol, NULL);
    base = event_base_new();
    evutil_socket_t fd;
    cr_assert_eq(as_http_listen("127.0.0.1:0", &fd, &port, NULL), 0);
    listener = evconnlistener_new(base, on_accept, NULL, LEV_OPT_CLOSE_ON_FREE, -1, fd);
    client = as_http_client_new(base, NULL, NULL);
}

static void stop_all(void)
{
    as_http_client_free(client);
    evconnlistener_free(listener);
    for (int i = 0; i < 50; i++, poll(NULL, 0, 1)) /* the server's connections see the end and go */
        event_base_loop(base, EVLOOP_NONBLOCK);
    event_base_free(base);
    SSL_CTX_free(tls);
    struct identity *all[] = {&authority, &stranger, &server_identity, &client_identity};
    for (size_t i = 0; i < AS_ARRAY_SIZE(all); i++)
        identity_free(all[i]);
}

TestSuite(client_tls, .init = start_all, .fini = stop_all);

struct result {
    unsigned count;
    enum as_http_outcome outcome;
    int status;
    char body[64], error[256];
};

static void on_done(void *context, const struct as_http_response *response)
{
    struct result *result = context;
    result->count++;
    result->outcome = response->outcome;
    result->status = response->status;
    snprintf(result->body, sizeof(result->body), "%s", response->body);
    snprintf(result->error, sizeof(result->error), "%s", response->error);
}

static struct result fetch(const char *host, const struct as_http_tls *settings)
{
    char url[128];
    snprintf(url, sizeof(url), "https://%s:%u/x?y", host, port);
    struct as_http *http = as_http_client_get_port(client);
    struct as_http_request request = {
        .method = "GET", .url = url, .timeout_us = 5000000, .max_response = 1000, .tls = *settings};
    struct result result = {0};
    cr_assert_not_null(http->start(http, &request, on_done, &result));
    for (int64_t end = as_http_server_now() + WAIT_MS * 1000;
         result.count == 0 && as_http_server_now() < end; poll(NULL, 0, 1))
        event_base_loop(base, EVLOOP_NONBLOCK);
    cr_assert_eq(result.count, 1);
    return result;
}

static void expect_answer(const char *host, const struct as_http_tls *settings, const char *body)
{
    struct result result = fetch(host, settings);
    cr_assert_eq(result.outcome, AS_HTTP_ANSWERED, "%s", result.error);
    cr_assert_eq(result.status, 200);
    cr_assert_str_eq(result.body, body);
}

static void expect_unreachable(const char *host, const struct as_http_tls *settings,
                               const char *part_of_error)
{
    struct result result = fetch(host, settings);
    cr_assert_eq(result.outcome, AS_HTTP_UNREACHABLE, "%d %s", result.outcome, result.error);
    cr_assert(strstr(result.error, part_of_error), "%s", result.error);
    cr_assert_str_eq(seen_request, "", "nothing was sent");
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

Test(client_tls, trusts_the_authority_it_is_given)
{
    expect_answer("localhost", &(struct as_http_tls){.ca_pem = authority.certificate_pem}, "");
    cr_assert_str_eq(seen_name, "localhost");
    cr_assert_str_eq(seen_protocols, "h2 http/1.1 ");
}

Test(client_tls, trusts_nobody_else)
{
    expect_unreachable("localhost", &(struct as_http_tls){0}, "certificate");
    expect_unreachable("localhost", &(struct as_http_tls){.ca_pem = stranger.certificate_pem},
                       "certificate");
    expect_unreachable("localhost", &(struct as_http_tls){.ca_file = "/nonexistent/ca.pem"},
                       "/nonexistent/ca.pem");
    expect_unreachable("localhost", &(struct as_http_tls){.ca_pem = "no certificate"}, "");
}

Test(client_tls, insists_on_the_name)
{
    struct as_http_tls settings = {.ca_pem = authority.certificate_pem};
    expect_unreachable("127.0.0.1", &settings, "127.0.0.1");
    settings.server_name = "other.test";
    expect_unreachable("localhost", &settings, "other.test");
}

/* kubeconfig's tls-server-name: another name for TLS alone. */
Test(client_tls, can_ask_for_another_name)
{
    struct as_http_tls settings = {.ca_pem = authority.certificate_pem,
                                   .server_name = "server.test"};
    expect_answer("127.0.0.1", &settings, "");
    cr_assert_str_eq(seen_name, "server.test");
    char expected[64];
    snprintf(expected, sizeof(expected), "\r\nHost: 127.0.0.1:%u\r\n", port);
    cr_assert(strstr(seen_request, expected), "%s", seen_request);
    cr_assert(strncmp(seen_request, "GET /x?y HTTP/1.1\r\n", 19) == 0, "%s", seen_request);
}

Test(client_tls, verifies_nothing_when_told_so)
{
    expect_answer("127.0.0.1", &(struct as_http_tls){.insecure_skip_verify = true}, "");
}

Test(client_tls, shows_its_own_certificate)
{
    struct as_http_tls settings = {.ca_pem = authority.certificate_pem,
                                   .cert_pem = client_identity.certificate_pem,
                                   .key_pem = client_identity.key_pem};
    expect_answer("localhost", &settings, "someone");
    settings.cert_pem = settings.key_pem = NULL;
    expect_answer("localhost", &settings, ""); /* and not over that other connection */
}

Test(client_tls, shows_its_own_certificate_from_files)
{
    char folder[] = "/tmp/test_client_tls_XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    char ca[64], certificate[64], key[64];
    snprintf(ca, sizeof(ca), "%s/ca", folder);
    snprintf(certificate, sizeof(certificate), "%s/certificate", folder);
    snprintf(key, sizeof(key), "%s/key", folder);
    write_file(ca, authority.certificate_pem);
    write_file(certificate, client_identity.certificate_pem);
    write_file(key, client_identity.key_pem);
    const struct as_http_tls settings = {.ca_file = ca, .cert_file = certificate, .key_file = key};
    expect_answer("localhost", &settings, "someone");
    unlink(ca);
    unlink(certificate);
    unlink(key);
    rmdir(folder);
}

Test(client_tls, reads_a_changed_authority_at_the_next_connection)
{
    char ca[] = "/tmp/test_client_tls_XXXXXX";
    close(mkstemp(ca));
    const struct as_http_tls settings = {.ca_file = ca};
    write_file(ca, stranger.certificate_pem);
    expect_unreachable("localhost", &settings, "certificate");
    write_file(ca, authority.certificate_pem);
    expect_answer("localhost", &settings, "");
    unlink(ca);
}

Test(client_tls, uses_no_connection_with_an_earlier_certificate)
{
    char certificate[] = "/tmp/test_client_tls_XXXXXX", key[] = "/tmp/test_client_tls_XXXXXX";
    close(mkstemp(certificate));
    close(mkstemp(key));
    const struct as_http_tls settings = {
        .ca_pem = authority.certificate_pem, .cert_file = certificate, .key_file = key};
    write_file(certificate, client_identity.certificate_pem);
    write_file(key, client_identity.key_pem);
    expect_answer("localhost", &settings, "someone");
    write_file(certificate, ""); /* the first half of a rotation */
    seen_request[0] = '\0';
    expect_unreachable("localhost", &settings, "is empty");
    unlink(certificate);
    unlink(key);
}

/* Curl would wait in the loop until somebody writes into the pipe. */
Test(client_tls, waits_for_no_pipe)
{
    char pipe[] = "/tmp/test_client_tls_XXXXXX";
    close(mkstemp(pipe));
    unlink(pipe);
    cr_assert_eq(mkfifo(pipe, 0600), 0);
    alarm(60);
    const struct as_http_tls settings[] = {
        {.ca_file = pipe},
        {.ca_pem = authority.certificate_pem,
         .cert_file = pipe,
         .key_pem = client_identity.key_pem},
        {.ca_pem = authority.certificate_pem,
         .cert_pem = client_identity.certificate_pem,
         .key_file = pipe},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(settings); i++)
        expect_unreachable("localhost", &settings[i], "not a regular file");
    unlink(pipe);
}

Test(client_tls, refuses_old_protocols)
{
    SSL_CTX_set_cipher_list(tls, "ALL:@SECLEVEL=0");
    SSL_CTX_set_min_proto_version(tls, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(tls, TLS1_1_VERSION);
    expect_unreachable("localhost", &(struct as_http_tls){.ca_pem = authority.certificate_pem}, "");
}

Test(client_tls, keeps_connections)
{
    for (int i = 0; i < 3; i++)
        expect_answer("localhost", &(struct as_http_tls){.ca_pem = authority.certificate_pem}, "");
    cr_assert_eq(accepts, 1);
}

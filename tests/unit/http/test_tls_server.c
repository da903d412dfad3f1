/*
 * TLS in the HTTP server, with OpenSSL as its peer. Promises: only clients that the settings allow
 * are accepted, with their names; changed certificates are read again, and bad new ones leave the
 * old in use; handshakes end in time, and failed ones do not flood the log; HTTP works the same
 * over TLS.
 */
#include <alertscaler/http/tls_server.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <event2/event.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>

#include <alertscaler/base/log.h>
#include <alertscaler/base/time.h>
#include <alertscaler/http/server.h>

#include "../../support/identity.h"
#include "http/connection.h"

#define WAIT_MS  10000
#define BIG_SIZE ((size_t)4 * 1024 * 1024)
#define HOST     "Host: a\r\n"
#define GET      "GET /who HTTP/1.1\r\n" HOST "\r\n"

static struct identity authority, stranger, first, second;
static char folder[] = "/tmp/test_tls_server_XXXXXX";
static char cert_file[64], key_file[64], ca_file[64], log_file[64];
static struct event_base *base;
static struct as_http_server *server;
static struct as_tls_server *tls;
static char *big;
static bool refuses_memory;           /* to libevent, once */
static struct as_http_exchange *kept; /* by /later */
static unsigned char secret[32];      /* of the last peer whose keys are told: what it sends */

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void put_identity(const struct identity *identity)
{
    write_text(cert_file, identity->certificate_pem);
    write_text(key_file, identity->key_pem);
}

static unsigned count_in_log(const char *text)
{
    static char bytes[65536];
    int fd = open(log_file, O_RDONLY);
    ssize_t size = read(fd, bytes, sizeof(bytes) - 1);
    close(fd);
    bytes[size > 0 ? size : 0] = '\0';
    unsigned count = 0;
    for (const char *at = bytes; (at = strstr(at, text)); at++)
        count++;
    return count;
}

static enum as_http_admission admit(void *context, struct as_http_exchange *exchange)
{
    return AS_HTTP_ADMITTED;
}

static void handle(void *context, struct as_http_exchange *exchange)
{
    size_t size;
    const char *sent = as_http_exchange_get_body(exchange, &size);
    struct as_http_answer answer = {.status = 200, .body = sent, .body_size = size};
    if (strcmp(as_http_exchange_get_path(exchange), "/who") == 0) {
        const char *name = as_http_exchange_find_client_name(exchange);
        answer.body = name ? name : "nobody";
        answer.body_size = strlen(answer.body);
    }
    if (strcmp(as_http_exchange_get_path(exchange), "/later") == 0)
        kept = exchange;
    else
        as_http_exchange_reply(exchange, &answer);
}

static void make_path(char path[64], const char *name)
{
    snprintf(path, 64, "%s/%s", folder, name);
}

static bool is_refused(void)
{
    const bool refused = refuses_memory;
    refuses_memory = false;
    return refused;
}

static void *allocate(size_t size)
{
    return is_refused() ? NULL : malloc(size);
}

static void *reallocate(void *memory, size_t size)
{
    return is_refused() ? NULL : realloc(memory, size);
}

static void set_up(void)
{
    event_set_mem_functions(allocate, reallocate, free);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    authority = identity_make("authority", NULL, NULL);
    stranger = identity_make("stranger", NULL, NULL);
    first = identity_make("first", "DNS:localhost", &authority);
    second = identity_make("second", "DNS:localhost", &authority);
    cr_assert_not_null(mkdtemp(folder));
    make_path(cert_file, "cert");
    make_path(key_file, "key");
    make_path(ca_file, "ca");
    make_path(log_file, "log");
    put_identity(&first);
    write_text(ca_file, authority.certificate_pem);
    as_log_configure(AS_LOG_INFO, AS_LOG_LOGFMT,
                     open(log_file, O_WRONLY | O_CREAT | O_APPEND, 0600));
    base = event_base_new();
    big = malloc(BIG_SIZE);
    for (size_t i = 0; i < BIG_SIZE; i++)
        big[i] = (char)('a' + i % 23);
}

static void tear_down(void)
{
    server = as_http_server_free(server);
    tls = as_tls_server_free(tls);
    event_base_loop(base, EVLOOP_NONBLOCK); /* streams end in it */
    event_base_free(base);
    free(big);
    struct identity *const all[] = {&authority, &stranger, &first, &second};
    for (size_t i = 0; i < AS_ARRAY_SIZE(all); i++)
        identity_free(all[i]);
    const char *const files[] = {cert_file, key_file, ca_file, log_file};
    for (size_t i = 0; i < AS_ARRAY_SIZE(files); i++)
        unlink(files[i]);
    rmdir(folder);
}

TestSuite(tls_server, .init = set_up, .fini = tear_down);

static struct as_tls_server *make_tls(struct as_tls_server_config config)
{
    struct as_tls_server *made;
    struct as_error error = AS_ERROR_INIT;
    config.cert_file = cert_file;
    config.key_file = key_file;
    cr_assert_eq(as_tls_server_new(&config, &made, &error), 0, "%s", error.text);
    return made;
}

static void start_with(struct as_tls_server_config settings, struct as_http_server_config config)
{
    static const struct as_http_handler handler = {.admit = admit, .handle = handle};
    struct as_error error = AS_ERROR_INIT;
    tls = make_tls(settings);
    config.listen_address = "127.0.0.1:0";
    config.tls = tls;
    cr_assert_eq(as_http_server_new(base, &config, &handler, &server, &error), 0, "%s", error.text);
}

static void start(struct as_tls_server_config settings)
{
    start_with(settings, as_http_server_config_default);
}

/* As the only ones in most tests: the client's side is plain OpenSSL. */
struct peer {
    int fd;
    SSL_CTX *context;
    SSL *ssl;
    bool shaken;
    unsigned records;  /* that hear has read */
    char ahead[65536]; /* what came behind the last answer */
    size_t ahead_size;
};

static int64_t now_ms(void)
{
    return as_http_server_now() / 1000;
}

static void turn(void)
{
    event_base_loop(base, EVLOOP_NONBLOCK);
}

static void run_for(int ms)
{
    for (int64_t end = now_ms() + ms; now_ms() < end; poll(NULL, 0, 1))
        turn();
}

static int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(as_http_server_get_port(server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static struct peer make_peer(const struct identity *identity)
{
    struct peer peer = {.fd = dial(), .context = SSL_CTX_new(TLS_client_method())};
    SSL_CTX_set_security_level(peer.context, 0); /* for the old versions */
    SSL_CTX_set_min_proto_version(peer.context, TLS1_VERSION);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(peer.context), authority.certificate);
    SSL_CTX_set_verify(peer.context, SSL_VERIFY_PEER, NULL);
    if (identity)
        cr_assert(SSL_CTX_use_certificate(peer.context, identity->certificate) == 1 &&
                  SSL_CTX_use_PrivateKey(peer.context, identity->key) == 1);
    return peer;
}

/* One call of OpenSSL's until it does not ask to wait. */
#define DO(peer, call)                                                                             \
    ({                                                                                             \
        int did = -1;                                                                              \
        for (int64_t until = now_ms() + WAIT_MS; now_ms() < until; poll(NULL, 0, 1)) {             \
            ERR_clear_error();                                                                     \
            did = (call);                                                                          \
            int why = SSL_get_error((peer)->ssl, did);                                             \
            if (did > 0 || (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE))            \
                break;                                                                             \
            turn();                                                                                \
        }                                                                                          \
        did;                                                                                       \
    })

static bool shake(struct peer *peer)
{
    peer->ssl = SSL_new(peer->context);
    SSL_set_fd(peer->ssl, peer->fd);
    SSL_set1_host(peer->ssl, "localhost");
    SSL_set_tlsext_host_name(peer->ssl, "localhost");
    return DO(peer, SSL_connect(peer->ssl)) == 1;
}

static bool say(struct peer *peer, const char *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        int sent = DO(peer, SSL_write(peer->ssl, bytes + at, (int)(size - at)));
        if (sent <= 0)
            return false;
        at += (size_t)sent;
    }
    return true;
}

/* An answer, and how many bytes its body had; -1: there was none. `body_out` gets its beginning. */
static long hear(struct peer *peer, char head[1024], char body_out[256])
{
    static char bytes[BIG_SIZE + 4096];
    size_t size = peer->ahead_size, wanted = 0;
    char *end = NULL;
    memcpy(bytes, peer->ahead, size);
    for (bool has_read = size > 0; !end || size < wanted; has_read = false) {
        size_t room = sizeof(bytes) - 1 - size;
        int got =
            has_read
                ? 0
                : DO(peer, SSL_read(peer->ssl, bytes + size, (int)(room < 65536 ? room : 65536)));
        if (!has_read && got <= 0)
            return -1;
        peer->records += !has_read;
        size += (size_t)got;
        bytes[size] = '\0';
        if (!end && (end = strstr(bytes, "\r\n\r\n"))) {
            const char *length = strstr(bytes, "Content-Length: ");
            cr_assert(length && length < end);
            wanted = (size_t)(end + 4 - bytes) + strtoul(length + 16, NULL, 10);
        }
    }
    peer->ahead_size = size - wanted;
    cr_assert(peer->ahead_size <= sizeof(peer->ahead));
    memcpy(peer->ahead, bytes + wanted, peer->ahead_size);
    size_t body = wanted - (size_t)(end + 4 - bytes);
    if (body == BIG_SIZE)
        cr_assert(memcmp(end + 4, big, BIG_SIZE) == 0);
    snprintf(body_out, 256, "%.*s", (int)(body < 255 ? body : 255), end + 4);
    end[2] = '\0';
    snprintf(head, 1024, "%.1023s", bytes);
    return (long)body;
}

static void hang_up(struct peer *peer)
{
    SSL_free(peer->ssl);
    SSL_CTX_free(peer->context);
    close(peer->fd);
}

/* Whom the server takes this peer for; NULL: it is not let in. For free(). TLS 1.3 tells the client
 * only after the handshake, so that a request has to be tried. */
static char *ask_who(struct peer *peer)
{
    char head[1024], body[256];
    bool answered = shake(peer) && say(peer, GET, strlen(GET)) && hear(peer, head, body) >= 0;
    hang_up(peer);
    return answered ? strdup(body) : NULL;
}

static void expect_who(const struct identity *identity, const char *expected)
{
    struct peer peer = make_peer(identity);
    char *who = ask_who(&peer);
    cr_assert(expected ? who && strcmp(who, expected) == 0 : !who, "%s instead of %s",
              who ? who : "refused", expected ? expected : "refused");
    free(who);
}

/* The common name of the certificate that the server shows. */
static void expect_server(const char *name)
{
    struct peer peer = make_peer(NULL);
    char shown[64] = "";
    if (shake(&peer))
        X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_get0_peer_certificate(peer.ssl)),
                                  NID_commonName, shown, sizeof(shown));
    hang_up(&peer);
    run_for(5);
    cr_assert_str_eq(shown, name);
}

Test(tls_server, carries_http)
{
    start((struct as_tls_server_config){0});
    struct peer peer = make_peer(NULL);
    SSL_CTX_set_alpn_protos(peer.context, (const unsigned char *)"\x02h2\x08http/1.1", 12);
    cr_assert(shake(&peer));
    const unsigned char *protocol;
    unsigned size;
    SSL_get0_alpn_selected(peer.ssl, &protocol, &size);
    cr_assert(size == 8 && memcmp(protocol, "http/1.1", 8) == 0);
    char request[128], head[1024], body[256];
    snprintf(request, sizeof(request), "POST / HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n",
             BIG_SIZE);
    for (int i = 0; i < 2; i++) {
        cr_assert(say(&peer, request, strlen(request)) && say(&peer, big, BIG_SIZE));
        cr_assert_eq(hear(&peer, head, body), (long)BIG_SIZE);
    }
    cr_assert(say(&peer, GET GET, 2 * strlen(GET)), "pipelined, in one record");
    peer.records = 0;
    for (int i = 0; i < 2; i++)
        cr_assert_eq(hear(&peer, head, body), 6);
    cr_assert_eq(peer.records, 1, "answered in one");
    cr_assert(!strcasestr(head, "\r\nserver:"), "%s", head);
    cr_assert_str_eq(body, "nobody");
    static const char chunked[] =
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for (size_t i = 0; i < sizeof(chunked) - 1; i++) /* a record each byte */
        cr_assert(say(&peer, chunked + i, 1));
    cr_assert_eq(hear(&peer, head, body), 3);
    cr_assert_str_eq(body, "abc");
    hang_up(&peer);
}

/* OpenSSL has it, and the kernel does not tell of it. */
Test(tls_server, hears_what_is_left_of_a_record)
{
    static char both[20000];
    char head[1024], body[256];
    start((struct as_tls_server_config){0});
    struct peer peer = make_peer(NULL);
    cr_assert(shake(&peer));
    for (size_t size = 1; size < sizeof(both) - 200; size += size < 16000 ? 5333 : 37) {
        int at = snprintf(both, sizeof(both),
                          "POST / HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n", size);
        memset(both + at, 'x', size);
        memcpy(both + at + size, GET, strlen(GET));
        cr_assert(say(&peer, both, (size_t)at + size + strlen(GET)));
        cr_assert_eq(hear(&peer, head, body), (long)size);
        cr_assert_eq(hear(&peer, head, body), 6, "behind a body of %zu", size);
    }
    hang_up(&peer);
}

/* Both ends say when they are done; but HTTP knows too, so that a peer need not. */
Test(tls_server, ends_connections_cleanly)
{
    start((struct as_tls_server_config){0});
    char head[1024], body[256];
    static const char last[] = "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n";
    static const char bad[] = "GET / HTTP/1.1\r\nbad\r\n\r\nand more that is never read";
    const char *const requests[] = {last, bad};
    for (size_t i = 0; i < 2; i++) {
        struct peer peer = make_peer(NULL);
        cr_assert(shake(&peer) && say(&peer, requests[i], strlen(requests[i])));
        cr_assert(hear(&peer, head, body) >= 0);
        char byte;
        int got = DO(&peer, SSL_read(peer.ssl, &byte, 1));
        cr_assert_eq(SSL_get_error(peer.ssl, got), SSL_ERROR_ZERO_RETURN);
        hang_up(&peer);
    }
    struct peer peer = make_peer(NULL);
    cr_assert(shake(&peer) && say(&peer, GET, strlen(GET)));
    shutdown(peer.fd, SHUT_WR); /* without close_notify */
    cr_assert_eq(hear(&peer, head, body), 6);
    hang_up(&peer);
    run_for(20);
    cr_assert_eq(as_http_server_get_connections(server), 0);
    cr_assert_eq(count_in_log("TLS"), 0);
}

/* In several records that are there at once, and the peer's end behind them. */
Test(tls_server, answers_a_peer_that_ends_right_behind_its_request)
{
    start((struct as_tls_server_config){0});
    char head[1024], body[256], request[256];
    for (size_t i = 0; i < 60; i++) {
        const size_t sizes[] = {1 + i * 157 % 5000, 1 + i * 1009 % 5000, 1 + i * 311 % 3000};
        const size_t size = sizes[0] + sizes[1] + sizes[2];
        struct peer peer = make_peer(NULL);
        cr_assert(shake(&peer));
        run_for(1);
        snprintf(request, sizeof(request), "POST / HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n",
                 size);
        cr_assert(say(&peer, request, strlen(request)));
        for (size_t k = 0; k < AS_ARRAY_SIZE(sizes); k++)
            cr_assert_eq(SSL_write(peer.ssl, big, (int)sizes[k]), (int)sizes[k]);
        cr_assert_eq(SSL_shutdown(peer.ssl), 0);
        cr_assert_eq(hear(&peer, head, body), (long)size);
        hang_up(&peer);
    }
}

static void on_key(const SSL *ssl, const char *line)
{
    static const char name[] = "CLIENT_TRAFFIC_SECRET_0 ";
    const char *hex = strrchr(line, ' ') + 1;
    if (strncmp(line, name, strlen(name)) != 0)
        return;
    for (size_t i = 0; i < sizeof(secret); i++)
        cr_assert_eq(sscanf(hex + 2 * i, "%2hhx", &secret[i]), 1);
}

/* HKDF-Expand-Label of RFC 8446, 7.1. */
static void derive(const char *label, unsigned char *out, unsigned char size)
{
    unsigned char info[32] = {0, size, (unsigned char)(6 + strlen(label))}, all[32];
    const int length = snprintf((char *)info + 3, sizeof(info) - 3, "tls13 %s", label);
    info[3 + length + 1] = 1;
    cr_assert(HMAC(EVP_sha256(), secret, sizeof(secret), info, (size_t)length + 5, all, NULL));
    memcpy(out, all, size);
}

/* A record of handshake bytes, the second that the peer sends, past its OpenSSL. */
static void put_handshake_bytes(const struct peer *peer, const char *bytes, size_t size)
{
    unsigned char key[16], nonce[12], inner[32],
        record[64] = {23, 3, 3, 0, (unsigned char)size + 17};
    int done;
    memcpy(inner, bytes, size);
    inner[size] = 22;
    derive("key", key, sizeof(key));
    derive("iv", nonce, sizeof(nonce));
    nonce[11] ^= 1;
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    cr_assert(EVP_EncryptInit_ex(cipher, EVP_aes_128_gcm(), NULL, key, nonce) &&
              EVP_EncryptUpdate(cipher, NULL, &done, record, 5) &&
              EVP_EncryptUpdate(cipher, record + 5, &done, inner, (int)size + 1) &&
              EVP_EncryptFinal_ex(cipher, record + 5 + done, &done) &&
              EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, 16, record + 6 + size));
    EVP_CIPHER_CTX_free(cipher);
    cr_assert_eq(send(peer->fd, record, size + 22, 0), (ssize_t)size + 22);
}

/* OpenSSL writes nothing before it has the rest: nobody may turn the loop hot with that. */
Test(tls_server, closes_on_who_keeps_the_rest_of_a_key_update_while_it_is_answered)
{
    static const char request[] = "GET /later HTTP/1.1\r\n" HOST "\r\n";
    start((struct as_tls_server_config){0});
    struct peer peer = make_peer(NULL);
    SSL_CTX_set_min_proto_version(peer.context, TLS1_3_VERSION);
    cr_assert(SSL_CTX_set_ciphersuites(peer.context, "TLS_AES_128_GCM_SHA256"));
    SSL_CTX_set_keylog_callback(peer.context, on_key);
    cr_assert(shake(&peer) && say(&peer, request, strlen(request)));
    put_handshake_bytes(&peer, "\x18\0\0\1", 4);
    for (int64_t until = now_ms() + WAIT_MS; !kept && now_ms() < until; poll(NULL, 0, 1))
        turn();
    cr_assert(kept);
    run_for(20);
    const int64_t before = now_ms();
    as_http_exchange_reply(kept, &(struct as_http_answer){.status = 200});
    run_for(20);
    cr_assert_eq(as_http_server_get_connections(server), 0);
    cr_assert(now_ms() - before < WAIT_MS, "a turn that ends when the answer's time is over");
    hang_up(&peer);
}

Test(tls_server, speaks_no_other_protocol)
{
    start((struct as_tls_server_config){0});
    struct peer peer = make_peer(NULL);
    SSL_CTX_set_alpn_protos(peer.context, (const unsigned char *)"\x02h2", 3);
    cr_assert(!shake(&peer));
    hang_up(&peer);
}

/* A resumed session would not show its certificate again. */
Test(tls_server, resumes_no_session)
{
    start((struct as_tls_server_config){0});
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < 2; i++) {
        struct peer peer = make_peer(NULL);
        SSL_CTX_set_max_proto_version(peer.context, versions[i]);
        char head[1024], body[256];
        cr_assert(shake(&peer) && say(&peer, GET, strlen(GET)) && hear(&peer, head, body) > 0);
        SSL_SESSION *session = SSL_get1_session(peer.ssl);
        cr_assert(!SSL_SESSION_has_ticket(session));
        hang_up(&peer);
        peer = make_peer(NULL);
        SSL_CTX_set_max_proto_version(peer.context, versions[i]);
        peer.ssl = SSL_new(peer.context);
        SSL_set_fd(peer.ssl, peer.fd);
        SSL_set_session(peer.ssl, session);
        cr_assert_eq(DO(&peer, SSL_connect(peer.ssl)), 1);
        cr_assert(!SSL_session_reused(peer.ssl));
        hang_up(&peer);
        SSL_SESSION_free(session);
    }
}

Test(tls_server, renegotiates_nothing)
{
    start((struct as_tls_server_config){.max_version = AS_TLS_1_2});
    struct peer peer = make_peer(NULL);
    char head[1024], body[256];
    cr_assert(shake(&peer) && say(&peer, GET, strlen(GET)) && hear(&peer, head, body) > 0);
    cr_assert_eq(SSL_renegotiate(peer.ssl), 1);
    cr_assert(DO(&peer, SSL_do_handshake(peer.ssl)) != 1);
    hang_up(&peer);
}

Test(tls_server, keeps_to_its_versions_ciphers_and_curves)
{
    static const struct {
        struct as_tls_server_config settings;
        int version; /* the only one of the client */
        const char *ciphers, *curves;
        bool goes;
    } cases[] = {
        {{0}, TLS1_1_VERSION, NULL, NULL, false},
        {{0}, TLS1_2_VERSION, NULL, NULL, true},
        {{0}, TLS1_3_VERSION, NULL, NULL, true},
        {{.min_version = AS_TLS_1_0}, TLS1_VERSION, NULL, NULL, true},
        {{.min_version = AS_TLS_1_1}, TLS1_VERSION, NULL, NULL, false},
        {{.min_version = AS_TLS_1_1}, TLS1_1_VERSION, NULL, NULL, true},
        {{.min_version = AS_TLS_1_3}, TLS1_2_VERSION, NULL, NULL, false},
        {{.max_version = AS_TLS_1_2}, TLS1_3_VERSION, NULL, NULL, false},
        {{.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256"},
         TLS1_2_VERSION,
         "ECDHE-ECDSA-AES256-GCM-SHA384",
         NULL,
         false},
        {{.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256"},
         TLS1_2_VERSION,
         "ECDHE-ECDSA-AES128-GCM-SHA256",
         NULL,
         true},
        {{.curves = "P-384"}, TLS1_3_VERSION, NULL, "X25519", false},
        {{.curves = "P-384:X25519"}, TLS1_3_VERSION, NULL, "X25519", true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        start(cases[i].settings);
        struct peer peer = make_peer(NULL);
        SSL_CTX_set_min_proto_version(peer.context, cases[i].version);
        SSL_CTX_set_max_proto_version(peer.context, cases[i].version);
        if (cases[i].ciphers)
            SSL_CTX_set_cipher_list(peer.context, cases[i].ciphers);
        if (cases[i].curves)
            SSL_CTX_set1_groups_list(peer.context, cases[i].curves);
        char *who = ask_who(&peer);
        cr_assert_eq(who != NULL, cases[i].goes, "case %zu", i);
        free(who);
        server = as_http_server_free(server);
        tls = as_tls_server_free(tls);
    }
}

Test(tls_server, lets_in_whom_the_client_auth_type_lets_in)
{
    static const struct {
        enum as_tls_client_auth type;
        const char *none, *foreign, *known; /* NULL: refused */
    } cases[] = {
        {AS_TLS_CLIENT_NONE, "nobody", "nobody", "nobody"},
        {AS_TLS_CLIENT_REQUEST, "nobody", "nobody", "nobody"},
        {AS_TLS_CLIENT_REQUIRE_ANY, NULL, "nobody", "nobody"},
        {AS_TLS_CLIENT_VERIFY_IF_GIVEN, "nobody", NULL, "alertmanager"},
        {AS_TLS_CLIENT_REQUIRE_AND_VERIFY, NULL, NULL, "alertmanager"},
    };
    struct identity known = identity_make("alertmanager", NULL, &authority);
    struct identity foreign = identity_make("alertmanager", NULL, &stranger);
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        start((struct as_tls_server_config){
            .client_auth = cases[i].type,
            .client_ca_file = cases[i].type != AS_TLS_CLIENT_NONE ? ca_file : NULL});
        expect_who(NULL, cases[i].none);
        expect_who(&foreign, cases[i].foreign);
        expect_who(&known, cases[i].known);
        server = as_http_server_free(server);
        tls = as_tls_server_free(tls);
    }
    identity_free(&known);
    identity_free(&foreign);
}

Test(tls_server, lets_in_only_allowed_names)
{
    static const char *const allowed[] = {"am.example.org", "192.0.2.7", "2001:db8:0::1",
                                          "spiffe://x/am", "am@example.org"};
    static const struct {
        const char *common_name, *alternative, *expected;
    } cases[] = {
        {"am.example.org", NULL, NULL}, /* a common name lets nobody in */
        {NULL, "DNS:other.example.org", NULL},
        {NULL, "DNS:other.example.org,DNS:AM.example.ORG", "am.example.org"},
        {NULL, "DNS:*.example.org", NULL},
        {NULL, "DNS:xam.example.org", NULL},
        {NULL, "IP:192.0.2.7", "192.0.2.7"},
        {NULL, "IP:192.0.2.8", NULL},
        {NULL, "DNS:192.0.2.7", "192.0.2.7"}, /* as exporter-toolkit compares them */
        {NULL, "IP:2001:db8::1", "2001:db8:0::1"},
        {NULL, "URI:spiffe://x/am", "spiffe://x/am"},
        {NULL, "URI:spiffe://X/am", NULL},
        {NULL, "email:am@example.org", "am@example.org"},
        {NULL, "email:xam@example.org", NULL},
        {"a", "RID:1.2.3.4", NULL},
    };
    start((struct as_tls_server_config){.client_ca_file = ca_file,
                                        .client_auth = AS_TLS_CLIENT_REQUIRE_AND_VERIFY,
                                        .allowed_sans = allowed,
                                        .allowed_san_count = AS_ARRAY_SIZE(allowed)});
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct identity client =
            identity_make(cases[i].common_name, cases[i].alternative, &authority);
        expect_who(&client, cases[i].expected);
        identity_free(&client);
    }
    struct identity foreign = identity_make(NULL, "DNS:am.example.org", &stranger);
    expect_who(&foreign, NULL);
    identity_free(&foreign);
    cr_assert_eq(count_in_log("none of the allowed names"), 1);
}

Test(tls_server, names_the_client)
{
    static const struct {
        const char *common_name, *alternative, *expected;
    } cases[] = {
        {"cn", "DNS:dns.test,URI:spiffe://x/y", "dns.test"},
        {"cn", "IP:192.0.2.7,URI:spiffe://x/y", "spiffe://x/y"},
        {"cn", "IP:192.0.2.7,email:a@b.test", "cn"},
        {"Käse", NULL, "Käse"},
        {"two\nlines", NULL, "nobody"},
        {NULL, "IP:192.0.2.7", "nobody"},
    };
    start((struct as_tls_server_config){.client_ca_file = ca_file,
                                        .client_auth = AS_TLS_CLIENT_REQUIRE_AND_VERIFY});
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct identity client =
            identity_make(cases[i].common_name, cases[i].alternative, &authority);
        expect_who(&client, cases[i].expected);
        identity_free(&client);
    }
}

Test(tls_server, reads_changed_files_and_keeps_the_old_ones_while_the_new_ones_are_bad)
{
    start((struct as_tls_server_config){0});
    expect_server("first");
    struct peer old = make_peer(NULL);
    cr_assert(shake(&old));
    write_text(cert_file, second.certificate_pem); /* its key has not come yet */
    run_for(1100);
    expect_server("first");
    expect_server("first");
    run_for(1100);
    expect_server("first");
    cr_assert_eq(count_in_log("cannot be used"), 1);
    cr_assert_eq(count_in_log(key_file), 1, "the error names the file");
    write_text(key_file, second.key_pem);
    run_for(1100);
    expect_server("second");
    unlink(cert_file);
    run_for(1100);
    expect_server("second");
    cr_assert_eq(count_in_log("cannot be used"), 2);
    write_text(cert_file, "no certificate\n");
    run_for(1100);
    expect_server("second");
    cr_assert_eq(count_in_log("cannot be used"), 2);
    put_identity(&first);
    run_for(1100);
    expect_server("first");
    cr_assert_eq(count_in_log("TLS files read again"), 2);
    char head[1024], body[256];
    cr_assert(say(&old, GET, strlen(GET)) && hear(&old, head, body) > 0, "as it began");
    hang_up(&old);
}

Test(tls_server, reads_changed_client_authorities)
{
    start((struct as_tls_server_config){.client_ca_file = ca_file,
                                        .client_auth = AS_TLS_CLIENT_REQUIRE_AND_VERIFY});
    struct identity known = identity_make("known", NULL, &authority);
    struct identity foreign = identity_make("foreign", NULL, &stranger);
    expect_who(&known, "known");
    expect_who(&foreign, NULL);
    write_text(ca_file, stranger.certificate_pem);
    run_for(1100);
    expect_who(&known, NULL);
    expect_who(&foreign, "foreign");
    char both[4096];
    snprintf(both, sizeof(both), "# two\n%s\n%s", authority.certificate_pem,
             stranger.certificate_pem);
    write_text(ca_file, both);
    run_for(1100);
    expect_who(&known, "known");
    expect_who(&foreign, "foreign");
    identity_free(&known);
    identity_free(&foreign);
}

Test(tls_server, says_what_is_wrong_with_its_settings)
{
    static const struct {
        struct as_tls_server_config settings;
        const char *expected;
    } cases[] = {
        {{.cert_file = cert_file}, "a certificate and its key"},
        {{.cert_file = "/nonexistent/cert", .key_file = key_file},
         "TLS certificate \"/nonexistent/cert\": No such file"},
        {{.cert_file = key_file, .key_file = key_file}, "TLS certificate"},
        {{.cert_file = cert_file, .key_file = cert_file}, "TLS key"},
        {{.cert_file = cert_file, .key_file = key_file, .client_ca_file = ca_file},
         "not asked for certificates"},
        {{.cert_file = cert_file,
          .key_file = key_file,
          .client_auth = AS_TLS_CLIENT_REQUIRE_AND_VERIFY},
         "client CAs are needed"},
        {{.cert_file = cert_file,
          .key_file = key_file,
          .client_ca_file = key_file,
          .client_auth = AS_TLS_CLIENT_REQUIRE_AND_VERIFY},
         "TLS client CAs"},
        {{.cert_file = cert_file, .key_file = key_file, .ciphers = "NONSENSE"}, "\"NONSENSE\""},
        {{.cert_file = cert_file, .key_file = key_file, .curves = "P-1"}, "\"P-1\""},
        {{.cert_file = cert_file,
          .key_file = key_file,
          .min_version = AS_TLS_1_3,
          .max_version = AS_TLS_1_2},
         "lower than"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        struct as_tls_server *made = NULL;
        struct as_error error = AS_ERROR_INIT;
        cr_assert(as_tls_server_new(&cases[i].settings, &made, &error) < 0, "case %zu", i);
        cr_assert(strstr(error.text, cases[i].expected), "%s", error.text);
        cr_assert_null(made);
    }
}

Test(tls_server, ends_handshakes_that_do_not)
{
    struct as_http_server_config config = as_http_server_config_default;
    config.head_timeout_us = 200 * AS_US_PER_MS;
    start_with((struct as_tls_server_config){0}, config);
    int silent = dial(), slow = dial();
    run_for(20);
    cr_assert_eq(as_http_server_get_connections(server), 2);
    int64_t began = now_ms();
    static const char hello[] = "\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03";
    for (size_t i = 0; as_http_server_get_connections(server) > 0 && now_ms() < began + WAIT_MS;
         i++) { /* a byte now and then is no excuse */
        (void)send(slow, i < sizeof(hello) - 1 ? &hello[i] : "", 1, MSG_NOSIGNAL);
        run_for(10);
    }
    cr_assert_eq(as_http_server_get_connections(server), 0);
    cr_assert(now_ms() - began < 2000);
    cr_assert_eq(count_in_log("TLS handshakes failed"), 1);
    close(silent);
    close(slow);
}

Test(tls_server, logs_failed_handshakes_together)
{
    start((struct as_tls_server_config){0});
    for (int i = 0; i < 20; i++) {
        int fd = dial();
        cr_assert_eq(send(fd, "\x80nonsense\r\n\r\n", 13, MSG_NOSIGNAL), 13);
        run_for(3);
        close(fd);
    }
    run_for(20);
    cr_assert_eq(as_http_server_get_connections(server), 0);
    cr_assert_eq(count_in_log("TLS handshakes failed"), 1);
    for (int i = 0; i < 3; i++) {
        close(dial()); /* who only looks whether somebody listens is no news */
        run_for(3);
    }
    cr_assert_eq(count_in_log("\n"), 1);
}

Test(tls_server, tells_who_speaks_plain_http)
{
    static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n";
    static const char body[1000];
    start((struct as_tls_server_config){0});
    int fd = dial();
    cr_assert_eq(send(fd, head, strlen(head), MSG_NOSIGNAL), (ssize_t)strlen(head));
    for (int i = 0; i < 2; i++) { /* a body that comes after the answer does not destroy it */
        run_for(3);
        cr_assert_eq(send(fd, body, sizeof(body), MSG_NOSIGNAL), (ssize_t)sizeof(body));
    }
    run_for(3);
    char answer[512] = "";
    cr_assert_gt(recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT), 0, "%s", strerror(errno));
    cr_assert(strncmp(answer, "HTTP/1.0 400 ", 13) == 0, "%s", answer);
    cr_assert(strstr(answer, "\r\nContent-Length: 34\r\n\r\nthis is an HTTPS port"), "%s", answer);
    cr_assert_eq(strlen(strstr(answer, "\r\n\r\n") + 4), 34);
    cr_assert_eq(recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT), 0);
    close(fd);
    run_for(20);
    cr_assert_eq(as_http_server_get_connections(server), 0);
    cr_assert_eq(count_in_log("TLS handshakes failed"), 1);
}

Test(tls_server, closes_a_connection_for_which_there_is_no_memory)
{
    start((struct as_tls_server_config){0});
    int fd = dial();
    refuses_memory = true; /* for the stream: libevent's first wish then */
    ssize_t got = -1;
    for (int64_t end = now_ms() + WAIT_MS; got != 0 && now_ms() < end; turn())
        got = recv(fd, &(char){0}, 1, MSG_DONTWAIT);
    cr_assert(got == 0 && !refuses_memory);
    cr_assert_eq(as_http_server_get_connections(server), 0);
    close(fd);
    expect_server("first");
}

Test(tls_server, may_be_replaced_while_connections_live)
{
    start((struct as_tls_server_config){.client_ca_file = ca_file,
                                        .client_auth = AS_TLS_CLIENT_VERIFY_IF_GIVEN});
    struct identity known = identity_make("known", NULL, &authority);
    struct peer old = make_peer(&known);
    struct peer halfway = make_peer(&known);
    cr_assert(shake(&old));
    run_for(5); /* `halfway` is accepted, by the old ones */
    put_identity(&second);
    struct as_tls_server *newer = make_tls((struct as_tls_server_config){0});
    as_http_server_set_tls(server, newer);
    as_tls_server_free(tls);
    tls = newer;
    expect_server("second");
    char head[1024], body[256];
    cr_assert(say(&old, GET, strlen(GET)) && hear(&old, head, body) > 0);
    cr_assert_str_eq(body, "known");
    char *who = ask_who(&halfway);
    cr_assert(who && strcmp(who, "known") == 0);
    free(who);
    as_http_server_set_tls(server, NULL);
    int plain = dial();
    cr_assert_eq(send(plain, GET, strlen(GET), MSG_NOSIGNAL), (ssize_t)strlen(GET));
    run_for(20);
    cr_assert(recv(plain, body, sizeof(body), MSG_DONTWAIT) > 0);
    cr_assert(strncmp(body, "HTTP/1.1 200 ", 13) == 0);
    close(plain);
    hang_up(&old);
    identity_free(&known);
}

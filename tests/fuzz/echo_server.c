/*
 * Our HTTP server for http_compare.py: answers each request with what it understood, "METHOD
 * target", a line feed and the body. Prints its port; ends when its standard input does.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/http/server.h>

static enum as_http_admission admit(void *context, struct as_http_exchange *exchange)
{
    return AS_HTTP_ADMITTED;
}

static void handle(void *context, struct as_http_exchange *exchange)
{
    struct as_buf headers = AS_BUF_INIT(1 << 16);
    size_t size;
    const char *body = as_http_exchange_get_body(exchange, &size);
    as_buf_printf(&headers, "X-Request: %s %s?%s\r\n", as_http_exchange_get_method(exchange),
                  as_http_exchange_get_path(exchange), as_http_exchange_get_query(exchange));
    if (as_buf_check(&headers) != 0)
        abort();
    as_http_exchange_reply(
        exchange, &(struct as_http_answer){
                      .status = 200, .headers = headers.data, .body = body, .body_size = size});
    as_buf_deinit(&headers);
}

static void on_input(evutil_socket_t fd, short what, void *context)
{
    char byte;
    if (read(fd, &byte, 1) <= 0)
        event_base_loopbreak(context);
}

int main(void)
{
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    struct event_base *base = event_base_new();
    struct as_http_server_config config = as_http_server_config_default;
    config.listen_address = "127.0.0.1:0";
    config.max_body = 1 << 16;
    const struct as_http_handler handler = {.admit = admit, .handle = handle};
    struct as_http_server *server;
    struct as_error error = AS_ERROR_INIT;
    struct event *input = base ? event_new(base, 0, EV_READ | EV_PERSIST, on_input, base) : NULL;
    if (!input || as_http_server_new(base, &config, &handler, &server, &error) != 0 ||
        event_add(input, NULL) != 0) {
        fprintf(stderr, "echo_server: %s\n", error.text);
        return 1;
    }
    printf("%u\n", as_http_server_get_port(server));
    fflush(stdout);
    event_base_dispatch(base);
    as_http_server_free(server);
    event_free(input);
    event_base_free(base);
    return 0;
}

/*
 * The source port against scripted servers: its requests, one clear line for every failure, one
 * list merged from several, each result exactly once and never after the end.
 */
#include <alertscaler/monitoring/monitoring.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "files.h"
#include "world.h"

#define QUERY_PATH  "/api/v1/query"
#define GROUPS_PATH "/api/v2/alerts/groups?active=true&silenced=true&inhibited=true"
#define STATUS_PATH "/api/v2/status"

static struct world world;
static struct as_settings settings;
static const char *urls[3];
static struct as_source_port *port;
static char directory[] = "/tmp/as-source-XXXXXX", secret[64];

static char counted[256]; /* "prometheus ok; ..." */
static int64_t counted_us;

static void count(void *context, const char *source, const char *outcome, int64_t duration_us)
{
    cr_expect_eq(context, &world);
    size_t size = strlen(counted);
    snprintf(counted + size, sizeof(counted) - size, "%s%s %s", size ? "; " : "", source, outcome);
    counted_us = duration_us;
}

static char judged[512]; /* "query: verdict error; ..." */

static void append_verdict(const char *text, enum as_query_verdict verdict, const char *error)
{
    static const char *const words[] = {"accepted", "refused", "unchecked"};
    const size_t size = strlen(judged);
    snprintf(judged + size, sizeof(judged) - size, "%s%s: %s%s%s", size ? "; " : "", text,
             words[verdict], *error ? " " : "", error);
}

static void note_verdict(void *context, const char *written, enum as_query_verdict verdict,
                         const char *error)
{
    cr_expect_eq(context, &world);
    append_verdict(written, verdict, error);
}

static void setup(void)
{
    world_init(&world);
    cr_assert_not_null(mkdtemp(directory));
    snprintf(secret, sizeof(secret), "%s/secret", directory);
    settings = (struct as_settings){
        .prometheus = {.url = "http://prom:9090", .timeout_us = 5 * AS_US_PER_S, .max_queries = 10},
        .alertmanager = {.urls = urls, .url_count = 2},
    };
    urls[0] = "http://am-0:9093";
    urls[1] = "http://am-1:9093/prefix/";
    urls[2] = "http://am-2:9093";
}

static void open_port(void)
{
    const struct as_source_env env = {.http = &world.http,
                                      .loop = &world.loop,
                                      .clock = &world.clock,
                                      .observer = count,
                                      .judged = note_verdict,
                                      .observer_context = &world};
    port = as_monitoring_new(&settings, &env);
}

static void teardown(void)
{
    if (port)
        port->close(port);
    unlink(secret);
    rmdir(directory);
    world_deinit(&world);
}

TestSuite(monitoring, .init = setup, .fini = teardown);

/* What was told last. */
static unsigned told;
static uint64_t told_call_id;
static char told_error[512];
static double told_value;
static char told_samples[256], told_alerts[512], told_waits[512], told_note[512];
static bool told_anew;

static void keep_answer(void *context, uint64_t call_id, const struct as_query_result *result)
{
    told++;
    told_call_id = call_id;
    snprintf(told_error, sizeof(told_error), "%s", result->error ? result->error : "");
    told_value = result->value;
    told_samples[0] = '\0';
    for (size_t i = 0; i < result->sample_count; i++) {
        size_t size = strlen(told_samples);
        snprintf(told_samples + size, sizeof(told_samples) - size, "%s=%g ", result->samples[i].pod,
                 result->samples[i].value);
    }
}

static void keep_list(void *context, uint64_t call_id, const struct as_alert_list *list)
{
    told++;
    told_call_id = call_id;
    snprintf(told_error, sizeof(told_error), "%s", list->error ? list->error : "");
    snprintf(told_note, sizeof(told_note), "%s", list->note ? list->note : "");
    told_anew = list->is_anew;
    told_alerts[0] = told_waits[0] = '\0';
    for (size_t i = 0; i < list->count; i++) {
        const struct as_listed_alert *alert = &list->alerts[i];
        size_t size = strlen(told_alerts);
        snprintf(told_alerts + size, sizeof(told_alerts) - size, "%" PRIx64 "%s ",
                 alert->fingerprint, alert->is_suppressed ? "-" : "+");
        for (size_t k = 0; k < alert->route_count; k++) {
            const int64_t wait = alert->routes[k].wait_us;
            size = strlen(told_waits);
            snprintf(told_waits + size, sizeof(told_waits) - size, "%s %" PRId64 "%s ",
                     alert->routes[k].receiver, wait == AS_LISTED_NEVER ? -1 : wait / AS_US_PER_S,
                     alert->routes[k].is_muted ? " muted" : "");
        }
    }
}

static void ask(const char *text, enum as_query_form form)
{
    char label[] = "pod";
    const struct as_query query = {
        .text = text, .form = form, .pod_label = form == AS_QUERY_PER_POD ? label : NULL};
    unsigned before = told;
    port->query(port, 7, &query, keep_answer, NULL);
    cr_assert_eq(told, before, "told in the same turn");
    memset(label, 'x', sizeof(label) - 1); /* borrowed for the call only */
    world_run(&world);
    cr_assert_eq(told, before + 1);
    cr_assert_eq(told_call_id, 7);
}

static void list(void)
{
    unsigned before = told;
    port->list_alerts(port, 8, keep_list, NULL);
    cr_assert_eq(told, before, "told in the same turn");
    world_run(&world);
    cr_assert_eq(told, before + 1);
    cr_assert_eq(told_call_id, 8);
}

static void answer(const char *method, const char *path, int status, const char *body)
{
    world_answer(&world, (struct world_answer){method, path, .status = status, .body = body});
}

static const struct world_request *last_request(void)
{
    return &world.requests[world.request_count - 1];
}

#define DATA(type, result)                                                                         \
    "{\"status\":\"success\",\"data\":{\"resultType\":\"" type "\",\"result\":" result "}}"

Test(monitoring, a_query_is_a_posted_form)
{
    open_port();
    answer("POST", "http://prom:9090" QUERY_PATH, 200, DATA("scalar", "[1,\"2.5\"]"));
    ask("1 + 1", AS_QUERY_NUMBER);
    cr_expect_str_eq(told_error, "");
    cr_expect_eq(told_value, 2.5);
    cr_expect_str_eq(last_request()->headers, "Accept: application/json\n"
                                              "Content-Type: application/x-www-form-urlencoded\n");
    cr_expect_str_eq(last_request()->body, "query=1%20%2B%201&timeout=5s");
    cr_expect_eq(last_request()->timeout_us, 5 * AS_US_PER_S);
    cr_expect_eq(last_request()->max_response, AS_QUERY_RESPONSE_MAX);
    cr_expect_str_eq(counted, "prometheus ok");
}

Test(monitoring, samples_by_a_label_that_was_borrowed)
{
    open_port();
    answer("POST", QUERY_PATH, 200,
           DATA("vector", "[{\"metric\":{\"pod\":\"b\"},\"value\":[1,\"1\"]},"
                          "{\"metric\":{\"pod\":\"a\"},\"value\":[1,\"2\"]}]"));
    ask("x", AS_QUERY_PER_POD);
    cr_expect_str_eq(told_samples, "a=2 b=1 ");
}

Test(monitoring, a_server_below_a_path)
{
    settings.prometheus.url = "https://prom/a/b//";
    settings.prometheus.timeout_us = 250 * AS_US_PER_MS;
    open_port();
    answer("POST", "https://prom/a/b" QUERY_PATH, 200, DATA("scalar", "[1,\"1\"]"));
    ask("1", AS_QUERY_NUMBER);
    cr_expect_str_eq(last_request()->body, "query=1&timeout=250ms");
}

Test(monitoring, what_goes_wrong_with_a_query)
{
    static const struct {
        struct world_answer answer;
        const char *error, *outcome;
    } rows[] = {
        {{.outcome = AS_HTTP_UNREACHABLE, .error = "Connection\nrefused"},
         "Prometheus: unreachable: Connection refused",
         "prometheus unreachable"},
        {{.outcome = AS_HTTP_BROKEN, .error = "reset"},
         "Prometheus: broke off: reset",
         "prometheus unreachable"},
        {{.outcome = AS_HTTP_TIMEOUT, .error = "x"},
         "Prometheus: no answer within 5s",
         "prometheus timeout"},
        {{.outcome = AS_HTTP_TOO_LARGE, .error = "x"},
         "Prometheus: the answer is larger than 16 MiB",
         "prometheus too_large"},
        {{.status = 400,
          .body =
              "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"1:1: parse error\"}"},
         "Prometheus: HTTP 400: bad_data: 1:1: parse error",
         "prometheus refused"},
        {{.status = 401, .body = "no org id\nmore"},
         "Prometheus: HTTP 401: no org id",
         "prometheus refused"},
        {{.status = 403, .body = "\n<html>Log in</html>"},
         "Prometheus: HTTP 403",
         "prometheus refused"},
        {{.status = 401, .body = "{\"code\":16}"}, "Prometheus: HTTP 401", "prometheus refused"},
        {{.status = 404, .body = "404 page not found"},
         "Prometheus: HTTP 404",
         "prometheus refused"},
        {{.status = 503}, "Prometheus: HTTP 503", "prometheus refused"},
        {{.status = 302, .body = "<a>Found</a>", .location = "http://else\x07/graph"},
         "Prometheus: HTTP 302 leads to http://else /graph, and redirects are not followed",
         "prometheus refused"},
        {{.status = 304}, "Prometheus: HTTP 304", "prometheus refused"},
        {{.status = 200,
          .body = "{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"slow\"}"},
         "Prometheus: timeout: slow",
         "prometheus refused"},
        {{.status = 200, .body = DATA("vector", "[]")},
         "query returned no data",
         "prometheus no_data"},
        {{.status = 200, .body = DATA("scalar", "[1,\"NaN\"]")},
         "query returned NaN",
         "prometheus unusable"},
        {{.status = 200, .body = "[]"},
         "Prometheus: not an answer to a query: no known status",
         "prometheus invalid"},
    };
    open_port();
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct world_answer said = rows[i].answer;
        said.method = "POST";
        said.path = QUERY_PATH;
        counted[0] = '\0';
        world_answer(&world, said);
        ask("up", AS_QUERY_NUMBER);
        cr_expect_str_eq(told_error, rows[i].error, "row %zu: %s", i, told_error);
        cr_expect_str_eq(counted, rows[i].outcome, "row %zu: %s", i, counted);
    }
}

Test(monitoring, no_error_is_longer_than_the_engine_takes)
{
    char location[600];
    memset(location, 'x', sizeof(location) - 1);
    location[sizeof(location) - 1] = '\0';
    open_port();
    world_answer(&world,
                 (struct world_answer){"POST", QUERY_PATH, .status = 307, .location = location});
    ask("up", AS_QUERY_NUMBER);
    cr_expect_eq(strlen(told_error), AS_QUERY_ERROR_MAX - 1);
}

Test(monitoring, without_a_prometheus)
{
    settings.prometheus = (struct as_prometheus_settings){.timeout_us = AS_US_PER_S};
    open_port();
    ask("up", AS_QUERY_NUMBER);
    cr_expect_str_eq(told_error, "Prometheus: none is configured");
    cr_expect_eq(world.request_count, 0);
}

Test(monitoring, a_query_beyond_the_limit)
{
    char *text = as_xmalloc(AS_QUERY_MAX + 2);
    memset(text, ' ', AS_QUERY_MAX + 1);
    text[AS_QUERY_MAX + 1] = '\0';
    open_port();
    ask(text, AS_QUERY_NUMBER);
    cr_expect_str_eq(told_error, "Prometheus: the query is longer than 16 KiB");
    text[AS_QUERY_MAX] = '\0';
    answer("POST", QUERY_PATH, 200, DATA("scalar", "[1,\"1\"]"));
    ask(text, AS_QUERY_NUMBER);
    cr_expect_str_eq(told_error, "");
    cr_expect_eq(strlen(last_request()->body), 3 * AS_QUERY_MAX + strlen("query=&timeout=5s"));
    free(text);
}

Test(monitoring, as_whom)
{
    settings.prometheus.http.basic_auth.username = "reader";
    settings.prometheus.http.basic_auth.password_file = secret;
    settings.prometheus.http.tls.ca_file = "/ca.pem";
    settings.prometheus.http.proxy_url = "http://proxy:3128";
    open_port();
    ask("up", AS_QUERY_NUMBER);
    char expected[256];
    snprintf(expected, sizeof(expected), "Prometheus: password_file: %s: No such file or directory",
             secret);
    cr_expect_str_eq(told_error, expected);
    cr_expect_str_eq(counted, "prometheus unreachable");
    write_file(secret, "one\n");
    answer("POST", QUERY_PATH, 200, DATA("scalar", "[1,\"1\"]"));
    ask("up", AS_QUERY_NUMBER);
    cr_expect(strstr(last_request()->headers, "Authorization: Basic cmVhZGVyOm9uZQ==\n"));
    cr_expect_str_eq(last_request()->ca_file, "/ca.pem");
    cr_expect_str_eq(last_request()->proxy_url, "http://proxy:3128");
    write_file(secret, "two\n");
    usleep(1100 * 1000); /* read again, once it has not changed for a second */
    answer("POST", QUERY_PATH, 200, DATA("scalar", "[1,\"1\"]"));
    ask("up", AS_QUERY_NUMBER);
    cr_expect(strstr(last_request()->headers, "Authorization: Basic cmVhZGVyOnR3bw==\n"));
}

static void ask_again(void *context, uint64_t call_id, const struct as_query_result *result)
{
    const struct as_query query = {.text = "up", .form = AS_QUERY_NUMBER};
    told++;
    if (told < 3)
        port->query(port, call_id + 1, &query, ask_again, NULL);
    told_call_id = call_id;
}

Test(monitoring, an_answer_may_lead_to_the_next_query)
{
    const struct as_query query = {.text = "up", .form = AS_QUERY_NUMBER};
    open_port();
    for (int i = 0; i < 3; i++)
        answer("POST", QUERY_PATH, 200, DATA("scalar", "[1,\"1\"]"));
    port->query(port, 1, &query, ask_again, NULL);
    world_run(&world);
    cr_expect_eq(told, 3);
    cr_expect_eq(told_call_id, 3);
}

static char answered[256]; /* call ids in the order of their answers */

static void note_answer(void *context, uint64_t call_id, const struct as_query_result *result)
{
    const size_t size = strlen(answered);
    (void)context, (void)result;
    snprintf(answered + size, sizeof(answered) - size, "%" PRIu64 " ", call_id);
}

static void send(uint64_t call_id, const char *text, bool is_continuous)
{
    const struct as_query query = {
        .text = text, .form = AS_QUERY_NUMBER, .is_continuous = is_continuous};
    port->query(port, call_id, &query, note_answer, NULL);
}

Test(monitoring, queries_of_alerts_go_before_those_of_always_rules)
{
    settings.prometheus.max_queries = 2;
    open_port();
    for (int i = 0; i < 5; i++)
        answer("POST", QUERY_PATH, 200, DATA("scalar", "[1,\"1\"]"));
    send(1, "a", true);
    send(2, "b", true);
    send(3, "c", true);
    send(4, "d", true);
    cr_expect_eq(world.request_count, 2, "no more than max_queries");
    send(5, "e", false);
    send(6, "d", false); /* an alert has the query of an `always` rule */
    cr_expect_eq(world.request_count, 2);
    world_run(&world);
    cr_expect_eq(world.request_count, 5);
    cr_expect_str_eq(answered, "1 2 5 4 6 3 ");
}

Test(monitoring, equal_queries_of_one_moment_are_one_request)
{
    open_port();
    answer("POST", QUERY_PATH, 200, DATA("scalar", "[1,\"1\"]"));
    send(1, "a", false);
    send(2, "a", true);
    const struct as_query per_pod = {.text = "a", .form = AS_QUERY_PER_POD, .pod_label = "pod"};
    const struct as_query narrowed = {
        .text = "a", .form = AS_QUERY_NUMBER, .flow = {.credential = "team"}};
    answer("POST", QUERY_PATH, 200, DATA("scalar", "[1,\"1\"]"));
    port->query(port, 3, &per_pod, note_answer, NULL);
    answer("POST", QUERY_PATH, 200, DATA("scalar", "[1,\"1\"]"));
    port->query(port, 4, &narrowed, note_answer, NULL);
    world_run(&world);
    cr_expect_eq(world.request_count, 3);
    cr_expect_str_eq(answered, "1 2 3 4 ");
}

Test(monitoring, a_later_equal_query_has_its_own_answer)
{
    open_port();
    answer("POST", QUERY_PATH, 200, DATA("scalar", "[1,\"1\"]"));
    send(1, "a", true);
    world.mono.us += 101 * AS_US_PER_MS;
    answer("POST", QUERY_PATH, 200, DATA("scalar", "[1,\"2\"]"));
    send(2, "a", true);
    world_run(&world);
    cr_expect_eq(world.request_count, 2);
}

#define REFUSAL(type, text)                                                                        \
    "{\"status\":\"error\",\"errorType\":\"" type "\",\"error\":\"" text "\"}"
#define FORMAT_PATH "/api/v1/format_query"

Test(monitoring, an_answer_shows_whether_the_server_accepts_the_query)
{
    static const struct {
        struct world_answer answer;
        const char *judged;
    } rows[] = {
        {{.status = 200, .body = DATA("scalar", "[1,\"1\"]")}, "a{{b}}: accepted"},
        {{.status = 200, .body = DATA("vector", "[]")}, "a{{b}}: accepted"},
        {{.status = 200, .body = DATA("scalar", "[1,\"NaN\"]")}, "a{{b}}: accepted"},
        {{.status = 422, .body = REFUSAL("execution", "many-to-many")},
         "a{{b}}: refused Prometheus: HTTP 422: execution: many-to-many"},
        {{.status = 400, .body = REFUSAL("bad_data", "1:1: parse error")},
         "a{{b}}: refused Prometheus: HTTP 400: bad_data: 1:1: parse error"},
        {{.status = 422, .body = "<html>"}, ""},
        {{.status = 401, .body = REFUSAL("x", "y")}, ""},
        {{.status = 403, .body = REFUSAL("x", "y")}, ""},
        {{.status = 408, .body = REFUSAL("x", "y")}, ""},
        {{.status = 429, .body = REFUSAL("x", "y")}, ""},
        {{.status = 503, .body = REFUSAL("timeout", "y")}, ""},
        {{.status = 200, .body = REFUSAL("internal", "y")}, ""},
        {{.status = 200, .body = "<html>"}, ""},
        {{.outcome = AS_HTTP_UNREACHABLE, .error = "x"}, ""},
    };
    const struct as_query query = {.text = "a", .form = AS_QUERY_NUMBER, .written = "a{{b}}"};
    open_port();
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct world_answer said = rows[i].answer;
        said.method = "POST";
        said.path = QUERY_PATH;
        judged[0] = '\0';
        world_answer(&world, said);
        port->query(port, 1, &query, keep_answer, NULL);
        world_run(&world);
        cr_expect_str_eq(judged, rows[i].judged, "row %zu: %s", i, judged);
    }
}

static void note_parsed(void *context, uint64_t call_id, enum as_query_verdict verdict,
                        const char *error)
{
    char number[32];
    snprintf(number, sizeof(number), "%" PRIu64, call_id);
    append_verdict(number, verdict, error);
}

Test(monitoring, a_server_parses_a_query)
{
    static const struct {
        struct world_answer format, query; /* query: of a server without the first path */
        const char *judged;
    } rows[] = {
        {.format = {.status = 200, .body = "{\"status\":\"success\",\"data\":\"up\"}"},
         .judged = "1: accepted"},
        {.format = {.status = 400, .body = REFUSAL("bad_data", "1:5: parse\\nerror")},
         .judged = "1: refused 1:5: parse error"},
        {.format = {.status = 422, .body = "{\"status\":\"error\"}"},
         .judged = "1: refused refused without a text"},
        {.format = {.status = 503, .body = REFUSAL("x", "y")}, .judged = "1: unchecked HTTP 503"},
        {.format = {.status = 401, .body = "no org id\n"},
         .judged = "1: unchecked HTTP 401: no org id"},
        {.format = {.status = 429, .body = REFUSAL("x", "y")}, .judged = "1: unchecked HTTP 429"},
        {.format = {.status = 200, .body = REFUSAL("x", "y")}, .judged = "1: unchecked HTTP 200"},
        {.format = {.outcome = AS_HTTP_UNREACHABLE, .error = "gone"},
         .judged = "1: unchecked Prometheus: unreachable: gone"},
        {.format = {.status = 404, .body = "404 page not found"},
         .query = {.method = "POST", .status = 200, .body = DATA("vector", "[]")},
         .judged = "1: accepted"},
        {.format = {.status = 400, .body = "unsupported path requested"},
         .query = {.method = "POST", .status = 422, .body = REFUSAL("422", "unsupported")},
         .judged = "1: refused unsupported"},
        {.format = {.status = 404, .body = "404 page not found"},
         .query = {.method = "POST", .status = 404, .body = "404 page not found"},
         .judged = "1: unchecked HTTP 404"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct world_answer format = rows[i].format, query = rows[i].query;
        open_port();
        format.method = "POST";
        format.path = "http://prom:9090" FORMAT_PATH;
        query.path = "http://prom:9090" QUERY_PATH;
        judged[0] = counted[0] = '\0';
        world_answer(&world, format);
        if (query.method)
            world_answer(&world, query);
        port->parse(port, 1, "up == 1", note_parsed, NULL);
        cr_expect_str_eq(judged, "", "in the same turn");
        world_run(&world);
        cr_expect_str_eq(judged, rows[i].judged, "row %zu: %s", i, judged);
        cr_expect_str_eq(last_request()->body, query.method
                                                   ? "query=up%20%3D%3D%201&time=1&timeout=10s"
                                                   : "query=up%20%3D%3D%201");
        cr_expect_str_eq(counted, "", "not a query of a decision");
        if (query.method) { /* the server is known to lack the other path */
            world_answer(&world, query);
            port->parse(port, 1, "up", note_parsed, NULL);
            world_run(&world);
        }
        port->close(port);
    }
    port = NULL;
}

Test(monitoring, a_query_that_is_only_parsed_waits_for_all_queries)
{
    settings.prometheus.max_queries = 3;
    settings.prometheus.timeout_us = AS_US_PER_MIN;
    open_port();
    for (int i = 0; i < 4; i++)
        answer("POST", FORMAT_PATH, 200, "{\"status\":\"success\",\"data\":\"up\"}");
    for (int i = 0; i < 2; i++)
        answer("POST", QUERY_PATH, 200, DATA("scalar", "[1,\"1\"]"));
    for (uint64_t i = 0; i < 4; i++)
        port->parse(port, i, "up", note_parsed, NULL);
    cr_expect_eq(world.request_count, 2, "one place stays free");
    cr_expect_eq(last_request()->timeout_us, AS_PARSE_TIMEOUT_US);
    send(5, "a", false);
    send(6, "b", true);
    cr_expect_eq(world.request_count, 3);
    world_run(&world);
    cr_assert_eq(world.request_count, 6);
    cr_expect(strstr(world.requests[2].url, QUERY_PATH) != NULL);
    cr_expect(strstr(world.requests[3].url, QUERY_PATH) != NULL, "before the waiting parses");
    cr_expect_str_eq(answered, "5 6 ");
}

Test(monitoring, a_server_with_one_place_parses_one_query_at_a_time)
{
    settings.prometheus.max_queries = 1;
    open_port();
    for (int i = 0; i < 2; i++)
        answer("POST", FORMAT_PATH, 200, "{\"status\":\"success\",\"data\":\"up\"}");
    port->parse(port, 1, "up", note_parsed, NULL);
    port->parse(port, 2, "up", note_parsed, NULL);
    cr_expect_eq(world.request_count, 1);
    world_run(&world);
    cr_expect_str_eq(judged, "1: accepted; 2: accepted");
}

Test(monitoring, nothing_is_parsed_after_the_end)
{
    open_port();
    for (uint64_t i = 0; i < 3; i++)
        port->parse(port, i, "up", note_parsed, NULL);
    settings.prometheus.max_queries = 2;
    port->close(port);
    port = NULL;
    world_run(&world);
    cr_expect_str_eq(judged, "");
    cr_expect(world.requests[0].is_cancelled);
}

Test(monitoring, nothing_is_told_after_the_end)
{
    const struct as_query query = {.text = "up", .form = AS_QUERY_NUMBER};
    settings.alertmanager.http.authorization.type = "Bearer";
    settings.alertmanager.http.authorization.credentials_file = secret; /* fails by a timer */
    open_port();
    port->query(port, 1, &query, keep_answer, NULL);
    port->list_alerts(port, 2, keep_list, NULL);
    port->close(port);
    port = NULL;
    world_run(&world);
    cr_expect_eq(told, 0);
    cr_assert_eq(world.request_count, 1);
    cr_expect(world.requests[0].is_cancelled);
}

#define ALERT(fingerprint, state)                                                                  \
    "{\"labels\":{\"a\":\"" fingerprint                                                            \
    "\"},\"startsAt\":\"2026-11-20T10:00:00Z\",\"fingerprint\":"                                   \
    "\"00000000000000" fingerprint "\",\"status\":{\"state\":\"" state "\"}}"
/* From 0.28 on. */
#define NEW_ALERT(fingerprint, state, muted)                                                       \
    "{\"labels\":{\"a\":\"" fingerprint                                                            \
    "\"},\"startsAt\":\"2026-11-20T10:00:00Z\",\"fingerprint\":"                                   \
    "\"00000000000000" fingerprint "\",\"status\":{\"state\":\"" state "\",\"mutedBy\":[" muted    \
    "]}}"
#define GROUP(receiver, alerts) "{\"receiver\":{\"name\":\"" receiver "\"},\"alerts\":[" alerts "]}"
#define GROUPS(alerts)          "[" GROUP("scaler", alerts) "]"
#define STATUS(config, uptime)                                                                     \
    "{\"config\":{\"original\":\"" config "\"},\"uptime\":\"" uptime "\"}"
#define PLAIN "route: {receiver: scaler}"
#define NIGHTS                                                                                     \
    "route: {receiver: pager, routes: [{receiver: scaler, group_wait: 10s, group_interval: 2m, "   \
    "mute_time_intervals: [nights]}]}"

#define LONG_NIGHTS                                                                                \
    "route: {receiver: pager, routes: [{receiver: scaler, group_wait: 10s, group_interval: 1h, "   \
    "mute_time_intervals: [nights]}]}"

/* One Alertmanager: its groups and its status. */
static void answer_list(const char *groups, int status, const char *body)
{
    answer("GET", "am-0:9093" GROUPS_PATH, 200, groups);
    answer("GET", "am-0:9093" STATUS_PATH, status, body);
    list();
    cr_expect_str_eq(told_error, "");
}

Test(monitoring, the_list_of_all_alertmanagers)
{
    settings.alertmanager.http.authorization.type = "Bearer";
    settings.alertmanager.http.authorization.credentials_file = secret;
    write_file(secret, "t");
    open_port();
    answer("GET", "http://am-0:9093" GROUPS_PATH, 200,
           GROUPS(ALERT("cc", "active") "," ALERT("aa", "suppressed")));
    answer("GET", "http://am-1:9093/prefix" GROUPS_PATH, 200,
           GROUPS(ALERT("bb", "suppressed") "," ALERT("aa", "active")));
    answer("GET", "http://am-0:9093" STATUS_PATH, 200, STATUS(PLAIN, "1"));
    answer("GET", "http://am-1:9093/prefix" STATUS_PATH, 200, STATUS(PLAIN, "2"));
    list();
    cr_expect_str_eq(told_error, "");
    cr_expect_str_eq(told_alerts, "aa+ bb- cc+ ");
    cr_expect_str_eq(told_note, "");
    cr_expect_str_eq(counted, "alertmanager ok; alertmanager ok");
    cr_assert_eq(world.request_count, 4);
    cr_expect_str_eq(world.requests[0].headers,
                     "Accept: application/json\nAuthorization: Bearer t\n");
    cr_expect_eq(world.requests[0].timeout_us, AS_ALERT_LIST_TIMEOUT_US);
    cr_expect_eq(world.requests[0].max_response, AS_ALERT_LIST_RESPONSE_MAX);
    cr_expect_str_eq(last_request()->headers,
                     "Accept: application/json\nAuthorization: Bearer t\n");
    cr_expect_eq(last_request()->max_response, AS_ALERT_STATUS_RESPONSE_MAX);
}

Test(monitoring, one_alertmanager_that_cannot_be_read_spoils_the_list)
{
    static const struct {
        struct world_answer answer;
        const char *error, *outcome;
    } rows[] = {
        {{.outcome = AS_HTTP_UNREACHABLE, .error = "Connection refused"},
         "unreachable: Connection refused",
         "unreachable"},
        {{.outcome = AS_HTTP_TIMEOUT}, "no answer within 10s", "timeout"},
        {{.outcome = AS_HTTP_TOO_LARGE}, "the answer is larger than 64 MiB", "too_large"},
        {{.status = 400, .body = "\"bad filter\""}, "HTTP 400: bad filter", "refused"},
        {{.status = 404, .body = "404 page not found"},
         "HTTP 404: there is no /api/v2/alerts/groups; is this Alertmanager's address, with its "
         "path prefix?",
         "refused"},
        {{.status = 200, .body = "{}"}, "expected an array of groups, got an object", "invalid"},
    };
    open_port();
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char expected[256];
        struct world_answer said = rows[i].answer;
        said.method = "GET";
        said.path = "am-1:9093/prefix" GROUPS_PATH;
        counted[0] = '\0';
        answer("GET", "am-0:9093" GROUPS_PATH, 200, GROUPS(ALERT("aa", "active")));
        answer("GET", "am-0:9093" STATUS_PATH, 200, STATUS(PLAIN, "1"));
        world_answer(&world, said);
        list();
        snprintf(expected, sizeof(expected), "Alertmanager http://am-1:9093/prefix/: %s",
                 rows[i].error);
        cr_expect_str_eq(told_error, expected, "row %zu: %s", i, told_error);
        cr_expect_str_eq(told_alerts, "");
        snprintf(expected, sizeof(expected), "alertmanager ok; alertmanager %s", rows[i].outcome);
        cr_expect_str_eq(counted, expected, "row %zu: %s", i, counted);
    }
}

Test(monitoring, several_alertmanagers_that_cannot_be_read)
{
    settings.alertmanager.url_count = 3;
    open_port();
    answer("GET", "am-0:9093" GROUPS_PATH, 200, "[]");
    answer("GET", "am-0:9093" STATUS_PATH, 200, STATUS(PLAIN, "1"));
    answer("GET", "am-1:9093/prefix" GROUPS_PATH, 503, "");
    answer("GET", "am-2:9093" GROUPS_PATH, 500, "");
    list();
    cr_expect_str_eq(told_error, "2 of 3 could not be read: Alertmanager "
                                 "http://am-1:9093/prefix/: HTTP 503");
}

/* From the configuration in the status; before 0.28 no list shows what is muted. */
Test(monitoring, how_long_an_alert_must_have_been_unmuted)
{
    static const struct {
        const char *what, *alert;
        int status;
        const char *body, *waits, *note;
    } rows[] = {
        {"no intervals", NEW_ALERT("aa", "active", ""), 200, STATUS(PLAIN, "1"), "scaler 0 ", ""},
        {"intervals", NEW_ALERT("aa", "active", ""), 200, STATUS(NIGHTS, "1"), "scaler 190 ", ""},
        {"muted", NEW_ALERT("aa", "suppressed", "\"nights\""), 200, STATUS(NIGHTS, "1"),
         "scaler 190 muted ", ""},
        {"another receiver", NEW_ALERT("aa", "active", ""), 200,
         STATUS("route: {receiver: pager}", "1"), "scaler 360 ", ""},
        {"no status", NEW_ALERT("aa", "active", ""), 404, "404 page not found", "scaler 360 ",
         "Alertmanager http://am-0:9093: its configuration could not be read: Alertmanager "
         "http://am-0:9093: HTTP 404; its list opens incidents only of alerts that were not muted "
         "for 6m, or longer if its last configuration says so"},
        {"no configuration", NEW_ALERT("aa", "active", ""), 200, "{}", "scaler 360 ",
         "Alertmanager http://am-0:9093: its configuration could not be read: /api/v2/status: "
         "config.original: missing; its list opens incidents only of alerts that were not muted "
         "for 6m, or longer if its last configuration says so"},
        {"long intervals", NEW_ALERT("aa", "active", ""), 200, STATUS(LONG_NIGHTS, "1"),
         "scaler 3670 ", ""},
        {"no status after them", NEW_ALERT("aa", "active", ""), 503, "", "scaler 3670 ",
         "Alertmanager http://am-0:9093: its configuration could not be read: Alertmanager "
         "http://am-0:9093: HTTP 503; its list opens incidents only of alerts that were not muted "
         "for 6m, or longer if its last configuration says so"},
        {"0.25 without intervals", ALERT("aa", "active"), 200, STATUS(PLAIN, "1"), "scaler 0 ", ""},
        {"no status after none", NEW_ALERT("aa", "active", ""), 503, "", "scaler 360 ",
         "Alertmanager http://am-0:9093: its configuration could not be read: Alertmanager "
         "http://am-0:9093: HTTP 503; its list opens incidents only of alerts that were not muted "
         "for 6m, or longer if its last configuration says so"},
        {"0.25 with intervals", ALERT("aa", "active"), 200, STATUS(NIGHTS, "1"), "scaler -1 ",
         "Alertmanager http://am-0:9093: it is older than 0.28 and does not say what time "
         "intervals mute: its list opens no incident of receiver `scaler`"},
        {"0.25 without a status", ALERT("aa", "active"), 503, "", "scaler -1 ",
         "Alertmanager http://am-0:9093: it is older than 0.28 and does not say what time "
         "intervals mute, and its configuration could not be read: Alertmanager http://am-0:9093: "
         "HTTP 503; its list opens no incidents"},
    };
    settings.alertmanager.url_count = 1;
    open_port();
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p)
        char *groups =
            as_xasprintf("[{\"receiver\":{\"name\":\"scaler\"},\"alerts\":[%s]}]", rows[i].alert);
        answer_list(groups, rows[i].status, rows[i].body);
        cr_expect_str_eq(told_waits, rows[i].waits, "%s: %s", rows[i].what, told_waits);
        cr_expect_str_eq(told_note, rows[i].note, "%s: %s", rows[i].what, told_note);
        cr_expect(i == 0 || !told_anew);
    }
}

Test(monitoring, an_alertmanager_that_has_been_started_anew)
{
    settings.alertmanager.url_count = 1;
    open_port();
    answer_list("[]", 200, STATUS(PLAIN, "1"));
    cr_expect(told_anew, "the first list, also after a reload");
    answer_list("[]", 200, STATUS(PLAIN, "1"));
    cr_expect_not(told_anew);
    answer_list("[]", 503, "");
    cr_expect_not(told_anew);
    answer_list("[]", 200, STATUS(NIGHTS, "2"));
    cr_expect(told_anew);
    answer_list("[]", 200, STATUS(NIGHTS, "2"));
    cr_expect_not(told_anew);
}

/* One mutes, the other does not yet; and they wait differently long. */
Test(monitoring, alertmanagers_that_disagree)
{
    open_port();
    answer("GET", "am-0:9093" GROUPS_PATH, 200, GROUPS(NEW_ALERT("aa", "active", "")));
    answer("GET", "am-1:9093/prefix" GROUPS_PATH, 200,
           GROUPS(NEW_ALERT("aa", "suppressed", "\"nights\"")));
    answer("GET", "am-0:9093" STATUS_PATH, 200, STATUS(PLAIN, "1"));
    answer("GET", "am-1:9093/prefix" STATUS_PATH, 200, STATUS(NIGHTS, "1"));
    list();
    cr_expect_str_eq(told_alerts, "aa+ ");
    cr_expect_str_eq(told_waits, "scaler 190 muted ");
}

Test(monitoring, without_alertmanagers)
{
    settings.alertmanager.url_count = 0;
    open_port();
    list();
    cr_expect_str_eq(told_error, "Alertmanager: none is configured");
    cr_expect_eq(world.request_count, 0);
}

static struct world_answer serve_slowly(void *context, const struct world_request *request)
{
    world.mono.us += 2 * AS_US_PER_S;
    return (struct world_answer){.status = 200, .body = DATA("scalar", "[1,\"1\"]")};
}

Test(monitoring, how_long_it_took)
{
    world.serve = serve_slowly;
    open_port();
    ask("up", AS_QUERY_NUMBER);
    cr_expect_eq(counted_us, 2 * AS_US_PER_S);
}

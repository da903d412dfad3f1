/*
 * Any rows as the state that a process finds at its start: refused with a text that names a row, or
 * restored. What is restored is used for three hours of virtual time, through the real storage and
 * shell: alerts fire, people order and answer, targets answer and fail, notices are sent. Whatever
 * prints state prints it: pages, API, metrics, notices, action log, explanations, charts, `status`.
 *
 * A line is a row: the letter of its kind (as in `letters`), a blank, its key, a blank, its value.
 * Both are percent-encoded where they have '%', a blank or a control character.
 *
 * LLVMFuzzerCustomMutator changes a row as a document, besides as bytes: it removes, repeats and
 * replaces members, shortens and exchanges keys, and repeats rows.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include <alertscaler/base/log.h>
#include <alertscaler/base/random.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/monitoring/payload.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/runtime/shell.h>
#include <alertscaler/tools/engine_config.h>
#include <alertscaler/tools/explain.h>
#include <alertscaler/tools/record_text.h>
#include <alertscaler/ui/history.h>
#include <alertscaler/ui/route.h>

#include "../support/audit_memory.h"
#include "../support/store_memory.h"
#include "../unit/http/exchange.h"
#include "fuzz.h"
#include "ui/api_private.h"

#define ROWS_MAX    64
#define CALLS_MAX   64
#define TURNS       40
#define BODY_MAX    ((size_t)64 * 1024 * 1024)
#define START_US    INT64_C(1795600000000000)
#define LETTERS     "mitno" /* of enum as_store_kind */
#define MUTATED_MAX ((size_t)64 * 1024)

static const char rules[] =
    "targets:\n"
    "  web: {kubernetes: {kind: Deployment, namespace: shop, name: web}, min: 1, max: 60,\n"
    "    cooldown: {up: 1m, down: 2m}, approval: {above: 1, for: 15m},\n"
    "    schedules: [{name: office, timezone: UTC, from: '07:30', to: '20:00', min: 8}]}\n"
    "  any: {kubernetes: {kind: Deployment, namespace: shop, name: '{{ .Labels.app }}'}, max: 20,\n"
    "    allow: {names: ['*']}, cooldown: {up: 1m, down: 1m}}\n"
    "  cart: {kubernetes: {kind: Deployment, namespace: shop, name: cart, container: app,\n"
    "    resource: memory, unit: 64Mi, apply: pods}, min: 1, max: 64}\n"
    "  base: {kubernetes: {kind: StatefulSet, namespace: shop, name: base, container: app,\n"
    "    resource: cpu, unit: 100m}, min: 1, max: 64}\n"
    "  data: {kubernetes: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: shop,\n"
    "    name: data, field: spec.resources.requests.storage, unit: 1Gi}, min: 1, max: 60}\n"
    "  workers: {node_group: {provider: mine, url: 'http://h/g'}, max: 9}\n"
    "  a: {node_group: {provider: mine, url: 'http://h/a'}, max: 9}\n"
    "  b: {node_group: {provider: mine, url: 'http://h/b'}, max: 9}\n"
    "  pool: {pool: {groups: [a, b]}, max: 9, approval: {above: 1, for: 15m}}\n"
    "rules:\n"
    "  - {name: busy, match: ['alertname=\"Busy\"'], target: web, scale_up: {by: 50%},\n"
    "     on_resolved: give_back}\n"
    "  - {name: calm, match: ['alertname=\"Calm\"'], target: web, scale_down: {by: 1}}\n"
    "  - {name: each, match: ['alertname=\"Each\"'], target: any, scale_up: {by: 1}}\n"
    "  - {name: oom, match: ['alertname=\"Oom\"'], target: cart, scale_up: {by: 1}}\n"
    "  - {name: slow, match: ['alertname=\"Slow\"'], target: base, scale_up: {by: 1}}\n"
    "  - {name: full, match: ['alertname=\"Full\"'], target: data, scale_up: {by: 1}}\n"
    "  - {name: more, match: ['alertname=\"More\"'], target: workers, scale_up: {by: 1}}\n"
    "  - {name: both, match: ['alertname=\"Both\"'], target: pool, scale_up: {fit: pending_pods}}\n"
    "  - {name: load, match: ['alertname=\"Load\"'], target: web, pass_through: {query: load}}\n";

#define FIRING(name, more)                                                                         \
    "{\"status\":\"firing\",\"labels\":{\"alertname\":\"" name "\"" more "},"                      \
    "\"annotations\":{\"summary\":\"<b>\"},\"startsAt\":\"2026-11-25T09:46:00Z\"}"
/* clang-format off */
static const char alerts[] =
    "{\"version\":\"4\",\"receiver\":\"scaler\",\"status\":\"firing\",\"alerts\":["
    FIRING("Busy", "") "," FIRING("Load", "") "," FIRING("Each", ",\"app\":\"x\"") ","
    FIRING("Oom", "") "," FIRING("Slow", "") "," FIRING("Full", "") ","
    FIRING("More", "") "," FIRING("Both", "") "]}";
/* clang-format on */

/* ---- the world ---- */

struct call {
    uint64_t call_id;
    bool is_query, is_list;
    as_target_observed_fn *observed;
    as_target_scaled_fn *scaled;
    as_source_queried_fn *queried;
    as_source_listed_fn *listed;
    as_message_done_fn *told;
    void *context;
    struct as_target_ref *ref;
    int32_t to;
};

static struct {
    struct as_config *config;
    struct as_engine_config engine;
    as_mono_time mono;
    struct as_random random;
    struct as_store_memory *state;
    struct as_audit_memory *log;
    struct as_storage *storage;
    struct as_shell *shell;
    struct as_metrics *metrics;
    struct as_api *api;
    struct call calls[CALLS_MAX];
    size_t call_count;
    int32_t size;
    char request[AS_ULID_SIZE]; /* the last that was asked; "": none */
    uint64_t requests;
} world;

static as_mono_time get_mono(const struct as_clock *self)
{
    (void)self;
    return world.mono;
}

static as_wall_time get_wall(const struct as_clock *self)
{
    (void)self;
    return (as_wall_time){START_US + world.mono.us};
}

static const struct as_clock clock_ = {get_mono, get_wall};

static void add_call(const struct call *call)
{
    FUZZ_CHECK(world.call_count < CALLS_MAX);
    world.calls[world.call_count++] = *call;
}

/* What each adapter reads of a target. */
static void check_ref(const struct as_target_ref *ref)
{
    struct as_sized sized;
    FUZZ_CHECK(*ref->id && ref->kind);
    as_sized_read(ref, &sized);
    for (size_t i = 0; i < ref->field_count; i++)
        FUZZ_CHECK(as_target_ref_get(ref, ref->fields[i].key));
}

static void observe(struct as_target_port *self, uint64_t call_id, const struct as_target_ref *ref,
                    const struct as_observe_request *request, as_target_observed_fn *done,
                    void *context)
{
    (void)self;
    (void)request;
    check_ref(ref);
    add_call(&(struct call){
        .call_id = call_id, .observed = done, .context = context, .ref = as_target_ref_copy(ref)});
}

static void scale(struct as_target_port *self, uint64_t call_id, const struct as_target_ref *ref,
                  const struct as_scale_request *request, as_target_scaled_fn *done, void *context)
{
    (void)self;
    check_ref(ref);
    FUZZ_CHECK(strlen(request->version) < AS_VERSION_SIZE && *request->decision_id);
    FUZZ_CHECK(request->rule && request->alert);
    add_call(&(struct call){.call_id = call_id,
                            .scaled = done,
                            .context = context,
                            .ref = as_target_ref_copy(ref),
                            .to = request->to});
}

static void warn(struct as_target_port *self, const struct as_target_ref *ref,
                 const struct as_late_warning *warning)
{
    (void)self;
    check_ref(ref);
    FUZZ_CHECK(warning->decision_id);
}

static struct as_target_port targets = {.observe = observe, .scale = scale, .warn = warn};

static void query(struct as_source_port *self, uint64_t call_id, const struct as_query *asked,
                  as_source_queried_fn *done, void *context)
{
    (void)self;
    (void)asked;
    add_call(&(struct call){.call_id = call_id, .queried = done, .context = context});
}

static void list_alerts(struct as_source_port *self, uint64_t call_id, as_source_listed_fn *done,
                        void *context)
{
    (void)self;
    add_call(&(struct call){.call_id = call_id, .listed = done, .context = context});
}

static struct as_source_port source = {.query = query, .list_alerts = list_alerts};

static void send_message(struct as_messenger *self, uint64_t call_id,
                         const struct as_message *message, as_message_done_fn *done, void *context)
{
    (void)self;
    json_error_t error;
    json_t *body = json_loadb(message->body, message->size, JSON_ALLOW_NUL, &error);
    FUZZ_CHECK(body);
    json_decref(body);
    add_call(&(struct call){.call_id = call_id, .told = done, .context = context});
}

static struct as_messenger messenger = {.send = send_message};

static const char *urls[] = {"http://a", "http://b"};
static const struct as_notify_settings receivers[] = {
    {.name = "events",
     .is_webhook = true,
     .urls = urls,
     .url_count = 2,
     .on = ~0U,
     .max_age_us = AS_US_PER_H},
    {.name = "on-call", .urls = urls, .url_count = 1, .on = ~0U, .max_age_us = AS_US_PER_H},
};

/* ---- answers ---- */

static bool chance(uint64_t one_in)
{
    return as_random_get_below(&world.random, one_in) == 0;
}

static void answer_observe(const struct call *call)
{
    struct as_sized sized;
    struct as_observation observation = {.outcome = AS_REASON_APPLIED,
                                         .replicas = world.size,
                                         .status_replicas = world.size,
                                         .min = -1,
                                         .max = -1};
    as_sized_read(call->ref, &sized);
    if (chance(8))
        observation.outcome = AS_REASON_UNREACHABLE;
    else if (chance(8))
        observation.replicas = (int32_t)as_random_get_below(&world.random, 70);
    observation.resize = (struct as_resize_seen){.is_set = sized.what == AS_SIZED_RESOURCE,
                                                 .is_rolling = chance(3),
                                                 .has_verdict = chance(2),
                                                 .has_failed = chance(4),
                                                 .template_size = chance(2) ? 1 : -1,
                                                 .settled = chance(2) ? world.size : -1,
                                                 .asked = chance(2) ? 1 : -1};
    (void)snprintf(observation.version, sizeof(observation.version), "%llu",
                   (unsigned long long)as_random_get_below(&world.random, 1000));
    (void)snprintf(observation.uid, sizeof(observation.uid), chance(16) ? "u2" : "u1");
    call->observed(call->context, call->call_id, &observation);
}

static void answer_scale(const struct call *call)
{
    static const enum as_reason outcomes[] = {AS_REASON_APPLIED, AS_REASON_APPLIED,
                                              AS_REASON_CONFLICT, AS_REASON_DID_NOT_COME,
                                              AS_REASON_TIMEOUT};
    struct as_scale_result result = {
        .outcome = outcomes[as_random_get_below(&world.random, AS_ARRAY_SIZE(outcomes))],
        .attempts = 1,
        .method = "PATCH"};
    result.is_ambiguous = result.outcome == AS_REASON_TIMEOUT;
    if (result.outcome == AS_REASON_APPLIED)
        world.size = call->to;
    call->scaled(call->context, call->call_id, &result);
}

static void answer(const struct call *call)
{
    static const struct as_alert_list none = {.error = NULL};
    struct as_query_result result = {.value = (double)as_random_get_below(&world.random, 80)};
    if (call->observed)
        answer_observe(call);
    else if (call->scaled)
        answer_scale(call);
    else if (call->queried)
        call->queried(call->context, call->call_id, &result);
    else if (call->listed)
        call->listed(call->context, call->call_id, &none);
    else
        call->told(call->context, call->call_id, chance(3) ? "HTTP 503" : NULL);
}

/* ---- what is printed ---- */

static void look(void *context, struct as_view *view_out)
{
    (void)context;
    *view_out = (struct as_view){.mono = world.mono,
                                 .wall = get_wall(&clock_),
                                 .started = {START_US},
                                 .engine = as_shell_get_engine(world.shell),
                                 .storage = world.storage,
                                 .shell = world.shell,
                                 .ruleset = world.config->ruleset,
                                 .config_digest = "c0ffee",
                                 .leader = {.is_leader = true, .identity = "one", .holder = "one"}};
}

static void ask(const char *path)
{
    struct as_routes routes = {.api = world.api, .prefix = ""};
    struct as_http_exchange exchange = {.method = "GET", .path = path, .query = ""};
    as_route_answer(as_route_find("GET", path), &routes, &exchange, "");
    FUZZ_CHECK(exchange.replies == 1 && exchange.status > 0);
    if (strcmp(exchange.content_type, "application/json") == 0) {
        json_t *body = json_loadb(exchange.body, exchange.body_size, JSON_ALLOW_NUL, NULL);
        FUZZ_CHECK(body);
        json_decref(body);
    }
    exchange_forget(&exchange);
}

static void ask_of(const char *before, const char *id)
{
    static const char hex[] = "0123456789ABCDEF";
    struct as_buf path = AS_BUF_INIT(BODY_MAX);
    as_buf_append_str(&path, before);
    for (const unsigned char *at = (const unsigned char *)id; *at; at++)
        as_buf_printf(&path, "%%%c%c", hex[*at >> 4], hex[*at & 15]);
    if (as_buf_check(&path) == 0)
        ask(path.data);
    as_buf_deinit(&path);
}

struct ids {
    char *items[8];
    size_t count;
};

static void note_target(void *context, const struct as_target_view *view)
{
    struct ids *ids = context;
    if (ids->count < AS_ARRAY_SIZE(ids->items))
        ids->items[ids->count++] = as_xstrdup(view->id);
}

static void note_request(void *context, const struct as_approval_view *view)
{
    (void)context;
    if (strlen(view->state.id) < sizeof(world.request))
        (void)snprintf(world.request, sizeof(world.request), "%s", view->state.id);
}

static void print_everything(void)
{
    static const char *const paths[] = {
        "/",
        "/incidents",
        "/rules",
        "/metrics",
        "/-/ready",
        "/api/v1/status",
        "/api/v1/targets",
        "/api/v1/approvals",
        "/api/v1/incidents",
        "/api/v1/rules",
        "/api/v1/decisions",
    };
    struct ids ids = {.count = 0};
    for (size_t i = 0; i < AS_ARRAY_SIZE(paths); i++)
        ask(paths[i]);
    as_engine_visit_targets(as_shell_get_engine(world.shell), world.mono, get_wall(&clock_),
                            note_target, &ids);
    as_engine_visit_approvals(as_shell_get_engine(world.shell), world.mono, get_wall(&clock_),
                              note_request, NULL);
    for (size_t i = 0; i < ids.count; i++) {
        ask_of("/targets/", ids.items[i]);
        ask_of("/groups/", ids.items[i]);
        ask_of("/api/v1/targets/", ids.items[i]);
        free(ids.items[i]);
    }
    if (!TAILQ_EMPTY(&world.api->decisions)) {
        ask_of("/decisions/", TAILQ_FIRST(&world.api->decisions)->id);
        ask_of("/api/v1/decisions/", TAILQ_FIRST(&world.api->decisions)->id);
    }
}

/* The records, as the commands for the action log and the charts read them. */
static void read_log(void)
{
    size_t size;
    const char *at = as_audit_memory_get_lines(world.log, &size), *end = at + size;
    struct as_history *history = as_history_new(256 * 1024);
    json_t *actions = json_array(), *commands = json_array(), *incidents = json_array();
    json_t *decision = NULL;
    const char *line = NULL; /* its record */
    size_t line_size = 0;
    as_wall_time previous = {0};
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        FUZZ_CHECK(newline);
        json_t *record = json_loadb(at, (size_t)(newline - at), 0, NULL);
        as_wall_time time;
        struct as_error error;
        if (record && as_record_get_time(record, &time, &error) == 0) {
            const char *kind = as_record_get_text(record, "kind");
            as_history_add_record(history, record, time, previous);
            previous = time;
            json_t *list = strcmp(kind, "action") == 0     ? actions
                           : strcmp(kind, "command") == 0  ? commands
                           : strcmp(kind, "incident") == 0 ? incidents
                                                           : NULL;
            if (list)
                json_array_append(list, record);
            if (strcmp(kind, "decision") == 0) {
                json_decref(decision);
                decision = json_incref(record);
                line = at;
                line_size = (size_t)(newline - at);
            }
        }
        json_decref(record);
        at = newline + 1;
    }
    if (decision) {
        char *text = NULL;
        size_t text_size;
        FILE *out = open_memstream(&text, &text_size);
        FUZZ_CHECK(out);
        as_explain_print(&(struct as_explanation){.decision = decision,
                                                  .line = line,
                                                  .line_size = line_size,
                                                  .actions = actions,
                                                  .commands = commands,
                                                  .incidents = incidents},
                         out);
        FUZZ_CHECK(fclose(out) == 0);
        free(text);
    }
    json_decref(decision);
    json_decref(actions);
    json_decref(commands);
    json_decref(incidents);
    as_history_free(history);
}

/* ---- a process ---- */

static void on_effect(void *context, const struct as_effect *effect, const struct as_buf *record)
{
    (void)context;
    as_metrics_on_effect(world.metrics, effect);
    as_api_on_effect(world.api, effect, record, get_wall(&clock_));
    if (effect->kind == AS_EFFECT_RECORD_APPROVAL &&
        strlen(effect->approval->request->id) < sizeof(world.request))
        (void)snprintf(world.request, sizeof(world.request), "%s", effect->approval->request->id);
}

static void on_deadline(void *context, as_mono_time deadline)
{
    (void)context;
    (void)deadline; /* the turns pass over it */
}

static void on_durable(void *context, uint64_t call_id, int status, const char *error)
{
    (void)context;
    (void)error;
    FUZZ_CHECK(status == 0);
    as_shell_on_durable(world.shell, call_id);
}

static void on_hashed(void *context, uint64_t number, const char *hash)
{
    (void)context;
    as_shell_on_hashed(world.shell, number, hash);
}

static void on_failed(void *context, int status, const char *error)
{
    (void)context;
    (void)status;
    fprintf(stderr, "the storage fails: %s\n", error);
    abort();
}

/* False: the rows are refused. */
static bool start(void)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_storage_config config = as_storage_config_default;
    struct as_store *store = as_store_memory_attach(world.state);
    config.store = store;
    config.audit = as_audit_memory_attach(world.log);
    config.clock = &clock_;
    config.callbacks = (struct as_storage_callbacks){
        .durable = on_durable, .hashed = on_hashed, .failed = on_failed};
    int status = as_storage_new(&config, &world.storage, &error);
    if (status != 0) {
        FUZZ_CHECK(*error.text);
        return false;
    }
    const struct as_shell_config shell_config = {
        .clock = &clock_,
        .targets = &targets,
        .source = &source,
        .storage = world.storage,
        .instance = "here",
        .boot = "b1",
        .version = "0",
        .config_digest = "c0ffee",
        .engine = world.engine,
        .ruleset = world.config->ruleset,
        .notifier = {.receivers = receivers,
                     .receiver_count = AS_ARRAY_SIZE(receivers),
                     .messenger = &messenger,
                     .instance = "here",
                     .external_url = "http://here",
                     .unread_us = AS_NOTIFIER_UNREAD_US},
        .callbacks = {on_effect, on_deadline, NULL, NULL, NULL},
    };
    status = as_shell_new(&shell_config, store, &world.shell, &error);
    FUZZ_CHECK(status == 0 || *error.text);
    return status == 0;
}

static void settle(void)
{
    while (as_storage_step(world.storage))
        as_storage_deliver(world.storage);
}

static void answer_calls(void)
{
    struct call calls[CALLS_MAX];
    const size_t count = world.call_count;
    memcpy(calls, world.calls, sizeof(calls));
    world.call_count = 0;
    for (size_t i = 0; i < count; i++) {
        answer(&calls[i]);
        as_target_ref_free(calls[i].ref);
        settle();
    }
}

static void notify(void)
{
    struct as_notification *notification;
    FUZZ_CHECK(as_payload_decode(alerts, strlen(alerts), &notification, NULL) == 0);
    as_shell_notify(world.shell, notification, ++world.requests);
    as_notification_free(notification);
}

/* One of what people do. */
static void order(void)
{
    static const char *const names[] = {"web", "web", "cart", "workers", "a", "any", NULL};
    struct as_operator_command order = {
        .kind = (enum as_operator_command_kind)as_random_get_below(&world.random,
                                                                   AS_OPERATOR_COMMAND_KIND_COUNT),
        .who = "",
        .remote = "",
        .reason = "test",
        .for_us = 10 * AS_US_PER_MIN,
        .replicas = 5,
    };
    if (order.kind == AS_OPERATOR_COMMAND_APPROVE || order.kind == AS_OPERATOR_COMMAND_DENY)
        order.request = world.request;
    else if (order.kind == AS_OPERATOR_COMMAND_PAUSE || order.kind == AS_OPERATOR_COMMAND_RESUME)
        order.target = names[as_random_get_below(&world.random, AS_ARRAY_SIZE(names))];
    else
        order.target = names[as_random_get_below(&world.random, AS_ARRAY_SIZE(names) - 1)];
    as_shell_order(world.shell, &order, ++world.requests);
}

static void reload(void)
{
    as_shell_reload(world.shell, world.config->ruleset, &world.engine, "c0ffee", &targets, &source,
                    NULL, "");
}

static void live(void)
{
    const struct as_halt halt = {"switch", "stop"}, no_halt = {"switch", NULL};
    print_everything();
    for (int turn = 0; turn < TURNS; turn++) {
        settle();
        answer_calls();
        world.mono.us += (int64_t)(1 + as_random_get_below(&world.random, 300)) * AS_US_PER_S;
        as_shell_wake(world.shell);
        if (turn % 8 == 2)
            notify();
        else if (turn % 8 == 3)
            as_shell_halt(world.shell, turn % 16 == 3 ? &halt : &no_halt);
        else if (turn == TURNS / 2)
            reload();
        else if (turn % 2 == 1)
            order();
        if (turn % 16 == 15)
            print_everything();
    }
    settle();
    print_everything();
    as_shell_stop(world.shell);
    settle();
}

static void stop(void)
{
    for (size_t i = 0; i < world.call_count; i++)
        as_target_ref_free(world.calls[i].ref);
    world.call_count = 0;
    world.shell = as_shell_free(world.shell);
    world.storage = as_storage_free(world.storage);
}

/* ---- rows ---- */

struct row {
    enum as_store_kind kind;
    struct as_buf key, value;
};

struct rows {
    struct row items[ROWS_MAX];
    size_t count;
};

static int get_digit(int byte)
{
    return byte >= '0' && byte <= '9'   ? byte - '0'
           : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
                                        : -1;
}

static void decode(const char *text, size_t size, struct as_buf *out)
{
    for (size_t i = 0; i < size; i++) {
        const bool is_coded = text[i] == '%' && i + 2 < size && get_digit(text[i + 1]) >= 0 &&
                              get_digit(text[i + 2]) >= 0;
        const char byte =
            is_coded ? (char)(get_digit(text[i + 1]) * 16 + get_digit(text[i + 2])) : text[i];
        as_buf_append(out, &byte, 1);
        i += is_coded ? 2 : 0;
    }
}

static void encode(const struct as_buf *text, struct as_buf *out)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text->size; i++) {
        const unsigned char byte = (unsigned char)text->data[i];
        if (byte > ' ' && byte != '%' && byte != 0x7f)
            as_buf_append(out, &text->data[i], 1);
        else
            as_buf_printf(out, "%%%c%c", hex[byte >> 4], hex[byte & 15]);
    }
}

static void read_rows(const char *data, size_t size, struct rows *rows)
{
    const char *end = data + size;
    rows->count = 0;
    for (const char *at = data; at < end && rows->count < ROWS_MAX;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop_ = newline ? newline : end;
        const char *letter = at < stop_ && *at ? strchr(LETTERS, *at) : NULL;
        const char *key = stop_ - at > 2 ? at + 2 : stop_;
        const char *blank = memchr(key, ' ', (size_t)(stop_ - key));
        if (letter) {
            struct row *row = &rows->items[rows->count++];
            row->kind = (enum as_store_kind)(letter - LETTERS);
            row->key = row->value = AS_BUF_INIT(BODY_MAX);
            decode(key, (size_t)((blank ? blank : stop_) - key), &row->key);
            if (blank)
                decode(blank + 1, (size_t)(stop_ - blank - 1), &row->value);
        }
        at = stop_ + 1;
    }
}

static void free_rows(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        as_buf_deinit(&rows->items[i].key);
        as_buf_deinit(&rows->items[i].value);
    }
}

static const char *get_bytes(const struct as_buf *buf)
{
    return buf->size > 0 ? buf->data : "";
}

static void plant(const struct rows *rows)
{
    struct as_store *store = as_store_memory_attach(world.state);
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->items[i];
        const struct as_store_change change = {.kind = row->kind,
                                               .key = get_bytes(&row->key),
                                               .key_size = row->key.size,
                                               .value = get_bytes(&row->value),
                                               .value_size = row->value.size};
        FUZZ_CHECK(store->commit(store, &change, 1, NULL) == 0);
    }
    store->close(store);
}

static uint64_t sum(const uint8_t *data, size_t size)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * UINT64_C(1099511628211);
    return hash;
}

static void configure(void)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    char path[64];
    const int fd = memfd_create("rules", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, rules, strlen(rules)) == (ssize_t)strlen(rules));
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (as_config_load_rules((const char *const[]){path}, 1, &world.config, &diagnostics) !=
        AS_CONFIG_OK) {
        as_diagnostics_print(&diagnostics, stderr);
        abort();
    }
    as_diagnostics_deinit(&diagnostics);
    close(fd);
    world.engine = as_engine_config_make(&world.config->settings, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rows rows;
    if (!world.config) {
        as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, open("/dev/null", O_WRONLY | O_CLOEXEC));
        configure();
    }
    world.mono.us = 1000 * AS_US_PER_S;
    world.size = 4;
    world.request[0] = '\0';
    as_random_init(&world.random, sum(data, size));
    world.state = as_store_memory_new();
    world.log = as_audit_memory_new();
    world.metrics = as_metrics_new();
    world.api = as_api_new(&(struct as_api_config){
        .instance = "here", .metrics = world.metrics, .view = look, .context = NULL});
    read_rows((const char *)data, size, &rows);
    plant(&rows);
    free_rows(&rows);
    const bool is_taken = start();
    if (is_taken)
        live();
    stop();
    read_log();
    FUZZ_CHECK(start() || !is_taken); /* what it has written can be restored */
    if (is_taken)
        settle();
    stop();
    as_api_free(world.api);
    as_metrics_free(world.metrics);
    as_audit_memory_free(world.log);
    as_store_memory_free(world.state);
    return 0;
}

/* ---- mutations ---- */

static json_t *make_value(struct as_random *random)
{
    static const char *const texts[] = {"",
                                        "x",
                                        "web",
                                        "a/b",
                                        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
                                        "begin",
                                        "end",
                                        "\xc2\x9b\xe2\x80\xae<b>",
                                        "needs_approval"};
    static const json_int_t numbers[] = {
        0, 1, -1, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, INT64_MAX / 4, UINT32_MAX, START_US};
    char long_text[600];
    switch (as_random_get_below(random, 8)) {
    case 0: return json_null();
    case 1: return json_true();
    case 2: return json_array();
    case 3: return json_object();
    case 4: return json_string(texts[as_random_get_below(random, AS_ARRAY_SIZE(texts))]);
    case 5:
        memset(long_text, 'l', sizeof(long_text));
        long_text[sizeof(long_text) - 1] = '\0';
        return json_string(long_text);
    }
    return json_integer(numbers[as_random_get_below(random, AS_ARRAY_SIZE(numbers))]);
}

static void mutate_array(json_t *array, size_t at, struct as_random *random)
{
    switch (as_random_get_below(random, 3)) {
    case 0: json_array_remove(array, at); break;
    case 1: json_array_append(array, json_array_get(array, at)); break;
    case 2: json_array_set_new(array, at, make_value(random)); break;
    }
}

/* One change somewhere in the document. `other`: where values may come from. */
static void mutate_json(json_t *json, json_t *other, struct as_random *random)
{
    const size_t size = json_is_object(json) ? json_object_size(json) : json_array_size(json);
    if (size == 0)
        return;
    const size_t at = as_random_get_below(random, size);
    const char *key = NULL;
    json_t *child = json_array_get(json, at);
    if (json_is_object(json)) {
        void *iterator = json_object_iter(json);
        for (size_t i = 0; i < at; i++)
            iterator = json_object_iter_next(json, iterator);
        key = json_object_iter_key(iterator);
        child = json_object_iter_value(iterator);
    }
    if ((json_is_object(child) || json_is_array(child)) && as_random_get_below(random, 3) > 0) {
        mutate_json(child, json_object_get(other, key ? key : ""), random);
    } else if (!key) {
        mutate_array(json, at, random);
    } else if (as_random_get_below(random, 3) == 0) {
        json_object_del(json, key);
    } else if (json_object_get(other, key) && as_random_get_below(random, 2) == 0) {
        json_object_set(json, key, json_object_get(other, key));
    } else {
        json_object_set_new(json, key, make_value(random));
    }
}

static void mutate_value(struct row *row, const struct row *other, struct as_random *random)
{
    json_t *json = json_loadb(get_bytes(&row->value), row->value.size, 0, NULL);
    json_t *from = json_loadb(get_bytes(&other->value), other->value.size, 0, NULL);
    if (json) {
        mutate_json(json, from, random);
        char *text = json_dumps(json, JSON_COMPACT);
        as_buf_clear(&row->value);
        as_buf_append_str(&row->value, text ? text : "");
        free(text);
    }
    json_decref(json);
    json_decref(from);
}

static void mutate_key(struct row *row, const struct row *other, struct as_random *random)
{
    const size_t size = row->key.size;
    const size_t at = as_random_get_below(random, size + 1);
    switch (as_random_get_below(random, 4)) {
    case 0: row->key.size = at; break;
    case 1:
        as_buf_clear(&row->key);
        as_buf_append(&row->key, get_bytes(&other->key), other->key.size);
        break;
    case 2: as_buf_append(&row->key, &"/\0x"[as_random_get_below(random, 3)], 1); break;
    case 3:
        if (at < size)
            row->key.data[at] = (char)as_random_get_below(random, 256);
        break;
    }
}

static void copy_row(struct rows *rows, const struct row *from)
{
    if (rows->count == ROWS_MAX)
        return;
    struct row *row = &rows->items[rows->count++];
    *row = (struct row){from->kind, AS_BUF_INIT(BODY_MAX), AS_BUF_INIT(BODY_MAX)};
    as_buf_append(&row->key, get_bytes(&from->key), from->key.size);
    as_buf_append(&row->value, get_bytes(&from->value), from->value.size);
}

/* libFuzzer's name; the replay without libFuzzer calls it too. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct rows rows;
    struct as_random random;
    struct as_buf text = AS_BUF_INIT(MUTATED_MAX);
    as_random_init(&random, seed);
    read_rows((const char *)data, size, &rows);
    for (uint64_t n = 1 + as_random_get_below(&random, 3); n > 0 && rows.count > 0; n--) {
        struct row *row = &rows.items[as_random_get_below(&random, rows.count)];
        const struct row *other = &rows.items[as_random_get_below(&random, rows.count)];
        const uint64_t what = as_random_get_below(&random, 16);
        if (what < 10)
            mutate_value(row, other, &random);
        else if (what < 13)
            mutate_key(row, other, &random);
        else if (what == 13)
            copy_row(&rows, row);
        else if (what == 14)
            row->kind = other->kind;
        else if (row->value.size > 0)
            row->value.data[as_random_get_below(&random, row->value.size)] =
                (char)as_random_get_below(&random, 256);
    }
    for (size_t i = 0; i < rows.count; i++) {
        as_buf_printf(&text, "%c ", LETTERS[rows.items[i].kind]);
        encode(&rows.items[i].key, &text);
        as_buf_append_str(&text, " ");
        encode(&rows.items[i].value, &text);
        as_buf_append_str(&text, "\n");
    }
    free_rows(&rows);
    if (as_buf_check(&text) == 0 && text.size > 0 && text.size <= max_size) {
        memcpy(data, text.data, text.size);
        size = text.size;
    }
    as_buf_deinit(&text);
    return size;
}

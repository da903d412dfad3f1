/*
 * Locks as Leases against a scripted API server: its requests and their number, and that neither a
 * lost term nor a server that refuses everything does any harm.
 */
#include <alertscaler/kube/lock_leases.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/kube/lock_lease.h>

#include "pod.h"

#define S           AS_US_PER_S
#define COLLECTION  "/apis/coordination.k8s.io/v1/namespaces/ops/leases"
#define OBJECTS_MAX 2000

static struct as_lock_mirror *mirror;
static bool leads = true;

/* The API server */

struct object {
    char name[AS_LOCK_LEASE_NAME_SIZE];
    char *json;
    unsigned version;
};

static struct object objects[OBJECTS_MAX];
static size_t object_count, served, in_flight_max, page_size = 3;
static unsigned versions, refuse_with; /* 0: nothing is refused */
static struct as_buf text;

static struct object *find(const char *name)
{
    for (size_t i = 0; i < object_count; i++)
        if (strcmp(objects[i].name, name) == 0)
            return &objects[i];
    return NULL;
}

static void drop(struct object *object)
{
    free(object->json);
    *object = objects[--object_count];
}

struct putting {
    const char *body;
    struct object *object;
};

/* What it has of it, with the version that it gives. */
static void put(void *context, const struct as_lock_lease *lease)
{
    const struct putting *putting = context;
    struct as_lock_lease kept = *lease;
    char version[16];
    AS_CLEANUP(as_buf_deinit) struct as_buf json = AS_BUF_INIT(1 << 20);
    snprintf(version, sizeof(version), "%u", ++versions);
    kept.version = version;
    as_lock_lease_encode(&kept, "ops", &json);
    free(putting->object->json);
    putting->object->json = as_xstrdup(json.data);
    putting->object->version = versions;
    snprintf(putting->object->name, sizeof(putting->object->name), "%s", lease->name);
}

static struct world_answer answer(int status, const char *body)
{
    return (struct world_answer){.outcome = AS_HTTP_ANSWERED, .status = status, .body = body};
}

static struct world_answer list(const char *url)
{
    const char *next = strstr(url, "continue=");
    const size_t from = next ? strtoul(next + strlen("continue="), NULL, 10) : 0;
    as_buf_clear(&text);
    as_buf_append_str(&text, "{\"kind\":\"LeaseList\",\"metadata\":{");
    if (from + page_size < object_count)
        as_buf_printf(&text, "\"continue\":\"%zu\"", from + page_size);
    as_buf_append_str(&text, "},\"items\":[");
    for (size_t i = from; i < object_count && i < from + page_size; i++)
        as_buf_printf(&text, "%s%s", i > from ? "," : "", objects[i].json);
    as_buf_append_str(&text, "]}");
    return answer(200, text.data);
}

static struct world_answer make(const struct world_request *request)
{
    struct as_error error = AS_ERROR_INIT;
    /* to be decoded, it needs a version as if it were there */
    const char *at = strstr(request->body, "\"namespace\":\"ops\",");
    cr_assert(at && !strstr(request->body, "resourceVersion"), "%s", request->body);
    AS_CLEANUP(as_free_p)
    char *body = as_xasprintf("%.*s\"resourceVersion\":\"0\",%s", (int)(at - request->body),
                              request->body, at);
    struct putting putting = {request->body, &objects[object_count]};
    cr_assert_lt(object_count, OBJECTS_MAX);
    objects[object_count] = (struct object){.json = NULL};
    cr_assert_eq(as_lock_lease_decode(body, strlen(body), put, &putting, &error), 0, "%s",
                 error.text);
    object_count++;
    return answer(201, putting.object->json);
}

static struct world_answer change(const struct world_request *request, const char *name)
{
    struct as_error error = AS_ERROR_INIT;
    struct object *object = find(name);
    if (!object)
        return answer(404, "{\"kind\":\"Status\",\"message\":\"gone\"}");
    if (strcmp(request->method, "GET") == 0)
        return answer(200, object->json);
    char version[32];
    snprintf(version, sizeof(version), "\"resourceVersion\":\"%u\"", object->version);
    if (!strstr(request->body, version))
        return answer(409, "{\"kind\":\"Status\",\"message\":\"changed\"}");
    if (strcmp(request->method, "DELETE") == 0) {
        drop(object);
        return answer(200, "{\"kind\":\"Status\",\"status\":\"Success\"}");
    }
    struct putting putting = {request->body, object};
    cr_assert_eq(as_lock_lease_decode(request->body, strlen(request->body), put, &putting, &error),
                 0, "%s", error.text);
    return answer(200, object->json);
}

static struct world_answer serve(void *context, const struct world_request *request)
{
    const char *path = strstr(request->url, COLLECTION);
    const size_t in_flight = world.request_count - served++;
    cr_assert_not_null(path, "%s", request->url);
    in_flight_max = in_flight > in_flight_max ? in_flight : in_flight_max;
    path += strlen(COLLECTION);
    if (refuse_with)
        return answer((int)refuse_with, "{\"kind\":\"Status\",\"message\":\"no\"}");
    if (*path == '?')
        return list(path);
    return *path == '/' ? change(request, path + 1) : make(request);
}

/* The leader */

static struct as_leader_view look(const struct as_leader *self)
{
    return (struct as_leader_view){.is_leader = leads, .identity = "me_1", .holder = "me_1"};
}

static bool may_act(const struct as_leader *self)
{
    return leads;
}

static struct as_leader leader = {.look = look, .may_act = may_act};

static void open_mirror(void)
{
    struct as_kube_access_config config = {NULL, NULL};
    struct as_error error = AS_ERROR_INIT;
    struct as_kube_access *access_;
    cr_assert_eq(as_kube_access_new(&config, &env, &access_, &error), 0, "%s", error.text);
    mirror = as_lock_leases_new("ops", &leader, access_, &env);
}

static void setup(void)
{
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, STDERR_FILENO);
    setup_pod("first");
    world.serve = serve;
    text = AS_BUF_INIT(16 << 20);
    open_mirror();
}

static void teardown(void)
{
    mirror->close(mirror);
    while (object_count > 0)
        drop(&objects[0]);
    as_buf_deinit(&text);
    teardown_pod();
}

TestSuite(lock_leases, .init = setup, .fini = teardown);

static char ids[OBJECTS_MAX][80];

static void show(size_t count)
{
    struct as_lock *locks = as_xcalloc(count + 1, sizeof(*locks));
    for (size_t i = 0; i < count; i++) {
        snprintf(ids[i], sizeof(ids[i]), "kubernetes/default/apps/v1/Deployment/s/web-%zu", i);
        locks[i] = (struct as_lock){.target = ids[i],
                                    .since = {AS_US_PER_DAY},
                                    .up_until = {true, {2 * AS_US_PER_DAY}},
                                    .decision = "01D"};
    }
    mirror->show(mirror, locks, count);
    free(locks);
}

static void pass(int64_t us)
{
    for (int64_t step = S / 50; us > 0; us -= step)
        world_advance(&world, step);
}

static size_t count_requests(const char *method)
{
    size_t count = 0;
    for (size_t i = 0; i < world.request_count; i++)
        count += strcmp(world.requests[i].method, method) == 0;
    return count;
}

Test(lock_leases, nothing_is_asked_before_it_is_known_what_is_locked)
{
    pass(60 * S);
    cr_expect_eq(world.request_count, 0);
}

Test(lock_leases, a_lock_is_shown_and_goes)
{
    show(2);
    pass(S);
    cr_assert_eq(object_count, 2);
    cr_expect(strstr(objects[0].json, "\"holderIdentity\":\"me_1\""));
    cr_expect(strstr(objects[0].json, "\"alertscaler.io/decision\":\"01D\""));
    cr_expect_eq(mirror->count_behind(mirror), 0);
    const size_t before = world.request_count;
    for (int i = 0; i < 20; i++) {
        show(2);
        pass(S);
    }
    cr_expect_eq(world.request_count, before, "what is shown is not written again");
    show(1);
    pass(S);
    cr_expect_eq(object_count, 1);
}

Test(lock_leases, a_new_leader_lists_page_by_page_and_removes_what_is_left)
{
    show(10);
    pass(2 * S);
    cr_assert_eq(object_count, 10);
    mirror->close(mirror);
    open_mirror();
    const size_t gets = count_requests("GET");
    show(4);
    pass(2 * S);
    cr_expect_eq(object_count, 4);
    cr_expect_eq(count_requests("GET") - gets, 4, "ten in pages of three");
    cr_expect_eq(count_requests("DELETE"), 6);
    cr_expect_eq(count_requests("PUT"), 0, "the others are as they were");
    for (size_t i = 0; i < 4; i++) {
        char name[AS_LOCK_LEASE_NAME_SIZE];
        as_lock_lease_print_name(ids[i], name);
        cr_expect_not_null(find(name));
    }
}

Test(lock_leases, what_was_deleted_by_hand_is_made_again_after_a_while)
{
    show(3);
    pass(S);
    drop(&objects[1]);
    pass(AS_LOCK_LEASES_LIST_US + S);
    cr_expect_eq(object_count, 3);
}

Test(lock_leases, so_many_a_second_and_so_many_at_a_time)
{
    page_size = 200;
    show(1000);
    pass(S);
    cr_expect_leq(world.request_count, AS_LOCK_LEASES_BURST + AS_LOCK_LEASES_PER_S + 1);
    pass(9 * S);
    cr_expect_leq(world.request_count, AS_LOCK_LEASES_BURST + 10 * AS_LOCK_LEASES_PER_S + 1);
    cr_expect_geq(object_count, 9 * AS_LOCK_LEASES_PER_S);
    cr_expect_eq(mirror->count_behind(mirror), 1000 - object_count);
    cr_expect_leq(in_flight_max, AS_LOCK_LEASES_IN_FLIGHT);
    pass(1000 / AS_LOCK_LEASES_PER_S * S);
    cr_expect_eq(object_count, 1000);
    cr_expect_eq(mirror->count_behind(mirror), 0);
}

Test(lock_leases, what_ended_before_it_was_its_turn_is_never_made)
{
    show(1000);
    pass(5 * S);
    show(0);
    pass(30 * S);
    cr_expect_eq(object_count, 0);
    cr_expect_lt(world.request_count, 400);
}

Test(lock_leases, who_does_not_lead_writes_nothing)
{
    leads = false;
    show(5);
    pass(60 * S);
    cr_expect_eq(world.request_count, 0);
    leads = true;
    pass(2 * S);
    cr_expect_eq(object_count, 5);
    leads = false;
    show(0);
    pass(60 * S);
    cr_expect_eq(object_count, 5, "the next leader's affair");
}

Test(lock_leases, a_server_that_refuses_is_asked_less_and_less)
{
    refuse_with = 403;
    show(1000);
    pass(10 * AS_US_PER_MIN);
    cr_expect_leq(world.request_count, 6 + 10 + 1, "%zu", world.request_count);
    refuse_with = 0;
    pass(AS_LOCK_LEASES_PAUSE_MAX_US + 2 * S);
    cr_expect_gt(object_count, 20, "it goes on");
}

Test(lock_leases, a_failure_in_the_middle_is_tried_again)
{
    show(100);
    pass(S);
    refuse_with = 500;
    pass(5 * S);
    refuse_with = 0;
    pass(30 * S);
    cr_expect_eq(object_count, 100);
    cr_expect_eq(mirror->count_behind(mirror), 0);
}

Test(lock_leases, what_somebody_has_changed_is_read_before_it_is_deleted)
{
    struct as_error error = AS_ERROR_INIT;
    show(1);
    pass(S);
    struct putting putting = {NULL, &objects[0]};
    AS_CLEANUP(as_free_p) char *json = as_xstrdup(objects[0].json);
    cr_assert_eq(as_lock_lease_decode(json, strlen(json), put, &putting, &error), 0);
    const size_t gets = count_requests("GET");
    show(0);
    pass(S);
    cr_expect_eq(object_count, 0);
    cr_expect_eq(count_requests("DELETE"), 2, "the first was of the version that had been");
    cr_expect_eq(count_requests("GET"), gets + 1);
}

Test(lock_leases, a_close_in_the_middle_leaves_nothing_behind)
{
    show(50);
    for (int i = 0; i < 3; i++) {
        world_advance(&world, 0);
        mirror->close(mirror);
        open_mirror();
        show(50);
    }
}

/*
 * Node groups of Google Cloud: managed instance groups of Compute Engine (gce), and node pools of
 * Kubernetes Engine (gke), which are one managed instance group per zone:
 * https://cloud.google.com/compute/docs/reference/rest/v1/instanceGroupManagers
 * https://cloud.google.com/compute/docs/reference/rest/v1/regionInstanceGroupManagers
 * https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters.nodePools
 *
 * A resize is absolute and unconditional: if somebody else has made the group larger, it would make
 * the group smaller and choose the instances to remove. So the size is read again before it is set,
 * and before instances are deleted by name, because draining took time. Pending instances are
 * deleted by name too.
 *
 * A change of several requests is not left half done because an answer was lost: the request is
 * repeated, and its request id prevents a second execution.
 *
 * Not here: credentials and errors (login/credentials_google.c).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cloud/provider_group.h>

#include "provider_answer.h"
#include "providers.h"

/* What both APIs have in common. */

/* `project` of the group, else of the account, else of the environment, else of the credentials.
 * NULL after failing the op. */
static const char *google_find_project(struct as_group_op *op)
{
    const char *variable = op->op.get_variable("GOOGLE_CLOUD_PROJECT");
    const char *const places[] = {as_target_ref_get(op->group, "project"),
                                  as_account_get(op->account, "project"), variable,
                                  op->credentials->project};
    for (size_t i = 0; i < AS_ARRAY_SIZE(places); i++) {
        if (!as_str_is_empty(places[i]))
            return places[i];
    }
    as_cloud_op_fail(&op->op, AS_CLOUD_OP_CONFIGURATION,
                     "the project is not known: set `project` of the provider");
    return NULL;
}

/* "requestId=UUID" for the change that `what` describes. The same change gets the same id, so that
 * it is not carried out twice. Memory of the op. */
static const char *google_make_request_id(struct as_group_op *op, const char *what)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    const char *text = as_cloud_op_print(&op->op, "%s\n%s", op->idempotency, what);
    if (EVP_Digest(text, strlen(text), digest, &size, EVP_sha256(), NULL) != 1)
        abort();
    digest[6] = (unsigned char)((digest[6] & 0x0F) | 0x40); /* in the form of a random UUID */
    digest[8] = (unsigned char)((digest[8] & 0x3F) | 0x80);
    AS_CLEANUP(as_buf_deinit) struct as_buf hex = AS_BUF_INIT(32);
    as_encode_hex(&hex, digest, 16);
    return as_cloud_op_print(&op->op, "requestId=%.8s-%.4s-%.4s-%.4s-%.12s", hex.data, hex.data + 8,
                             hex.data + 12, hex.data + 16, hex.data + 20);
}

/* Managed instance groups: one, or several that form one node group. An instance's id is
 * ZONE/GROUP/NAME. An operation is projects/P/PLACE/operations/NAME; several operations have spaces
 * between them. */

struct mig {           /* texts are memory of the op, percent-encoded where needed */
    const char *place; /* "projects/p/zones/z", "projects/p/regions/r" */
    const char *name;
    int32_t size, wanted;
};

struct mig_work {         /* a group op's state */
    const char *endpoint; /* without a slash at its end */
    const char *project;  /* percent-encoded; if there are several groups */
    struct mig *migs;     /* all groups of the node group */
    size_t count;
    /* private */
    size_t at;
    bool with_instances, has_standby, has_begun;
    unsigned tries;      /* of the present request of a change */
    struct mig *emptied; /* the group whose instances are being removed */
    unsigned *rounds;    /* the round that removed each instance; 0: not yet */
    unsigned round;
    size_t remaining, asked;
    as_cloud_op_response_fn *then;
};

struct mig_instance_name { /* parts of an id, ZONE/GROUP/NAME; the name is NUL-terminated */
    const char *zone, *mig, *name;
    size_t zone_size, mig_size;
};

/* Names in the addresses of managed instance groups and their instances. They are put into requests
 * unescaped, so the check is strict. */

/* The length of the name of a zone, group or instance; 0 if there is none. */
static size_t mig_name_measure(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
}

/* Returns `text` behind a name and `between`, or NULL; size_out: the name's length. */
static const char *mig_name_skip(const char *text, const char *between, size_t *size_out)
{
    *size_out = mig_name_measure(text);
    const char *behind = text + *size_out;
    return *size_out > 0 && as_str_starts_with(behind, between) ? behind + strlen(between) : NULL;
}

/* The project in an address, with its domain if it has one; or NULL. A project may have a domain
 * name before it: "example.com:project". */
static const char *mig_name_find_project(const char *url, size_t *size_out)
{
    const char *found = strstr(url, "/projects/");
    const char *project = found ? found + strlen("/projects/") : url;
    *size_out = mig_name_measure(project);
    if (found && project[*size_out] == ':')
        *size_out += 1 + mig_name_measure(project + *size_out + 1);
    return found && *size_out > 0 ? project : NULL;
}

static bool mig_name_parse_id(const char *id, struct mig_instance_name *name_out)
{
    name_out->zone = id;
    name_out->mig = mig_name_skip(id, "/", &name_out->zone_size);
    name_out->name = name_out->mig ? mig_name_skip(name_out->mig, "/", &name_out->mig_size) : NULL;
    return name_out->name && *name_out->name && !name_out->name[mig_name_measure(name_out->name)];
}

/* The verbs of node groups */

#define PAGE_SIZE  500
#define REMOVE_MAX 1000 /* instances of one request */
#define TRIES_MAX  3
#define PAUSE_MAX  (10 * AS_US_PER_S)

static struct mig_work *get_work(struct as_cloud_op *op)
{
    return as_group_get(op)->state;
}

static const struct mig *get_mig(struct as_cloud_op *op)
{
    const struct mig_work *work = get_work(op);
    return &work->migs[work->at];
}

static const char *mig_copy(struct as_cloud_op *op, const char *text, size_t size)
{
    return as_cloud_op_print(op, "%.*s", (int)size, text);
}

/* ".../projects/P/zones/Z/instanceGroupManagers/M" -> place and name. False for other texts. */
static bool mig_parse_url(struct as_cloud_op *op, const char *url, struct mig *mig_out)
{
    size_t project_size, zone_size;
    const char *project = mig_name_find_project(url, &project_size);
    if (!project || !as_str_starts_with(project + project_size, "/zones/"))
        return false;
    const char *zone = project + project_size + strlen("/zones/");
    const char *name = mig_name_skip(zone, "/instanceGroupManagers/", &zone_size);
    if (!name || !*name || name[mig_name_measure(name)])
        return false;
    *mig_out = (struct mig){
        .place = as_cloud_op_print(op, "projects/%s/zones/%.*s",
                                   as_cloud_op_escaped(op, mig_copy(op, project, project_size)),
                                   (int)zone_size, zone),
        .name = mig_copy(op, name, strlen(name)),
    };
    return true;
}

/* ---- instances ---- */

static const struct answer_word actions[] = {
    {"CREATING", AS_INSTANCE_PENDING},
    {"CREATING_WITHOUT_RETRIES", AS_INSTANCE_PENDING},
    {"RECREATING", AS_INSTANCE_PENDING},
    {"RESTARTING", AS_INSTANCE_PENDING},
    {"RESUMING", AS_INSTANCE_PENDING},
    {"STARTING", AS_INSTANCE_PENDING},
    {"DELETING", AS_INSTANCE_LEAVING},
    {"ABANDONING", AS_INSTANCE_LEAVING},
    {"STOPPING", AS_INSTANCE_LEAVING},
    {"SUSPENDING", AS_INSTANCE_LEAVING},
    {NULL, 0},
};

/* Of instances without an important action in progress. */
static const struct answer_word statuses[] = {
    {"RUNNING", AS_INSTANCE_RUNNING},
    {"STOPPING", AS_INSTANCE_FAILED},
    {"PENDING_STOP", AS_INSTANCE_FAILED},
    {"STOPPED", AS_INSTANCE_FAILED},
    {"TERMINATED", AS_INSTANCE_FAILED},
    {"SUSPENDING", AS_INSTANCE_FAILED},
    {"SUSPENDED", AS_INSTANCE_FAILED},
    {"DEPROVISIONING", AS_INSTANCE_FAILED},
    {NULL, 0},
};

static bool is_unhealthy(const json_t *member)
{
    for (size_t i = 0; i < answer_count(member, "instanceHealth"); i++) {
        const char *state =
            answer_text(answer_at(member, "instanceHealth", i), "detailedHealthState");
        if (strcmp(state, "UNHEALTHY") == 0 || strcmp(state, "TIMEOUT") == 0)
            return true;
    }
    return false;
}

/* False after failing the op. */
static bool mig_add_instance(struct as_cloud_op *op, const json_t *member)
{
    struct as_group_view *view = &as_group_get(op)->view;
    const char *url = answer_text(member, "instance");
    const char *action = answer_text(member, "currentAction");
    const json_t *error = answer_at(member, "lastAttempt.errors.errors", 0);
    size_t project_size, zone_size = 0;
    const char *project = mig_name_find_project(url, &project_size);
    const bool is_zonal = project && as_str_starts_with(project + project_size, "/zones/");
    const char *zone = is_zonal ? project + project_size + strlen("/zones/") : "";
    const char *name = mig_name_skip(zone, "/instances/", &zone_size);
    if (!name || !*name || name[mig_name_measure(name)])
        return *url == '\0' || answer_misses(op, "instance"); /* not begun: it has no name yet */
    struct as_instance instance = {
        .id = as_cloud_op_print(op, "%.*s/%s/%s", (int)zone_size, zone, get_mig(op)->name, name),
        .provider_id = as_cloud_op_print(op, "gce://%.*s/%.*s/%s", (int)project_size, project,
                                         (int)zone_size, zone, name),
        .zone = mig_copy(op, zone, zone_size),
        .state = answer_judge(
            actions, action,
            answer_judge(statuses, answer_text(member, "instanceStatus"), AS_INSTANCE_PENDING)),
        .is_unhealthy = is_unhealthy(member),
        .is_protected = answer_find(member, "preservedStateFromConfig") != NULL,
    };
    if (instance.state == AS_INSTANCE_FAILED && get_work(op)->has_standby)
        return true; /* on standby beside the group: not part of its size */
    if (error && instance.state == AS_INSTANCE_PENDING) {
        instance.is_unhealthy = true;
        if (strcmp(action, "CREATING_WITHOUT_RETRIES") == 0)
            instance.state = AS_INSTANCE_FAILED;
        if (!view->shortage)
            view->shortage = as_cloud_op_print(op, "%s: %s", answer_text(error, "code"),
                                               answer_text(error, "message"));
    }
    return as_group_add_instance(as_group_get(op), &instance);
}

static void read_next(struct as_cloud_op *op);

static void mig_ask(struct as_cloud_op *op, const char *method, const struct mig *mig,
                    const char *rest)
{
    as_cloud_op_ask(op, method, "%s/compute/v1/%s/instanceGroupManagers/%s%s",
                    get_work(op)->endpoint, mig->place, mig->name, rest);
}

static void mig_on_instances(struct as_cloud_op *op);

static void ask_instances(struct as_cloud_op *op, const char *page)
{
    if (!*page)
        as_cloud_op_begin_list(op);
    mig_ask(op, "POST", get_mig(op),
            as_cloud_op_print(op, "/listManagedInstances?maxResults=%d%s%s", PAGE_SIZE,
                              *page ? "&pageToken=" : "", as_cloud_op_escaped(op, page)));
    as_cloud_op_send_question(op, "list_managed_instances", mig_on_instances);
}

static void mig_on_instances(struct as_cloud_op *op)
{
    static const char path[] = "managedInstances";
    const json_t *document = google_take_answer(op);
    if (!document)
        return;
    for (size_t i = 0; i < answer_count(document, path); i++) {
        if (!mig_add_instance(op, answer_at(document, path, i)))
            return;
    }
    const char *page = answer_text(document, "nextPageToken");
    if (*page) {
        if (as_cloud_op_turn_page(op, page))
            ask_instances(op, as_cloud_op_print(op, "%s", page));
        return;
    }
    get_work(op)->at++;
    read_next(op);
}

/* Whether instances are created or removed; an update of existing instances does not count. */
static bool mig_is_in_progress(const json_t *document)
{
    static const char *const counts[] = {
        "currentActions.creating",   "currentActions.creatingWithoutRetries",
        "currentActions.recreating", "currentActions.deleting",
        "currentActions.abandoning", "currentActions.resuming",
        "currentActions.starting",   "currentActions.stopping",
        "currentActions.suspending",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(counts); i++) {
        if (answer_size(document, counts[i], 0) > 0)
            return true;
    }
    return false;
}

static void mig_on_mig(struct as_cloud_op *op)
{
    struct as_group_view *view = &as_group_get(op)->view;
    struct mig_work *work = get_work(op);
    struct mig *mig = &work->migs[work->at];
    const json_t *document = google_take_answer(op);
    if (!document || !answer_take_size(op, document, "targetSize", &mig->size))
        return;
    if (!*answer_text(document, "id")) { /* project, zone and name have several spellings */
        (void)answer_misses(op, "id");
        return;
    }
    if (!as_group_add_backing(as_group_get(op), "gce/%s", answer_text(document, "id")))
        return;
    if (mig->size > AS_GROUP_INSTANCES_MAX - view->size) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "the group has more than %d instances",
                         AS_GROUP_INSTANCES_MAX);
        return;
    }
    mig->wanted = mig->size;
    view->size += mig->size;
    view->in_progress = view->in_progress || mig_is_in_progress(document);
    work->has_standby = answer_size(document, "targetSuspendedSize", 0) > 0 ||
                        answer_size(document, "targetStoppedSize", 0) > 0;
    const char *autoscaler = answer_text(document, "status.autoscaler");
    const char *slash = strrchr(autoscaler, '/');
    if (*autoscaler && !view->controller)
        view->controller =
            as_cloud_op_print(op, "Google's autoscaler %s", slash ? slash + 1 : autoscaler);
    if (work->with_instances) {
        ask_instances(op, "");
        return;
    }
    work->at++;
    read_next(op);
}

/* ---- reading ---- */

static void read_next(struct as_cloud_op *op)
{
    struct mig_work *work = get_work(op);
    if (work->at == work->count) {
        work->at = 0;
        work->then(op);
        return;
    }
    mig_ask(op, "GET", get_mig(op), "");
    as_cloud_op_send(op, "get_instance_group_manager", mig_on_mig);
}

static void mig_read_all(struct as_cloud_op *op, bool with_instances, as_cloud_op_response_fn *then)
{
    struct mig_work *work = get_work(op);
    work->with_instances = with_instances;
    work->then = then;
    work->at = 0;
    read_next(op);
}

/* ---- changing ---- */

/* Fails a change if something else sets the group's size, or is working on it. */
static bool mig_may_change(struct as_group_op *op)
{
    if (!op->view.controller)
        return true;
    as_cloud_op_fail(
        &op->op, AS_CLOUD_OP_CONFIGURATION,
        "%s sets the size of this group: two would undo each other's work; switch one off",
        op->view.controller);
    return false;
}

/* Takes an operation that has failed at once, or one to be polled. False after failing the op;
 * what the same change began before still takes effect. */
static bool take_operation(struct as_cloud_op *op, const char *place)
{
    struct as_group_op *group = as_group_get(op);
    struct mig_work *work = get_work(op);
    const json_t *document = google_take_answer(op);
    const char *name = answer_text(document, "name");
    const json_t *error = answer_at(document, "error.errors", 0);
    if (document && error) {
        const char *code = answer_text(error, "code"), *message = answer_text(error, "message");
        as_cloud_op_fail(op, google_judge(code, message, AS_CLOUD_OP_RETRY), "%s: %s: %s",
                         op->request.operation, code, message);
    } else if (document && (!*name || name[mig_name_measure(name)])) {
        (void)answer_misses(op, "name");
    } else if (document) {
        as_cloud_op_take_request_id(op, name);
        group->started =
            as_cloud_op_print(op, "%s%s%s/operations/%s", group->started ? group->started : "",
                              group->started ? " " : "", place, name);
        work->has_begun = group->has_begun = true;
        return true;
    }
    op->is_ambiguous = op->is_ambiguous || work->has_begun;
    return false;
}

/* Whether the failed request of a change is repeated after a pause. */
static bool mig_try_again(struct as_cloud_op *op, bool is_split, as_cloud_op_response_fn *ask_again)
{
    struct mig_work *work = get_work(op);
    const bool may_help = op->fault == AS_CLOUD_OP_RETRY || op->fault == AS_CLOUD_OP_TIMEOUT ||
                          op->fault == AS_CLOUD_OP_THROTTLED;
    if (!is_split || !may_help || ++work->tries == TRIES_MAX || op->retry_after_us > PAUSE_MAX)
        return false;
    const int64_t pause = AS_US_PER_S << (work->tries - 1);
    as_cloud_op_wait(op, op->retry_after_us > pause ? op->retry_after_us : pause, ask_again);
    op->is_ambiguous = false;
    return true;
}

static void resize_next(struct as_cloud_op *op);

/* The first group from `at` on whose size must change; the count: none. */
static size_t find_wanted(const struct mig_work *work, size_t at)
{
    while (at < work->count && work->migs[at].wanted == work->migs[at].size)
        at++;
    return at;
}

static void mig_on_resize(struct as_cloud_op *op)
{
    struct mig_work *work = get_work(op);
    const bool is_split = work->has_begun || find_wanted(work, work->at + 1) < work->count;
    if (!take_operation(op, get_mig(op)->place)) {
        (void)mig_try_again(op, is_split, resize_next);
        return;
    }
    work->tries = 0;
    work->at++;
    resize_next(op);
}

static void resize_next(struct as_cloud_op *op)
{
    struct mig_work *work = get_work(op);
    work->at = find_wanted(work, work->at);
    if (work->at == work->count) {
        as_cloud_op_end(op);
        return;
    }
    const struct mig *mig = get_mig(op);
    const char *what =
        as_cloud_op_print(op, "resize %s/%s %d", mig->place, mig->name, (int)mig->wanted);
    mig_ask(op, "POST", mig,
            as_cloud_op_print(op, "/resize?size=%d&%s", (int)mig->wanted,
                              google_make_request_id(as_group_get(op), what)));
    as_cloud_op_send(op, "resize", mig_on_resize);
}

/* Adds one to the smallest group, again and again: the zones stay balanced. */
static void mig_distribute(struct mig_work *work, int32_t more)
{
    for (; more > 0; more--) {
        struct mig *smallest = &work->migs[0];
        for (size_t i = 1; i < work->count; i++) {
            if (work->migs[i].wanted < smallest->wanted)
                smallest = &work->migs[i];
        }
        smallest->wanted++;
    }
}

static void mig_grow(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    if (!mig_may_change(as_group_get(op)))
        return;
    if (group->view.size != group->from) {
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY, "its size is %d, not %d: somebody else has set it",
                         (int)group->view.size, (int)group->from);
        return;
    }
    if (group->to > AS_GROUP_INSTANCES_MAX) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "a group has at most %d instances",
                         AS_GROUP_INSTANCES_MAX);
        return;
    }
    mig_distribute(get_work(op), group->to - group->from);
    resize_next(op);
}

/* ---- removing ---- */

static bool is_same_mig(const struct mig_instance_name *a, const struct mig_instance_name *b)
{
    return a->mig_size == b->mig_size && memcmp(a->mig, b->mig, a->mig_size) == 0 &&
           a->zone_size == b->zone_size && memcmp(a->zone, b->zone, a->zone_size) == 0;
}

static void mig_remove_next(struct as_cloud_op *op);

/* Asks for the same instances again. */
static void remove_again(struct as_cloud_op *op)
{
    struct mig_work *work = get_work(op);
    for (size_t i = 0; i < as_group_get(op)->instance_count; i++)
        work->rounds[i] = work->rounds[i] == work->round ? 0 : work->rounds[i];
    mig_remove_next(op);
}

static void mig_on_removed(struct as_cloud_op *op)
{
    struct mig_work *work = get_work(op);
    const bool is_split = work->has_begun || work->remaining > work->asked;
    if (!take_operation(op, work->emptied->place)) {
        (void)mig_try_again(op, is_split, remove_again);
        return;
    }
    work->tries = 0;
    work->remaining -= work->asked;
    mig_remove_next(op);
}

/* Fills the request's body with instances of one group, and marks them. */
static void mig_add_instances(struct as_cloud_op *op, const struct mig_instance_name *first,
                              bool any)
{
    const struct as_group_op *group = as_group_get(op);
    struct mig_work *work = get_work(op);
    struct as_buf *body = &op->request.body;
    as_buf_append_str(body, "{\"instances\":[");
    work->asked = 0;
    work->round++;
    for (size_t i = 0; i < group->instance_count && work->asked < REMOVE_MAX; i++) {
        struct mig_instance_name name;
        if (work->rounds[i] != 0 || !mig_name_parse_id(group->instances[i], &name) ||
            !(any || is_same_mig(&name, first)))
            continue;
        as_buf_printf(body, "%s\"zones/%.*s/instances/%s\"", work->asked > 0 ? "," : "",
                      (int)name.zone_size, name.zone, name.name);
        work->rounds[i] = work->round;
        work->asked++;
    }
    as_buf_append_str(body, "],\"skipInstancesOnValidationError\":true}");
}

/* Sends one request, for the instances in the same group as the first remaining one. */
static void mig_remove_next(struct as_cloud_op *op)
{
    const struct as_group_op *group = as_group_get(op);
    struct mig_work *work = get_work(op);
    struct mig_instance_name name;
    size_t first = 0;
    if (work->remaining == 0) {
        as_cloud_op_end(op);
        return;
    }
    while (work->rounds[first] != 0)
        first++;
    if (!mig_name_parse_id(group->instances[first], &name)) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "\"%s\" is not ZONE/GROUP/INSTANCE",
                         group->instances[first]);
        return;
    }
    const bool is_known = work->count == 1;
    if (is_known)
        work->emptied = &work->migs[0];
    else {
        *work->emptied = (struct mig){
            .place = as_cloud_op_print(op, "projects/%s/zones/%.*s", work->project,
                                       (int)name.zone_size, name.zone),
            .name = mig_copy(op, name.mig, name.mig_size),
        };
    }
    mig_ask(op, "POST", work->emptied, "/deleteInstances");
    mig_add_instances(op, &name, is_known);
    const char *what = as_cloud_op_print(op, "delete %s %.*s", op->request.url,
                                         (int)op->request.body.size, op->request.body.data);
    op->request.url = (char *)(uintptr_t)as_cloud_op_print(
        op, "%s?%s", op->request.url, google_make_request_id(as_group_get(op), what));
    as_cloud_op_header(op, "Content-Type: application/json");
    as_cloud_op_send(op, "delete_instances", mig_on_removed);
}

static void mig_remove_all(struct as_cloud_op *op)
{
    struct mig_work *work = get_work(op);
    work->emptied = as_arena_alloc(&op->arena, 1, sizeof(*work->emptied));
    work->remaining = as_group_get(op)->instance_count;
    work->rounds = as_arena_alloc(&op->arena, work->remaining, sizeof(*work->rounds));
    mig_remove_next(op);
}

static void mig_remove_chosen(struct as_cloud_op *op)
{
    if (mig_may_change(as_group_get(op)) && as_group_keep_present(as_group_get(op)))
        mig_remove_all(op);
}

/* Chooses surplus instances among those not running: failed instances first. */
static void mig_take_back(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    const struct as_group_view *view = &group->view;
    if (!mig_may_change(group))
        return;
    const size_t wanted = view->size > group->to ? (size_t)(view->size - group->to) : 0;
    const char **ids = as_arena_alloc(&op->arena, wanted, sizeof(*ids));
    size_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < view->instance_count && count < wanted; i++) {
            const struct as_instance *it = &view->instances[i];
            const bool is_failed = it->state == AS_INSTANCE_FAILED ||
                                   (it->state == AS_INSTANCE_PENDING && it->is_unhealthy);
            if (pass == 0 ? is_failed : it->state == AS_INSTANCE_PENDING && !is_failed)
                ids[count++] = it->id;
        }
    }
    if (count < wanted) {
        as_cloud_op_fail(
            op, AS_CLOUD_OP_BUSY,
            "only %zu of %zu instances have not come: the others have, in the meantime", count,
            wanted);
        return;
    }
    group->instances = ids;
    group->instance_count = count;
    mig_remove_all(op);
}

static void mig_poll_next(struct as_cloud_op *op);

static void mig_on_operation(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    const json_t *document = google_take_answer(op);
    if (!document) {
        if (op->fault == AS_CLOUD_OP_GONE)
            mig_poll_next(op); /* forgotten: the group itself shows the result */
        return;
    }
    const json_t *error = answer_at(document, "error.errors", 0);
    const char *name = answer_text(document, "name");
    const char *code = answer_text(error, "code"), *message = answer_text(error, "message");
    const bool is_done = strcmp(answer_text(document, "status"), "DONE") == 0;
    as_cloud_op_take_request_id(op, name);
    group->is_done = is_done && answer_find(document, "error");
    if (group->is_done)
        as_cloud_op_fail(op, google_judge(code, message, AS_CLOUD_OP_RETRY), "operation %s: %s: %s",
                         name, code, message);
    else if (is_done)
        mig_poll_next(op);
    else
        as_cloud_op_end(op);
}

/* ---- operations ---- */

/* Reads the operations one after the other; the first that is not done ends the poll. */
static void mig_poll_next(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    struct mig_work *work = get_work(op);
    const char *operation = group->operation + work->at;
    const size_t size = strcspn(operation, " ");
    if (size == 0) {
        group->is_done = true;
        as_cloud_op_end(op);
        return;
    }
    work->at += size + (operation[size] == ' ');
    as_cloud_op_ask(op, "GET", "%s/compute/v1/%.*s", work->endpoint, (int)size, operation);
    as_cloud_op_send(op, "get_operation", mig_on_operation);
}

/* Carries out the op's verb; the op's state is a mig_work. */
static void mig_begin(struct as_group_op *op)
{
    struct mig_work *work = op->state;
    work->at = 0;
    op->view.min = op->view.max = -1; /* only an autoscaler has bounds */
    switch (op->verb) {
    case AS_GROUP_READ: mig_read_all(&op->op, true, as_cloud_op_end); break;
    case AS_GROUP_GROW: mig_read_all(&op->op, false, mig_grow); break;
    case AS_GROUP_REMOVE: mig_read_all(&op->op, true, mig_remove_chosen); break;
    case AS_GROUP_TAKE_BACK: mig_read_all(&op->op, true, mig_take_back); break;
    case AS_GROUP_POLL: mig_poll_next(&op->op); break;
    case AS_GROUP_VERB_COUNT: break;
    }
}

/* Compute Engine: a managed instance group, zonal or regional */

static void gce_begin(struct as_group_op *group)
{
    struct as_cloud_op *op = &group->op;
    const char *zone = as_target_ref_get(group->group, "zone");
    const char *region = as_target_ref_get(group->group, "region");
    const char *project = google_find_project(group);
    if (!project)
        return;
    if (!*zone == !*region) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "a group has either a `zone` or a `region`: %s",
                         *zone ? "this one has both" : "this one has neither");
        return;
    }
    struct mig *mig = as_arena_alloc(&op->arena, 1, sizeof(*mig));
    struct mig_work *work = as_arena_alloc(&op->arena, 1, sizeof(*work));
    mig->place = as_cloud_op_print(op, "projects/%s/%s/%s", as_cloud_op_escaped(op, project),
                                   *zone ? "zones" : "regions",
                                   as_cloud_op_escaped(op, *zone ? zone : region));
    mig->name = as_cloud_op_escaped(op, as_target_ref_get(group->group, "name"));
    work->endpoint =
        as_account_get_endpoint(op, group->account, "endpoint", "https://compute.googleapis.com");
    work->migs = mig;
    work->count = 1;
    group->state = work;
    mig_begin(group);
}

const struct as_group_provider provider_gce = {
    .type = "gce",
    .files = google_files,
    .read_names = google_read_names,
    .credentials = google_credentials,
    .sign = as_sign_bearer,
    .begin = gce_begin,
};

/* Kubernetes Engine: a node pool.
 *
 * The pool's own setSize sets the number of nodes per zone, and evens out the zones by removing
 * nodes of its choice. So it cannot set a size that is not a multiple of the zones, and may remove
 * the wrong nodes. Therefore the groups are resized one by one, as Kubernetes' own node autoscaler
 * does; the pool's size is the sum of theirs. */

#define ZONES_MAX 64

/* Takes the pool's groups. False after failing the op. */
static bool take_migs(struct as_cloud_op *op, const json_t *pool)
{
    static const char path[] = "instanceGroupUrls";
    struct mig_work *work = as_group_get(op)->state;
    const size_t count = answer_count(pool, path);
    if (count == 0)
        return answer_misses(op, path);
    if (count > ZONES_MAX) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION,
                         "the node pool has more than %d instance groups", ZONES_MAX);
        return false;
    }
    work->migs = as_arena_alloc(&op->arena, count, sizeof(*work->migs));
    work->count = count;
    for (size_t i = 0; i < count; i++) {
        const char *url = json_string_value(answer_at(pool, path, i));
        if (!url || !mig_parse_url(op, url, &work->migs[i]))
            return answer_misses(op, "instanceGroupUrls of instance group managers");
    }
    return true;
}

/* Whether the pool's state allows the verb. False after failing the op. */
static bool gke_judge_status(struct as_cloud_op *op, const json_t *pool)
{
    struct as_group_op *group = as_group_get(op);
    const char *status = answer_text(pool, "status");
    const bool is_busy = strcmp(status, "PROVISIONING") == 0 || strcmp(status, "RECONCILING") == 0;
    if (strcmp(status, "STOPPING") == 0) {
        as_cloud_op_fail(op, AS_CLOUD_OP_GONE, "the node pool is being deleted");
        return false;
    }
    if (strcmp(status, "ERROR") == 0) {
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "the node pool has failed: %s",
                         answer_text(answer_at(pool, "conditions", 0), "message"));
        return false;
    }
    if (is_busy && group->verb != AS_GROUP_READ) {
        as_cloud_op_fail(op, AS_CLOUD_OP_BUSY, "the node pool is being changed (%s)", status);
        return false;
    }
    group->view.in_progress = is_busy;
    return true;
}

/* The pool's full name: two names of one pool share it, also while the pool gets other groups. A
 * zone is a location. Answers of old versions have no name. */
static bool gke_add_backing(struct as_cloud_op *op, const json_t *pool)
{
    static const char zones[] = "/zones/";
    const char *name = strstr(answer_text(pool, "selfLink"), "projects/");
    const char *zone = name ? strstr(name, zones) : NULL;
    if (!name)
        return true;
    return zone ? as_group_add_backing(as_group_get(op), "gke/%.*s/locations/%s",
                                       (int)(zone - name), name, zone + strlen(zones))
                : as_group_add_backing(as_group_get(op), "gke/%s", name);
}

static void gke_on_pool(struct as_cloud_op *op)
{
    struct as_group_op *group = as_group_get(op);
    const json_t *pool = google_take_answer(op);
    if (!pool || !gke_judge_status(op, pool) || !take_migs(op, pool) || !gke_add_backing(op, pool))
        return;
    if (answer_is_true(pool, "autoscaling.enabled"))
        group->view.controller = "the node pool's own autoscaling";
    if (answer_is_true(pool, "autopilotConfig.enabled"))
        group->view.controller = "GKE Autopilot";
    if (group->verb == AS_GROUP_READ || mig_may_change(group))
        mig_begin(group);
}

static void gke_begin(struct as_group_op *group)
{
    struct as_cloud_op *op = &group->op;
    const char *project = google_find_project(group);
    if (!project)
        return;
    struct mig_work *work = as_arena_alloc(&op->arena, 1, sizeof(*work));
    work->project = as_cloud_op_escaped(op, project);
    work->endpoint = as_account_get_endpoint(op, group->account, "compute_endpoint",
                                             "https://compute.googleapis.com");
    group->state = work;
    if (group->verb == AS_GROUP_POLL) {
        mig_begin(group); /* operations have their place in their names */
        return;
    }
    as_cloud_op_ask(
        op, "GET", "%s/v1/projects/%s/locations/%s/clusters/%s/nodePools/%s",
        as_account_get_endpoint(op, group->account, "endpoint", "https://container.googleapis.com"),
        work->project, as_cloud_op_escaped(op, as_target_ref_get(group->group, "location")),
        as_cloud_op_escaped(op, as_target_ref_get(group->group, "cluster")),
        as_cloud_op_escaped(op, as_target_ref_get(group->group, "name")));
    as_cloud_op_send(op, "get_node_pool", gke_on_pool);
}

const struct as_group_provider provider_gke = {
    .type = "gke",
    .files = google_files,
    .read_names = google_read_names,
    .credentials = google_credentials,
    .sign = as_sign_bearer,
    .begin = gke_begin,
};

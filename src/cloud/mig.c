/*
 * Managed instance groups: see the header.
 *
 * A resize is absolute and unconditional: if somebody else has made the group larger, it would make
 * the group smaller and choose the instances to remove. So the size is read again before it is set,
 * and before instances are deleted by name, because draining took time. Pending instances are
 * deleted by name too.
 *
 * A change of several requests is not left half done because an answer was lost: the request is
 * repeated, and its request id prevents a second execution.
 */
#include "mig.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/str.h>

#include "credentials_google.h"
#include "mig_name.h"
#include "provider_answer.h"

#define PAGE_SIZE  500
#define REMOVE_MAX 1000 /* instances of one request */
#define TRIES_MAX  3
#define PAUSE_MAX  (10 * AS_US_PER_S)

static struct mig_work *get_work(struct as_talk *talk)
{
    return as_group_get(talk)->state;
}

static const struct mig *get_mig(struct as_talk *talk)
{
    const struct mig_work *work = get_work(talk);
    return &work->migs[work->at];
}

static const char *copy(struct as_talk *talk, const char *text, size_t size)
{
    return as_talk_print(talk, "%.*s", (int)size, text);
}

bool mig_parse_url(struct as_talk *talk, const char *url, struct mig *mig_out)
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
        .place = as_talk_print(talk, "projects/%s/zones/%.*s",
                               as_talk_escaped(talk, copy(talk, project, project_size)),
                               (int)zone_size, zone),
        .name = copy(talk, name, strlen(name)),
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

/* False after failing the talk. */
static bool add_instance(struct as_talk *talk, const json_t *member)
{
    struct as_group_view *view = &as_group_get(talk)->view;
    const char *url = answer_text(member, "instance");
    const char *action = answer_text(member, "currentAction");
    const json_t *error = answer_at(member, "lastAttempt.errors.errors", 0);
    size_t project_size, zone_size = 0;
    const char *project = mig_name_find_project(url, &project_size);
    const bool is_zonal = project && as_str_starts_with(project + project_size, "/zones/");
    const char *zone = is_zonal ? project + project_size + strlen("/zones/") : "";
    const char *name = mig_name_skip(zone, "/instances/", &zone_size);
    if (!name || !*name || name[mig_name_measure(name)])
        return *url == '\0' || answer_misses(talk, "instance"); /* not begun: it has no name yet */
    struct as_instance instance = {
        .id = as_talk_print(talk, "%.*s/%s/%s", (int)zone_size, zone, get_mig(talk)->name, name),
        .provider_id = as_talk_print(talk, "gce://%.*s/%.*s/%s", (int)project_size, project,
                                     (int)zone_size, zone, name),
        .zone = copy(talk, zone, zone_size),
        .state = answer_judge(
            actions, action,
            answer_judge(statuses, answer_text(member, "instanceStatus"), AS_INSTANCE_PENDING)),
        .is_unhealthy = is_unhealthy(member),
        .is_protected = answer_find(member, "preservedStateFromConfig") != NULL,
    };
    if (instance.state == AS_INSTANCE_FAILED && get_work(talk)->has_standby)
        return true; /* on standby beside the group: not part of its size */
    if (error && instance.state == AS_INSTANCE_PENDING) {
        instance.is_unhealthy = true;
        if (strcmp(action, "CREATING_WITHOUT_RETRIES") == 0)
            instance.state = AS_INSTANCE_FAILED;
        if (!view->shortage)
            view->shortage = as_talk_print(talk, "%s: %s", answer_text(error, "code"),
                                           answer_text(error, "message"));
    }
    return as_group_add_instance(as_group_get(talk), &instance);
}

/* ---- reading ---- */

static void read_next(struct as_talk *talk);

static void ask(struct as_talk *talk, const char *method, const struct mig *mig, const char *rest)
{
    as_talk_ask(talk, method, "%s/compute/v1/%s/instanceGroupManagers/%s%s",
                get_work(talk)->endpoint, mig->place, mig->name, rest);
}

static void hear_instances(struct as_talk *talk);

static void ask_instances(struct as_talk *talk, const char *page)
{
    if (!*page)
        as_talk_begin_list(talk);
    ask(talk, "POST", get_mig(talk),
        as_talk_print(talk, "/listManagedInstances?maxResults=%d%s%s", PAGE_SIZE,
                      *page ? "&pageToken=" : "", as_talk_escaped(talk, page)));
    as_talk_send_question(talk, "list_managed_instances", hear_instances);
}

static void hear_instances(struct as_talk *talk)
{
    static const char path[] = "managedInstances";
    const json_t *document = google_take_answer(talk);
    if (!document)
        return;
    for (size_t i = 0; i < answer_count(document, path); i++) {
        if (!add_instance(talk, answer_at(document, path, i)))
            return;
    }
    const char *page = answer_text(document, "nextPageToken");
    if (*page) {
        if (as_talk_turn_page(talk, page))
            ask_instances(talk, as_talk_print(talk, "%s", page));
        return;
    }
    get_work(talk)->at++;
    read_next(talk);
}

/* Whether instances are created or removed; an update of existing instances does not count. */
static bool is_in_progress(const json_t *document)
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

static void hear_mig(struct as_talk *talk)
{
    struct as_group_view *view = &as_group_get(talk)->view;
    struct mig_work *work = get_work(talk);
    struct mig *mig = &work->migs[work->at];
    const json_t *document = google_take_answer(talk);
    if (!document || !answer_take_size(talk, document, "targetSize", &mig->size))
        return;
    if (!*answer_text(document, "id")) { /* project, zone and name have several spellings */
        (void)answer_misses(talk, "id");
        return;
    }
    if (!as_group_add_backing(as_group_get(talk), "gce/%s", answer_text(document, "id")))
        return;
    if (mig->size > AS_GROUP_INSTANCES_MAX - view->size) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "the group has more than %d instances",
                     AS_GROUP_INSTANCES_MAX);
        return;
    }
    mig->wanted = mig->size;
    view->size += mig->size;
    view->in_progress = view->in_progress || is_in_progress(document);
    work->has_standby = answer_size(document, "targetSuspendedSize", 0) > 0 ||
                        answer_size(document, "targetStoppedSize", 0) > 0;
    const char *autoscaler = answer_text(document, "status.autoscaler");
    const char *slash = strrchr(autoscaler, '/');
    if (*autoscaler && !view->controller)
        view->controller =
            as_talk_print(talk, "Google's autoscaler %s", slash ? slash + 1 : autoscaler);
    if (work->with_instances) {
        ask_instances(talk, "");
        return;
    }
    work->at++;
    read_next(talk);
}

static void read_next(struct as_talk *talk)
{
    struct mig_work *work = get_work(talk);
    if (work->at == work->count) {
        work->at = 0;
        work->then(talk);
        return;
    }
    ask(talk, "GET", get_mig(talk), "");
    as_talk_send(talk, "get_instance_group_manager", hear_mig);
}

static void read_all(struct as_talk *talk, bool with_instances, as_talk_hear_fn *then)
{
    struct mig_work *work = get_work(talk);
    work->with_instances = with_instances;
    work->then = then;
    work->at = 0;
    read_next(talk);
}

/* ---- changing ---- */

bool mig_may_change(struct as_group_talk *talk)
{
    if (!talk->view.controller)
        return true;
    as_talk_fail(&talk->talk, AS_TALK_CONFIGURATION,
                 "%s sets the size of this group: two would undo each other's work; switch one off",
                 talk->view.controller);
    return false;
}

/* Takes an operation that has failed at once, or one to be polled. False after failing the talk;
 * what the same change began before still takes effect. */
static bool take_operation(struct as_talk *talk, const char *place)
{
    struct as_group_talk *group = as_group_get(talk);
    struct mig_work *work = get_work(talk);
    const json_t *document = google_take_answer(talk);
    const char *name = answer_text(document, "name");
    const json_t *error = answer_at(document, "error.errors", 0);
    if (document && error) {
        const char *code = answer_text(error, "code"), *message = answer_text(error, "message");
        as_talk_fail(talk, google_judge(code, message, AS_TALK_RETRY), "%s: %s: %s",
                     talk->request.operation, code, message);
    } else if (document && (!*name || name[mig_name_measure(name)])) {
        (void)answer_misses(talk, "name");
    } else if (document) {
        as_talk_take_request_id(talk, name);
        group->started =
            as_talk_print(talk, "%s%s%s/operations/%s", group->started ? group->started : "",
                          group->started ? " " : "", place, name);
        work->has_begun = group->has_begun = true;
        return true;
    }
    talk->is_ambiguous = talk->is_ambiguous || work->has_begun;
    return false;
}

/* Whether the failed request of a change is repeated after a pause. */
static bool try_again(struct as_talk *talk, bool is_split, as_talk_hear_fn *ask_again)
{
    struct mig_work *work = get_work(talk);
    const bool may_help = talk->fault == AS_TALK_RETRY || talk->fault == AS_TALK_TIMEOUT ||
                          talk->fault == AS_TALK_THROTTLED;
    if (!is_split || !may_help || ++work->tries == TRIES_MAX || talk->retry_after_us > PAUSE_MAX)
        return false;
    const int64_t pause = AS_US_PER_S << (work->tries - 1);
    as_talk_wait(talk, talk->retry_after_us > pause ? talk->retry_after_us : pause, ask_again);
    talk->is_ambiguous = false;
    return true;
}

static void resize_next(struct as_talk *talk);

/* The first group from `at` on whose size must change; the count: none. */
static size_t find_wanted(const struct mig_work *work, size_t at)
{
    while (at < work->count && work->migs[at].wanted == work->migs[at].size)
        at++;
    return at;
}

static void hear_resize(struct as_talk *talk)
{
    struct mig_work *work = get_work(talk);
    const bool is_split = work->has_begun || find_wanted(work, work->at + 1) < work->count;
    if (!take_operation(talk, get_mig(talk)->place)) {
        (void)try_again(talk, is_split, resize_next);
        return;
    }
    work->tries = 0;
    work->at++;
    resize_next(talk);
}

static void resize_next(struct as_talk *talk)
{
    struct mig_work *work = get_work(talk);
    work->at = find_wanted(work, work->at);
    if (work->at == work->count) {
        as_talk_end(talk);
        return;
    }
    const struct mig *mig = get_mig(talk);
    const char *what =
        as_talk_print(talk, "resize %s/%s %d", mig->place, mig->name, (int)mig->wanted);
    ask(talk, "POST", mig,
        as_talk_print(talk, "/resize?size=%d&%s", (int)mig->wanted,
                      google_make_request_id(as_group_get(talk), what)));
    as_talk_send(talk, "resize", hear_resize);
}

/* Adds one to the smallest group, again and again: the zones stay balanced. */
static void distribute(struct mig_work *work, int32_t more)
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

static void grow(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    if (!mig_may_change(as_group_get(talk)))
        return;
    if (group->view.size != group->from) {
        as_talk_fail(talk, AS_TALK_BUSY, "its size is %d, not %d: somebody else has set it",
                     (int)group->view.size, (int)group->from);
        return;
    }
    if (group->to > AS_GROUP_INSTANCES_MAX) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "a group has at most %d instances",
                     AS_GROUP_INSTANCES_MAX);
        return;
    }
    distribute(get_work(talk), group->to - group->from);
    resize_next(talk);
}

/* ---- removing ---- */

static bool is_same_mig(const struct mig_instance_name *a, const struct mig_instance_name *b)
{
    return a->mig_size == b->mig_size && memcmp(a->mig, b->mig, a->mig_size) == 0 &&
           a->zone_size == b->zone_size && memcmp(a->zone, b->zone, a->zone_size) == 0;
}

static void remove_next(struct as_talk *talk);

/* Asks for the same instances again. */
static void remove_again(struct as_talk *talk)
{
    struct mig_work *work = get_work(talk);
    for (size_t i = 0; i < as_group_get(talk)->instance_count; i++)
        work->rounds[i] = work->rounds[i] == work->round ? 0 : work->rounds[i];
    remove_next(talk);
}

static void hear_removed(struct as_talk *talk)
{
    struct mig_work *work = get_work(talk);
    const bool is_split = work->has_begun || work->remaining > work->asked;
    if (!take_operation(talk, work->emptied->place)) {
        (void)try_again(talk, is_split, remove_again);
        return;
    }
    work->tries = 0;
    work->remaining -= work->asked;
    remove_next(talk);
}

/* Fills the request's body with instances of one group, and marks them. */
static void add_instances(struct as_talk *talk, const struct mig_instance_name *first, bool any)
{
    const struct as_group_talk *group = as_group_get(talk);
    struct mig_work *work = get_work(talk);
    struct as_buf *body = &talk->request.body;
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
static void remove_next(struct as_talk *talk)
{
    const struct as_group_talk *group = as_group_get(talk);
    struct mig_work *work = get_work(talk);
    struct mig_instance_name name;
    size_t first = 0;
    if (work->remaining == 0) {
        as_talk_end(talk);
        return;
    }
    while (work->rounds[first] != 0)
        first++;
    if (!mig_name_parse_id(group->instances[first], &name)) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "\"%s\" is not ZONE/GROUP/INSTANCE",
                     group->instances[first]);
        return;
    }
    const bool is_known = work->count == 1;
    if (is_known)
        work->emptied = &work->migs[0];
    else {
        *work->emptied = (struct mig){
            .place = as_talk_print(talk, "projects/%s/zones/%.*s", work->project,
                                   (int)name.zone_size, name.zone),
            .name = copy(talk, name.mig, name.mig_size),
        };
    }
    ask(talk, "POST", work->emptied, "/deleteInstances");
    add_instances(talk, &name, is_known);
    const char *what = as_talk_print(talk, "delete %s %.*s", talk->request.url,
                                     (int)talk->request.body.size, talk->request.body.data);
    talk->request.url = (char *)(uintptr_t)as_talk_print(
        talk, "%s?%s", talk->request.url, google_make_request_id(as_group_get(talk), what));
    as_talk_header(talk, "Content-Type: application/json");
    as_talk_send(talk, "delete_instances", hear_removed);
}

static void remove_all(struct as_talk *talk)
{
    struct mig_work *work = get_work(talk);
    work->emptied = as_arena_alloc(&talk->arena, 1, sizeof(*work->emptied));
    work->remaining = as_group_get(talk)->instance_count;
    work->rounds = as_arena_alloc(&talk->arena, work->remaining, sizeof(*work->rounds));
    remove_next(talk);
}

static void remove_chosen(struct as_talk *talk)
{
    if (mig_may_change(as_group_get(talk)) && as_group_keep_present(as_group_get(talk)))
        remove_all(talk);
}

/* Chooses surplus instances among those not running: failed instances first. */
static void take_back(struct as_talk *talk)
{
    struct as_group_talk *group = as_group_get(talk);
    const struct as_group_view *view = &group->view;
    if (!mig_may_change(group))
        return;
    const size_t wanted = view->size > group->to ? (size_t)(view->size - group->to) : 0;
    const char **ids = as_arena_alloc(&talk->arena, wanted, sizeof(*ids));
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
        as_talk_fail(talk, AS_TALK_BUSY,
                     "only %zu of %zu instances have not come: the others have, in the meantime",
                     count, wanted);
        return;
    }
    group->instances = ids;
    group->instance_count = count;
    remove_all(talk);
}

/* ---- operations ---- */

static void poll_next(struct as_talk *talk);

static void hear_operation(struct as_talk *talk)
{
    struct as_group_talk *group = as_group_get(talk);
    const json_t *document = google_take_answer(talk);
    if (!document) {
        if (talk->fault == AS_TALK_GONE)
            poll_next(talk); /* forgotten: the group itself shows the result */
        return;
    }
    const json_t *error = answer_at(document, "error.errors", 0);
    const char *name = answer_text(document, "name");
    const char *code = answer_text(error, "code"), *message = answer_text(error, "message");
    const bool is_done = strcmp(answer_text(document, "status"), "DONE") == 0;
    as_talk_take_request_id(talk, name);
    group->is_done = is_done && answer_find(document, "error");
    if (group->is_done)
        as_talk_fail(talk, google_judge(code, message, AS_TALK_RETRY), "operation %s: %s: %s", name,
                     code, message);
    else if (is_done)
        poll_next(talk);
    else
        as_talk_end(talk);
}

/* Reads the operations one after the other; the first that is not done ends the poll. */
static void poll_next(struct as_talk *talk)
{
    struct as_group_talk *group = as_group_get(talk);
    struct mig_work *work = get_work(talk);
    const char *operation = group->operation + work->at;
    const size_t size = strcspn(operation, " ");
    if (size == 0) {
        group->is_done = true;
        as_talk_end(talk);
        return;
    }
    work->at += size + (operation[size] == ' ');
    as_talk_ask(talk, "GET", "%s/compute/v1/%.*s", work->endpoint, (int)size, operation);
    as_talk_send(talk, "get_operation", hear_operation);
}

void mig_begin(struct as_group_talk *talk)
{
    struct mig_work *work = talk->state;
    work->at = 0;
    talk->view.min = talk->view.max = -1; /* only an autoscaler has bounds */
    switch (talk->verb) {
    case AS_GROUP_READ: read_all(&talk->talk, true, as_talk_end); break;
    case AS_GROUP_GROW: read_all(&talk->talk, false, grow); break;
    case AS_GROUP_REMOVE: read_all(&talk->talk, true, remove_chosen); break;
    case AS_GROUP_TAKE_BACK: read_all(&talk->talk, true, take_back); break;
    case AS_GROUP_POLL: poll_next(&talk->talk); break;
    case AS_GROUP_VERB_COUNT: break;
    }
}

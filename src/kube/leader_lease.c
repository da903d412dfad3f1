/*
 * Leader election among replicas by a Lease.
 *
 * The state machine decides the requests. The leader sends them, one at a time, and reports when
 * the view has changed: it makes no decisions itself. A single replica has a leader that always
 * leads.
 */
#include <alertscaler/kube/leader_lease.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kube_documents.h>

/*
 * The state machine. It differs from client-go in three ways, each safer or faster:
 * - our term also ends by the wall clock;
 * - a deleted lease whose holder may still act is created again only when it would have expired;
 * - a waiting replica reads the lease twice per retry period, and right when the lease expires,
 *   so a dead leader is replaced within the lease duration and two seconds.
 */

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool leader_is_ours(const struct lease_state *state)
{
    return state->is_known && strcmp(state->seen.holder, state->identity) == 0;
}

/* Until when the holder of the record may act. A lease without a holder has expired. */
static as_mono_time get_expiry(const struct lease_state *state)
{
    if (!state->is_known || !*state->seen.holder)
        return (as_mono_time){INT64_MIN};
    int64_t duration = state->seen.duration_s > 0 ? state->seen.duration_s * AS_US_PER_S
                                                  : state->times.duration_us;
    return (as_mono_time){as_time_add(state->seen_at.us, duration)};
}

/* Three to four quarters of it, so that several replicas do not come at the same moment. */
static int64_t jitter(struct lease_state *state, int64_t us)
{
    int64_t quarter = us / 4;
    return us - (int64_t)as_random_get_below(&state->random, (uint64_t)quarter + 1);
}

static enum lease_order wait_until(struct lease_state *state, int64_t at_us)
{
    state->under_way = LEASE_WAIT;
    state->wake.us = at_us;
    return LEASE_WAIT;
}

static enum lease_order wait_for(struct lease_state *state, struct lease_now now, int64_t us)
{
    return wait_until(state, as_time_add(now.mono.us, jitter(state, us)));
}

/* Waits while another holds the lease: half a retry period, or until it expires. */
static enum lease_order wait_as_standby(struct lease_state *state, struct lease_now now)
{
    int64_t poll = as_time_add(now.mono.us, jitter(state, state->times.retry_us / 2));
    int64_t expiry = get_expiry(state).us;
    if (expiry <= now.mono.us)
        return wait_until(state, poll);
    int64_t apart = state->times.retry_us / 20 - jitter(state, state->times.retry_us / 20);
    return wait_until(state, min_i64(poll, as_time_add(expiry, apart)));
}

static enum lease_order leader_ask(struct lease_state *state, struct lease_now now,
                                   enum lease_order order)
{
    state->under_way = order;
    state->asked_at = now;
    return order;
}

static int32_t get_duration_s(const struct lease_state *state)
{
    return (int32_t)((state->times.duration_us + AS_US_PER_S - 1) / AS_US_PER_S);
}

static enum lease_order write_ours(struct lease_state *state, struct lease_now now)
{
    struct as_lease *want = &state->want;
    bool is_renewal = state->is_there && leader_is_ours(state);
    state->has_written = true;
    *want = (struct as_lease){
        .duration_s = get_duration_s(state),
        .acquired = is_renewal ? state->seen.acquired : (as_maybe_time){true, now.wall},
        .renewed = {true, now.wall},
    };
    memcpy(want->holder, state->identity, sizeof(want->holder));
    if (state->is_there)
        want->transitions = state->seen.transitions;
    if (state->is_there && !is_renewal && want->transitions < INT32_MAX)
        want->transitions++;
    return leader_ask(state, now, state->is_there ? LEASE_UPDATE : LEASE_CREATE);
}

/* As client-go does: without a holder, for a second. */
static enum lease_order write_released(struct lease_state *state, struct lease_now now)
{
    state->want = (struct as_lease){
        .duration_s = 1,
        .transitions = state->seen.transitions,
        .acquired = {true, now.wall},
        .renewed = {true, now.wall},
    };
    return leader_ask(state, now, LEASE_UPDATE);
}

static enum lease_order leader_end(struct lease_state *state)
{
    state->under_way = LEASE_WAIT;
    state->wake = AS_MONO_NEVER;
    return LEASE_DONE;
}

/* The object is known: decides what is next. */
static enum lease_order leader_proceed(struct lease_state *state, struct lease_now now)
{
    bool is_mine = state->is_there && leader_is_ours(state);
    if (state->releasing)
        return is_mine ? write_released(state, now) : leader_end(state);
    if (now.mono.us < state->yields_until.us) {
        state->leads = false;
        return is_mine ? write_released(state, now) : wait_as_standby(state, now);
    }
    if (is_mine)
        return write_ours(state, now);
    state->leads = false;
    if (get_expiry(state).us > now.mono.us && !leader_is_ours(state))
        return wait_as_standby(state, now);
    return write_ours(state, now);
}

/* `alertscaler-0` of `alertscaler-0_5f0c9e71b2d84a36`. */
static void print_replica(const char *holder, char text_out[AS_LEADER_REPLICA_SIZE])
{
    char name[AS_LEASE_HOLDER_SIZE];
    (void)snprintf(name, sizeof(name), "%s", holder);
    char *number = strrchr(name, '_');
    if (number && number > name)
        *number = '\0';
    as_str_copy_line(name, text_out, AS_LEADER_REPLICA_SIZE);
}

static struct as_leader_term *leader_add_term(struct lease_state *state,
                                              const struct as_lease *lease)
{
    if (state->term_count == AS_LEADER_TERMS_MAX)
        memmove(state->terms, state->terms + 1, --state->term_count * sizeof(*state->terms));
    struct as_leader_term *term = &state->terms[state->term_count++];
    *term = (struct as_leader_term){.since = lease->acquired};
    print_replica(lease->holder, term->replica);
    memcpy(state->term_holder, lease->holder, sizeof(state->term_holder));
    state->terms_seen++;
    return term;
}

/* Who leads, and led: not this process. */
static void leader_note_term(struct lease_state *state, struct lease_now now,
                             const struct as_lease *lease)
{
    const bool goes_on = strcmp(lease->holder, state->term_holder) == 0;
    const bool is_ours = strcmp(lease->holder, state->identity) == 0;
    struct as_leader_term *term = NULL;
    if (*state->term_holder && (goes_on || !*lease->holder)) /* given back */
        term = &state->terms[state->term_count - 1];
    else if (*lease->holder && !is_ours)
        term = leader_add_term(state, lease);
    if (term)
        term->until = lease->renewed.set ? lease->renewed.at : now.wall;
    if (!*lease->holder || is_ours)
        state->term_holder[0] = '\0';
}

static void leader_observe(struct lease_state *state, struct lease_now now,
                           const struct as_lease *lease)
{
    state->is_fresh = true;
    state->is_there = lease != NULL;
    if (!lease || (state->is_known && as_lease_is_same(&state->seen, lease)))
        return;
    state->is_known = true;
    state->seen = *lease;
    state->seen_at = now.mono;
    leader_note_term(state, now, lease);
}

static void end_term_in_time(struct lease_state *state, struct lease_now now)
{
    if (now.mono.us >= state->until.us || now.wall.us >= state->until_wall.us)
        state->leads = false;
}

void lease_state_init(struct lease_state *state, const char *identity,
                      const struct lease_times *times, uint64_t seed, struct lease_now now)
{
    *state = (struct lease_state){.times = *times, .wake = now.mono, .yields_until = {INT64_MIN}};
    snprintf(state->identity, sizeof(state->identity), "%s", identity);
    as_random_init(&state->random, seed);
}

enum lease_order lease_state_wake(struct lease_state *state, struct lease_now now)
{
    end_term_in_time(state, now);
    if (state->under_way != LEASE_WAIT || now.mono.us < state->wake.us)
        return LEASE_WAIT;
    if (state->leads && state->is_fresh)
        return write_ours(state, now);
    return leader_ask(state, now, LEASE_GET);
}

enum lease_order lease_state_on_read(struct lease_state *state, struct lease_now now,
                                     const struct as_lease *lease)
{
    end_term_in_time(state, now);
    leader_observe(state, now, lease);
    return leader_proceed(state, now);
}

enum lease_order lease_state_on_written(struct lease_state *state, struct lease_now now,
                                        const struct as_lease *lease)
{
    leader_observe(state, now, lease);
    if (state->releasing)
        return leader_end(state);
    if (!leader_is_ours(state)) { /* given back, or a webhook changed the holder */
        state->leads = false;
        return wait_as_standby(state, now);
    }
    if (state->has_doubt) { /* it was sent before the doubt arose */
        state->has_doubt = false;
        return leader_ask(state, now, LEASE_GET);
    }
    state->leads = true;
    state->until.us = as_time_add(state->asked_at.mono.us, state->times.renew_deadline_us);
    state->until_wall.us = as_time_add(state->asked_at.wall.us, state->times.renew_deadline_us);
    end_term_in_time(state, now); /* the answer may have taken long */
    int64_t next = as_time_add(state->asked_at.mono.us, state->times.retry_us);
    int64_t soonest = as_time_add(now.mono.us, state->times.retry_us / 4);
    return wait_until(state, next > soonest ? next : soonest);
}

enum lease_order lease_state_on_failed(struct lease_state *state, struct lease_now now)
{
    end_term_in_time(state, now);
    bool was_write = state->under_way == LEASE_CREATE || state->under_way == LEASE_UPDATE;
    state->has_doubt = false;
    if (was_write)
        state->is_fresh = false;
    return wait_for(state, now, was_write ? state->times.retry_us / 4 : state->times.retry_us / 2);
}

void lease_state_doubt(struct lease_state *state, struct lease_now now)
{
    state->leads = false;
    state->is_fresh = false;
    state->has_doubt = state->under_way == LEASE_CREATE || state->under_way == LEASE_UPDATE;
    state->wake = now.mono;
}

void lease_state_yield(struct lease_state *state, struct lease_now now)
{
    lease_state_doubt(state, now);
    state->yields_until.us = as_time_add(now.mono.us, state->times.duration_us);
}

enum lease_order lease_state_release(struct lease_state *state, struct lease_now now)
{
    if (state->under_way == LEASE_CREATE || state->under_way == LEASE_UPDATE)
        state->is_fresh = false;
    state->leads = false;
    state->releasing = true;
    if (!state->has_written)
        return leader_end(state);
    return state->is_fresh ? leader_proceed(state, now) : leader_ask(state, now, LEASE_GET);
}

bool lease_state_may_act(const struct lease_state *state, struct lease_now now)
{
    return state->leads && now.mono.us < state->until.us && now.wall.us < state->until_wall.us;
}

as_mono_time lease_state_get_wake(const struct lease_state *state)
{
    int64_t wake = state->under_way == LEASE_WAIT ? state->wake.us : INT64_MAX;
    return (as_mono_time){state->leads ? min_i64(wake, state->until.us) : wake};
}

/*
 * The leader by a Lease. The object is kept as it was read, because an update is written over it.
 */

#define OBJECT_MAX       ((size_t)512 * 1024) /* annotations may have 256 KiB */
#define PATH_MAX_SIZE    ((size_t)2048)
#define RELEASE_LIMIT_US (5 * AS_US_PER_S)
#define LOG_EVERY_US     (60 * AS_US_PER_S) /* while the problem lasts */

struct report { /* what the last callback reported */
    bool leads, is_paused;
    char holder[AS_LEASE_HOLDER_SIZE], paused[AS_MESSAGE_SIZE], problem[AS_ERROR_SIZE];
};

struct lease {
    struct as_leader port;
    const struct as_access_env *env;
    struct as_kube_access *access;
    struct as_kube_client client;
    struct as_leader_callbacks callbacks;
    char *namespace_, *name;
    struct as_buf collection, path; /* path of all Leases of the namespace; of ours */
    struct lease_state state;
    struct as_kube_request *request;
    struct as_buf object; /* as last read or written */
    bool is_paused;       /* as last read or written */
    char paused[AS_MESSAGE_SIZE];
    struct as_error problem; /* "": no problem */
    as_mono_time log_problem_at;
    struct report report;
    struct as_timer *timer, *release_timer;
    void (*done)(void *context); /* of the release; NULL: not asked for, or already called */
    void *done_context;
};

static void obey(struct lease *lease, enum lease_order order);

static struct lease_now lease_read_clocks(const struct lease *lease)
{
    const struct as_clock *clock = lease->env->clock;
    return (struct lease_now){clock->get_mono(clock), clock->get_wall(clock)};
}

static void leader_on_timer(void *context)
{
    struct lease *lease = context;
    lease->timer = NULL;
    obey(lease, lease_state_wake(&lease->state, lease_read_clocks(lease)));
}

static void leader_arm(struct lease *lease)
{
    struct as_loop *loop = lease->env->loop;
    const as_mono_time wake = lease_state_get_wake(&lease->state);
    loop->cancel_timer(loop, lease->timer);
    lease->timer = NULL;
    if (wake.us == INT64_MAX)
        return;
    const int64_t delay = wake.us - lease_read_clocks(lease).mono.us;
    lease->timer = loop->start_timer(loop, delay > 0 ? delay : 0, leader_on_timer, lease);
}

static void report_if_changed(struct lease *lease)
{
    struct report now = {.leads = lease->state.leads, .is_paused = lease->is_paused};
    snprintf(now.holder, sizeof(now.holder), "%s", lease->state.seen.holder);
    snprintf(now.paused, sizeof(now.paused), "%s", lease->paused);
    snprintf(now.problem, sizeof(now.problem), "%s", lease->problem.text);
    const struct report *old = &lease->report;
    if (now.leads == old->leads && now.is_paused == old->is_paused &&
        strcmp(now.holder, old->holder) == 0 && strcmp(now.paused, old->paused) == 0 &&
        strcmp(now.problem, old->problem) == 0)
        return;
    lease->report = now;
    lease->callbacks.changed(lease->callbacks.context);
}

static void end_release(struct lease *lease)
{
    struct as_loop *loop = lease->env->loop;
    void (*done)(void *context) = lease->done;
    loop->cancel_timer(loop, lease->release_timer);
    loop->cancel_timer(loop, lease->timer);
    lease->release_timer = lease->timer = NULL;
    lease->done = NULL;
    if (lease->request)
        as_kube_request_cancel(lease->request);
    lease->request = NULL;
    if (done)
        done(lease->done_context);
}

static void on_released(void *context)
{
    struct lease *lease = context;
    lease->release_timer = NULL;
    end_release(lease);
}

static void on_release_limit(void *context)
{
    struct lease *lease = context;
    lease->release_timer = NULL;
    as_log(AS_LOG_WARN, "lease not given back: another takes over when it has run out",
           AS_F("error", lease->problem.text));
    end_release(lease);
}

static void note_problem(struct lease *lease, const struct as_error *problem)
{
    const as_mono_time now = lease_read_clocks(lease).mono;
    const bool is_new = !*lease->problem.text;
    lease->problem = *problem;
    if (!is_new && now.us < lease->log_problem_at.us)
        return;
    lease->log_problem_at.us = as_time_add(now.us, LOG_EVERY_US);
    as_log(AS_LOG_WARN, "lease cannot be read or renewed", AS_F("error", problem->text));
}

static void set_problem(struct lease *lease, const struct as_http_response *response,
                        const char *what)
{
    struct as_error problem = AS_ERROR_INIT;
    struct as_kube_status status = {.message = ""};
    if (response->outcome != AS_HTTP_ANSWERED) {
        as_error_set(&problem, "%s", response->error);
    } else {
        if (as_kube_status_decode(response->body, response->body_size, &status, NULL) != 0)
            status.message[0] = '\0';
        as_error_set(&problem, "HTTP %d%s%s", response->status, *status.message ? ": " : "",
                     status.message);
    }
    as_error_wrap(&problem, "%s lease %s/%s", what, lease->namespace_, lease->name);
    note_problem(lease, &problem);
}

/* Keeps the object as the server has it now. False, with the problem noted, if it is unreadable. */
static bool leader_take_object(struct lease *lease, const struct as_http_response *response,
                               struct as_lease *record_out)
{
    struct as_lease_object object;
    struct as_error error = AS_ERROR_INIT;
    if (as_lease_decode(response->body, response->body_size, &object, &error) != 0) {
        as_error_wrap(&error, "lease %s/%s", lease->namespace_, lease->name);
        note_problem(lease, &error);
        return false;
    }
    as_buf_clear(&lease->object);
    as_buf_append(&lease->object, response->body, response->body_size);
    lease->is_paused = object.is_paused;
    memcpy(lease->paused, object.paused, sizeof(lease->paused));
    lease->problem = AS_ERROR_INIT;
    *record_out = object.lease;
    return true;
}

static bool is_answered(const struct as_http_response *response, int status)
{
    return response->outcome == AS_HTTP_ANSWERED && response->status == status;
}

static void on_read(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct lease *lease = context;
    struct as_lease record;
    lease->request = NULL;
    const struct lease_now now = lease_read_clocks(lease);
    if (is_answered(response, 404)) {
        lease->is_paused = false;
        obey(lease, lease_state_on_read(&lease->state, now, NULL));
    } else if (is_answered(response, 200) && leader_take_object(lease, response, &record)) {
        obey(lease, lease_state_on_read(&lease->state, now, &record));
    } else {
        if (!is_answered(response, 200))
            set_problem(lease, response, "reading");
        obey(lease, lease_state_on_failed(&lease->state, now));
    }
}

static void on_written(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct lease *lease = context;
    struct as_lease record;
    lease->request = NULL;
    const struct lease_now now = lease_read_clocks(lease);
    const bool is_done = is_answered(response, 200) || is_answered(response, 201);
    if (is_done && leader_take_object(lease, response, &record)) {
        obey(lease, lease_state_on_written(&lease->state, now, &record));
        return;
    }
    /* 409: another replica was faster, or somebody annotated the object */
    if (!is_done && !is_answered(response, 409))
        set_problem(lease, response, "writing");
    obey(lease, lease_state_on_failed(&lease->state, now));
}

static void leader_start_request(struct lease *lease, enum lease_order order)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(OBJECT_MAX);
    struct as_error error = AS_ERROR_INIT;
    struct as_kube_request_spec spec = {
        .method = "GET",
        .path = lease->path.data,
        .operation = "get_lease",
        .max_response = OBJECT_MAX,
        .class = AS_HTTP_LEASE,
        .timeout_us = lease->state.times.renew_deadline_us / 2,
    };
    int status = 0;
    if (order == LEASE_CREATE) {
        spec.method = "POST";
        spec.path = lease->collection.data;
        spec.operation = "create_lease";
        as_lease_encode_new(lease->namespace_, lease->name, &lease->state.want, &body);
    } else if (order == LEASE_UPDATE) {
        spec.method = "PUT";
        spec.operation = "update_lease";
        status = as_lease_encode_update(lease->object.data, lease->object.size, &lease->state.want,
                                        &body, &error);
    }
    if (status == 0 && (status = as_buf_check(&body)) != 0)
        as_error_set(&error, "it is too large");
    if (status != 0) {
        as_error_wrap(&error, "lease %s/%s cannot be written", lease->namespace_, lease->name);
        note_problem(lease, &error);
        if (lease_state_on_failed(&lease->state, lease_read_clocks(lease)) != LEASE_WAIT)
            abort(); /* see the header */
        return;
    }
    spec.body = body.size > 0 ? body.data : NULL;
    spec.body_size = body.size;
    lease->request = as_kube_request_start(&lease->client, &spec,
                                           order == LEASE_GET ? on_read : on_written, lease);
}

static void obey(struct lease *lease, enum lease_order order)
{
    switch (order) {
    case LEASE_WAIT: break;
    case LEASE_GET:
    case LEASE_CREATE:
    case LEASE_UPDATE: leader_start_request(lease, order); break;
    case LEASE_DONE: end_release(lease); return;
    }
    leader_arm(lease);
    if (!lease->state.releasing)
        report_if_changed(lease);
}

static void leader_start(struct as_leader *self, const struct as_leader_callbacks *callbacks)
{
    struct lease *lease = (struct lease *)self;
    lease->callbacks = *callbacks;
    leader_arm(lease); /* reported in a separate turn */
}

static struct as_leader_view leader_view(const struct as_leader *self)
{
    const struct lease *lease = (const struct lease *)self;
    return (struct as_leader_view){
        .is_leader = lease->state.leads,
        .identity = lease->state.identity,
        .holder = lease->state.seen.holder,
        .problem = *lease->problem.text ? lease->problem.text : NULL,
        .paused = lease->is_paused ? lease->paused : NULL,
        .terms = lease->state.terms,
        .term_count = lease->state.term_count,
        .terms_seen = lease->state.terms_seen,
    };
}

static bool may_act(const struct as_leader *self)
{
    const struct lease *lease = (const struct lease *)self;
    return lease_state_may_act(&lease->state, lease_read_clocks(lease));
}

static void doubt(struct as_leader *self)
{
    struct lease *lease = (struct lease *)self;
    lease_state_doubt(&lease->state, lease_read_clocks(lease));
    leader_arm(lease); /* reported in the timer's turn */
}

static void yield(struct as_leader *self)
{
    struct lease *lease = (struct lease *)self;
    lease_state_yield(&lease->state, lease_read_clocks(lease));
    leader_arm(lease); /* reported in the timer's turn */
}

static void leader_release(struct as_leader *self, void (*done)(void *context), void *context)
{
    struct lease *lease = (struct lease *)self;
    struct as_loop *loop = lease->env->loop;
    lease->done = done;
    lease->done_context = context;
    if (lease->request)
        as_kube_request_cancel(lease->request);
    lease->request = NULL;
    const enum lease_order order = lease_state_release(&lease->state, lease_read_clocks(lease));
    if (order == LEASE_DONE) {
        loop->cancel_timer(loop, lease->timer);
        lease->timer = NULL;
        lease->release_timer = loop->start_timer(loop, 0, on_released, lease);
        return;
    }
    lease->release_timer = loop->start_timer(loop, RELEASE_LIMIT_US, on_release_limit, lease);
    obey(lease, order);
}

static void close_leader(struct as_leader *self)
{
    struct lease *lease = (struct lease *)self;
    struct as_loop *loop = lease->env->loop;
    loop->cancel_timer(loop, lease->timer);
    loop->cancel_timer(loop, lease->release_timer);
    as_kube_client_deinit(&lease->client);
    as_kube_access_free(lease->access);
    as_buf_deinit(&lease->collection);
    as_buf_deinit(&lease->path);
    as_buf_deinit(&lease->object);
    free(lease->namespace_);
    free(lease->name);
    free(lease);
}

static void make_paths(struct lease *lease)
{
    struct as_buf *path = &lease->collection;
    *path = lease->path = AS_BUF_INIT(PATH_MAX_SIZE);
    as_buf_append_str(path, "/apis/coordination.k8s.io/v1/namespaces");
    if (as_kube_path_append(path, lease->namespace_) != 0 || as_buf_check(path) != 0)
        abort(); /* checked by the configuration */
    as_buf_append_str(path, "/leases");
    as_buf_append(&lease->path, path->data, path->size);
    if (as_kube_path_append(&lease->path, lease->name) != 0 || as_buf_check(&lease->path) != 0)
        abort();
}

struct as_leader *as_lease_leader_new(const struct as_lease_leader_config *config,
                                      struct as_kube_access *access,
                                      const struct as_access_env *env)
{
    struct lease *lease = as_xcalloc(1, sizeof(*lease));
    const struct lease_times times = {config->duration_us, config->renew_deadline_us,
                                      config->retry_us};
    lease->port = (struct as_leader){leader_start, leader_view,    may_act,     doubt,
                                     yield,        leader_release, close_leader};
    lease->env = env;
    lease->access = access;
    lease->namespace_ = as_xstrdup(config->namespace_);
    lease->name = as_xstrdup(config->name);
    lease->object = AS_BUF_INIT(OBJECT_MAX);
    make_paths(lease);
    as_kube_client_init(&lease->client, env, access);
    lease_state_init(&lease->state, config->identity, &times, config->seed,
                     lease_read_clocks(lease));
    return &lease->port;
}

/* The leader of a single replica always leads. */

struct always {
    struct as_leader port;
    struct as_loop *loop;
    char *identity;
    bool leads;
    struct as_leader_callbacks callbacks;
    void (*done)(void *context);
    void *done_context;
    struct as_timer *timer; /* of the next callback's turn */
};

static void leader_on_start(void *context)
{
    struct always *always = context;
    always->timer = NULL;
    always->leads = true;
    always->callbacks.changed(always->callbacks.context);
}

static void leader_always_on_released(void *context)
{
    struct always *always = context;
    always->timer = NULL;
    always->done(always->done_context);
}

static void leader_always_start(struct as_leader *self, const struct as_leader_callbacks *callbacks)
{
    struct always *always = (struct always *)self;
    always->callbacks = *callbacks;
    always->timer = always->loop->start_timer(always->loop, 0, leader_on_start, always);
}

static struct as_leader_view leader_always_view(const struct as_leader *self)
{
    const struct always *always = (const struct always *)self;
    return (struct as_leader_view){
        .is_leader = always->leads,
        .identity = always->identity,
        .holder = always->leads ? always->identity : "",
    };
}

static bool leader_always_may_act(const struct as_leader *self)
{
    return ((const struct always *)self)->leads;
}

static void leader_always_doubt(struct as_leader *self)
{
}

static void leader_always_yield(struct as_leader *self)
{
}

static void leader_always_release(struct as_leader *self, void (*done)(void *context),
                                  void *context)
{
    struct always *always = (struct always *)self;
    always->leads = false;
    always->done = done;
    always->done_context = context;
    always->loop->cancel_timer(always->loop, always->timer);
    always->timer = always->loop->start_timer(always->loop, 0, leader_always_on_released, always);
}

static void leader_always_close_leader(struct as_leader *self)
{
    struct always *always = (struct always *)self;
    always->loop->cancel_timer(always->loop, always->timer);
    free(always->identity);
    free(always);
}

struct as_leader *as_always_leader_new(const char *identity, struct as_loop *loop)
{
    struct always *always = as_xcalloc(1, sizeof(*always));
    always->port = (struct as_leader){
        leader_always_start, leader_always_view,    leader_always_may_act,     leader_always_doubt,
        leader_always_yield, leader_always_release, leader_always_close_leader};
    always->loop = loop;
    always->identity = as_xstrdup(identity);
    return &always->port;
}

/*
 * Requests with the same token share one review. A callback may free the reviewer (a reload that
 * used such a token), so an ended review is detached from it before the callbacks.
 */
#include <alertscaler/auth/auth_review.h>

#include <bsd/sys/queue.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/throttle.h>
#include <alertscaler/kube/kube_client.h>

#include <alertscaler/auth/credentials.h>

#define PATH        "/apis/authentication.k8s.io/v1/tokenreviews"
#define REQUEST_MAX ((size_t)64 * 1024)

struct as_review_wait {
    LIST_ENTRY(as_review_wait) link;
    struct asking *asking;
    as_review_fn *done;
    void *context;
    bool is_first;
};
LIST_HEAD(review_waits, as_review_wait);

struct asking { /* one running review */
    LIST_ENTRY(asking) link;
    struct as_reviewer *reviewer;
    struct as_kube_request *request;
    struct as_timer *timer; /* its time-out */
    struct review_waits waits;
    size_t wait_count;
    unsigned char digest[SHA256_DIGEST_LENGTH];
};
LIST_HEAD(asking_list, asking);

struct known {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    as_mono_time until;
    struct as_reviewed reviewed;
    struct as_arena arena; /* of its texts */
};

struct as_reviewer {
    const struct as_access_env *env;
    struct as_arena arena; /* of the audiences */
    const char *const *audiences;
    size_t audience_count;
    struct as_kube_access *access;
    struct as_kube_client client;
    struct asking_list asking;
    size_t asking_count, wait_count;
    struct known known[AS_REVIEWS_REMEMBER];
    size_t known_count, known_next;
    struct as_throttle failures;
};

static as_mono_time get_now(const struct as_reviewer *reviewer)
{
    return reviewer->env->clock->get_mono(reviewer->env->clock);
}

/* Anybody can send tokens: many failures give one line at intervals. */
static bool log_failures(const void *context, const struct as_throttle *failures)
{
    as_log(AS_LOG_WARN, "token not reviewed", AS_F("error", failures->error),
           AS_FI("count", failures->count));
    return true;
}

/* Checks that a request with the longest token fits. */
static int check_size(const struct as_token_review_settings *settings, struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(REQUEST_MAX - AS_TOKEN_MAX);
    as_token_review_encode("", settings->audiences, settings->audience_count, &body);
    if (as_buf_check(&body) == 0)
        return 0;
    as_error_set(error, "receiver.token_review.audiences: more than fits into a request");
    return -EINVAL;
}

int as_reviewer_new(const struct as_token_review_settings *settings,
                    const struct as_cluster_settings *cluster, const struct as_access_env *env,
                    struct as_reviewer **reviewer_out, struct as_error *error)
{
    struct as_kube_access *access;
    int status = check_size(settings, error);
    if (status != 0)
        return status;
    status =
        as_kube_access_new(&(struct as_kube_access_config){cluster->kubeconfig, cluster->context},
                           env, &access, error);
    if (status != 0) {
        as_error_wrap(error, "receiver.token_review: cluster %s", cluster->name);
        return status;
    }
    struct as_reviewer *reviewer = as_xcalloc(1, sizeof(*reviewer));
    const char **audiences =
        as_arena_alloc(&reviewer->arena, settings->audience_count, sizeof(*audiences));
    for (size_t i = 0; i < settings->audience_count; i++)
        audiences[i] = as_arena_strdup(&reviewer->arena, settings->audiences[i]);
    reviewer->audiences = audiences;
    reviewer->audience_count = settings->audience_count;
    reviewer->failures = AS_THROTTLE_INIT(AS_THROTTLE_EVERY_US, log_failures, NULL);
    reviewer->env = env;
    reviewer->access = access;
    as_kube_client_init(&reviewer->client, env, access);
    LIST_INIT(&reviewer->asking);
    *reviewer_out = reviewer;
    return 0;
}

static void review_report(struct asking *asking, const struct as_reviewed *reviewed)
{
    struct as_review_wait *wait;
    while ((wait = LIST_FIRST(&asking->waits))) {
        LIST_REMOVE(wait, link);
        wait->done(wait->context, reviewed);
        free(wait);
    }
}

/* Separates it from the reviewer. */
static void detach(struct asking *asking)
{
    const struct as_access_env *env = asking->reviewer->env;
    env->loop->cancel_timer(env->loop, asking->timer);
    LIST_REMOVE(asking, link);
    asking->reviewer->asking_count--;
    asking->reviewer->wait_count -= asking->wait_count;
    asking->reviewer = NULL;
}

static void asking_free(struct asking *asking)
{
    explicit_bzero(asking->digest, sizeof(asking->digest));
    free(asking);
}

/* Cancels its request. */
static void give_up(struct asking *asking)
{
    as_kube_request_cancel(asking->request);
    detach(asking);
    review_report(asking, NULL);
    asking_free(asking);
}

struct as_reviewer *as_reviewer_free(struct as_reviewer *reviewer)
{
    if (!reviewer)
        return NULL;
    struct asking *asking;
    while ((asking = LIST_FIRST(&reviewer->asking)))
        give_up(asking);
    as_throttle_end(&reviewer->failures, get_now(reviewer));
    as_kube_client_deinit(&reviewer->client);
    as_kube_access_free(reviewer->access);
    for (size_t i = 0; i < reviewer->known_count; i++)
        as_arena_deinit(&reviewer->known[i].arena);
    as_arena_deinit(&reviewer->arena);
    explicit_bzero(reviewer, sizeof(*reviewer));
    free(reviewer);
    return NULL;
}

static void digest_token(const char *token, unsigned char digest_out[SHA256_DIGEST_LENGTH])
{
    SHA256((const unsigned char *)token, strlen(token), digest_out);
}

const struct as_reviewed *as_reviewer_find(struct as_reviewer *reviewer, const char *token)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    const as_mono_time now = get_now(reviewer);
    const struct as_reviewed *found = NULL;
    digest_token(token, digest);
    for (size_t i = 0; i < reviewer->known_count; i++) {
        const struct known *known = &reviewer->known[i];
        if (as_str_equal_constant_time(known->digest, digest, sizeof(digest)) &&
            now.us < known->until.us)
            found = &known->reviewed;
    }
    return found;
}

static size_t measure(const struct as_reviewed *reviewed)
{
    size_t size = strlen(reviewed->user) + 1;
    for (size_t i = 0; i < reviewed->group_count; i++)
        size += strlen(reviewed->groups[i]) + 1 + sizeof(char *);
    return size;
}

static void remember(struct as_reviewer *reviewer, const struct asking *asking,
                     const struct as_reviewed *reviewed)
{
    struct known *known = &reviewer->known[reviewer->known_next];
    reviewer->known_next = (reviewer->known_next + 1) % AS_REVIEWS_REMEMBER;
    if (reviewer->known_count < AS_REVIEWS_REMEMBER)
        reviewer->known_count++;
    as_arena_deinit(&known->arena);
    *known = (struct known){.arena = AS_ARENA_INIT};
    memcpy(known->digest, asking->digest, sizeof(known->digest));
    known->until.us = get_now(reviewer).us + AS_REVIEW_REMEMBER_US;
    const char **groups = as_arena_alloc(&known->arena, reviewed->group_count, sizeof(*groups));
    for (size_t i = 0; i < reviewed->group_count; i++)
        groups[i] = as_arena_strdup(&known->arena, reviewed->groups[i]);
    known->reviewed = (struct as_reviewed){.authenticated = true,
                                           .user = as_arena_strdup(&known->arena, reviewed->user),
                                           .groups = groups,
                                           .group_count = reviewed->group_count};
}

static void add_failure(struct as_reviewer *reviewer, const char *text)
{
    as_throttle_add(&reviewer->failures, "", text, get_now(reviewer));
}

void as_reviewer_poll(struct as_reviewer *reviewer)
{
    as_throttle_refill(&reviewer->failures, get_now(reviewer));
}

struct result { /* an answer and its review */
    struct asking *asking;
    struct as_reviewer *reviewer; /* may be freed by a callback */
};

static void on_reviewed(void *context, const struct as_reviewed *reviewed)
{
    const struct result *result = context;
    if (reviewed->authenticated && measure(reviewed) <= AS_REVIEW_REMEMBER_MAX)
        remember(result->reviewer, result->asking, reviewed);
    review_report(result->asking, reviewed);
}

static void on_response(void *context, const struct as_http_response *response, unsigned attempts)
{
    struct asking *asking = context;
    struct as_reviewer *reviewer = asking->reviewer;
    struct result result = {asking, reviewer};
    struct as_error error = AS_ERROR_INIT;
    int status = -1;
    detach(asking);
    if (response->outcome != AS_HTTP_ANSWERED)
        as_error_set(&error, "%s", response->error);
    else if (response->status != 200 && response->status != 201)
        as_error_set(&error, "HTTP %d%s", response->status,
                     response->status == 403
                         ? ": the account may not create tokenreviews.authentication.k8s.io"
                         : "");
    else
        status = as_token_review_decode(response->body, response->body_size, reviewer->audiences,
                                        reviewer->audience_count, on_reviewed, &result, &error);
    if (status != 0) { /* no callback was called: the reviewer still exists */
        add_failure(reviewer, error.text);
        review_report(asking, NULL);
    }
    asking_free(asking);
}

static void on_timeout(void *context)
{
    struct asking *asking = context;
    asking->timer = NULL;
    add_failure(asking->reviewer, "the API server has not answered in time");
    give_up(asking);
}

static struct asking *find_asking(struct as_reviewer *reviewer,
                                  const unsigned char digest[SHA256_DIGEST_LENGTH])
{
    struct asking *asking;
    LIST_FOREACH (asking, &reviewer->asking, link) {
        if (as_str_equal_constant_time(asking->digest, digest, SHA256_DIGEST_LENGTH))
            return asking;
    }
    return NULL;
}

static struct asking *start(struct as_reviewer *reviewer, const char *token)
{
    struct as_buf body = AS_BUF_INIT(REQUEST_MAX);
    struct asking *asking = as_xcalloc(1, sizeof(*asking));
    asking->reviewer = reviewer;
    LIST_INIT(&asking->waits);
    digest_token(token, asking->digest);
    as_token_review_encode(token, reviewer->audiences, reviewer->audience_count, &body);
    asking->request = as_kube_request_start(&reviewer->client,
                                            &(struct as_kube_request_spec){
                                                .method = "POST",
                                                .path = PATH,
                                                .operation = "review_token",
                                                .body = body.data,
                                                .body_size = body.size,
                                                .max_response = AS_REVIEW_RESPONSE_MAX,
                                                .class = AS_HTTP_REVIEW,
                                                .timeout_us = AS_REVIEW_TIMEOUT_US,
                                            },
                                            on_response, asking);
    explicit_bzero(body.data, body.size);
    as_buf_deinit(&body);
    asking->timer = reviewer->env->loop->start_timer(reviewer->env->loop, AS_REVIEW_TIMEOUT_US,
                                                     on_timeout, asking);
    LIST_INSERT_HEAD(&reviewer->asking, asking, link);
    reviewer->asking_count++;
    return asking;
}

static size_t get_limit(size_t places, bool is_trusted)
{
    return is_trusted ? places : places - places / AS_REVIEWS_KEPT;
}

struct as_review_wait *as_reviewer_ask(struct as_reviewer *reviewer, const char *token,
                                       bool is_trusted, as_review_fn *done, void *context)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    digest_token(token, digest);
    struct asking *asking = find_asking(reviewer, digest);
    const bool is_first = !asking;
    if (reviewer->wait_count >= get_limit(AS_REVIEWS_WAITING, is_trusted) ||
        (asking && asking->wait_count >= AS_REVIEWS_OF_TOKEN) ||
        (is_first && reviewer->asking_count >= get_limit(AS_REVIEWS_UNDER_WAY, is_trusted)))
        return NULL;
    if (!asking)
        asking = start(reviewer, token);
    struct as_review_wait *wait = as_xcalloc(1, sizeof(*wait));
    *wait = (struct as_review_wait){
        .asking = asking, .done = done, .context = context, .is_first = is_first};
    LIST_INSERT_HEAD(&asking->waits, wait, link);
    asking->wait_count++;
    reviewer->wait_count++;
    return wait;
}

void as_review_wait_cancel(struct as_review_wait *wait)
{
    struct asking *asking = wait->asking;
    if (asking->reviewer) { /* else detached, and not counted any more */
        asking->wait_count--;
        asking->reviewer->wait_count--;
    }
    LIST_REMOVE(wait, link);
    free(wait);
}

bool as_review_wait_is_first(const struct as_review_wait *wait)
{
    return wait->is_first;
}

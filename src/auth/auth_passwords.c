/*
 * The loop owns everything but the three lists under the lock: jobs go to the thread through
 * `queued`, and come back through `ended` and the eventfd. Only one of both uses a job at any time.
 */
#include <alertscaler/auth/auth_passwords.h>

#include <bsd/sys/queue.h>
#include <crypt.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#define KEY_SIZE 32

struct job;

struct as_password_wait {
    LIST_ENTRY(as_password_wait) link;
    struct as_passwords *passwords;
    as_password_fn *done;
    void *context;
    bool is_first;
};
LIST_HEAD(wait_list, as_password_wait);

struct job {
    TAILQ_ENTRY(job) under_way; /* the loop's list */
    STAILQ_ENTRY(job) link;     /* under the lock */
    unsigned char key[KEY_SIZE];
    struct wait_list waits;
    char *hash, *password; /* used by the thread between queued and ended */
    bool is_user;          /* false: unknown user, never right */
    bool is_suspect;
    bool is_right;
};
TAILQ_HEAD(job_list, job);
STAILQ_HEAD(job_queue, job);

struct as_passwords {
    unsigned char secret[KEY_SIZE];
    unsigned char remembered[AS_PASSWORDS_REMEMBER][KEY_SIZE];
    size_t remembered_count, remembered_next;
    struct job_list under_way;
    size_t job_counts[2]; /* by is_suspect, as `queued` */
    size_t wait_count;
    struct event *event;
    int fd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct job_queue queued[2], ended;
    bool suspect_is_next;
    bool stopping;
};

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

static void job_free(struct as_passwords *passwords, struct job *job)
{
    struct as_password_wait *wait;
    while ((wait = LIST_FIRST(&job->waits))) {
        LIST_REMOVE(wait, link);
        passwords->wait_count--;
        free(wait);
    }
    TAILQ_REMOVE(&passwords->under_way, job, under_way);
    passwords->job_counts[job->is_suspect]--;
    wipe(job->hash);
    wipe(job->password);
    explicit_bzero(job->key, sizeof(job->key));
    free(job);
}

/* The thread */

static void compute(struct job *job, struct crypt_data *data)
{
    const char *hash = crypt_rn(job->password, job->hash, data, (int)sizeof(*data));
    const size_t size = strlen(job->hash);
    const bool is_equal = hash && strlen(hash) == size && hash[0] != '*' &&
                          as_str_equal_constant_time(hash, job->hash, size);
    job->is_right = is_equal && job->is_user;
    explicit_bzero(data, sizeof(*data));
}

/* Under the lock. The queues take turns; NULL: both are empty. */
static struct job *take_queued(struct as_passwords *passwords)
{
    bool is_suspect = passwords->suspect_is_next;
    if (STAILQ_EMPTY(&passwords->queued[is_suspect]))
        is_suspect = !is_suspect;
    struct job *job = STAILQ_FIRST(&passwords->queued[is_suspect]);
    if (job)
        STAILQ_REMOVE_HEAD(&passwords->queued[is_suspect], link);
    passwords->suspect_is_next = !is_suspect;
    return job;
}

static void *run(void *context)
{
    struct as_passwords *passwords = context;
    struct crypt_data *data = as_xcalloc(1, sizeof(*data));
    const uint64_t one = 1;
    pthread_mutex_lock(&passwords->lock);
    while (!passwords->stopping) {
        struct job *job = take_queued(passwords);
        if (!job) {
            pthread_cond_wait(&passwords->wake, &passwords->lock);
            continue;
        }
        pthread_mutex_unlock(&passwords->lock);
        compute(job, data);
        pthread_mutex_lock(&passwords->lock);
        STAILQ_INSERT_TAIL(&passwords->ended, job, link);
        while (write(passwords->fd, &one, sizeof(one)) < 0 && errno == EINTR) {
        }
    }
    pthread_mutex_unlock(&passwords->lock);
    free(data);
    return NULL;
}

/* The loop */

static bool is_remembered(const struct as_passwords *passwords, const unsigned char key[KEY_SIZE])
{
    bool found = false;
    for (size_t i = 0; i < passwords->remembered_count; i++)
        found |= as_str_equal_constant_time(passwords->remembered[i], key, KEY_SIZE);
    return found;
}

static void keep(struct as_passwords *passwords, const unsigned char key[KEY_SIZE])
{
    if (is_remembered(passwords, key))
        return;
    memcpy(passwords->remembered[passwords->remembered_next], key, KEY_SIZE);
    passwords->remembered_next = (passwords->remembered_next + 1) % AS_PASSWORDS_REMEMBER;
    if (passwords->remembered_count < AS_PASSWORDS_REMEMBER)
        passwords->remembered_count++;
}

static void passwords_report(struct as_passwords *passwords, struct job *job)
{
    struct as_password_wait *wait;
    while ((wait = LIST_FIRST(&job->waits))) {
        LIST_REMOVE(wait, link);
        passwords->wait_count--;
        wait->done(wait->context, job->is_right);
        free(wait);
    }
}

static void on_ended(evutil_socket_t fd, short what, void *context)
{
    struct as_passwords *passwords = context;
    uint64_t count;
    if (read(fd, &count, sizeof(count)) < 0)
        return; /* already read: a later turn has the rest */
    for (;;) {
        pthread_mutex_lock(&passwords->lock);
        struct job *job = STAILQ_FIRST(&passwords->ended);
        if (job)
            STAILQ_REMOVE_HEAD(&passwords->ended, link);
        pthread_mutex_unlock(&passwords->lock);
        if (!job)
            return;
        if (job->is_right)
            keep(passwords, job->key);
        passwords_report(passwords, job);
        job_free(passwords, job);
    }
}

struct as_passwords *as_passwords_new(struct event_base *base)
{
    struct as_passwords *passwords = as_xcalloc(1, sizeof(*passwords));
    TAILQ_INIT(&passwords->under_way);
    STAILQ_INIT(&passwords->queued[false]);
    STAILQ_INIT(&passwords->queued[true]);
    STAILQ_INIT(&passwords->ended);
    passwords->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    passwords->event = event_new(base, passwords->fd, EV_READ | EV_PERSIST, on_ended, passwords);
    sigset_t all, before;
    sigfillset(&all);
    if (passwords->fd < 0 || !passwords->event || event_add(passwords->event, NULL) != 0 ||
        RAND_bytes(passwords->secret, KEY_SIZE) != 1 ||
        pthread_mutex_init(&passwords->lock, NULL) != 0 ||
        pthread_cond_init(&passwords->wake, NULL) != 0 ||
        pthread_sigmask(SIG_SETMASK, &all, &before) != 0 || /* only the loop handles signals */
        pthread_create(&passwords->thread, NULL, run, passwords) != 0 ||
        pthread_sigmask(SIG_SETMASK, &before, NULL) != 0)
        abort(); /* at the start, only without memory */
    return passwords;
}

struct as_passwords *as_passwords_free(struct as_passwords *passwords)
{
    if (!passwords)
        return NULL;
    pthread_mutex_lock(&passwords->lock);
    passwords->stopping = true;
    pthread_cond_signal(&passwords->wake);
    pthread_mutex_unlock(&passwords->lock);
    pthread_join(passwords->thread, NULL);
    struct job *job;
    while ((job = TAILQ_FIRST(&passwords->under_way)))
        job_free(passwords, job);
    pthread_cond_destroy(&passwords->wake);
    pthread_mutex_destroy(&passwords->lock);
    event_free(passwords->event);
    close(passwords->fd);
    explicit_bzero(passwords, sizeof(*passwords));
    free(passwords);
    return NULL;
}

/* Each part includes its NUL, so that parts cannot be confused. */
static void make_key(const struct as_passwords *passwords, const char *user, const char *hash,
                     const char *password, unsigned char key_out[KEY_SIZE])
{
    const char *const parts[] = {user, hash ? hash : "", password};
    unsigned size = KEY_SIZE;
    char *text = as_xcalloc(1, strlen(user) + strlen(parts[1]) + strlen(password) + 3);
    size_t end = 0;
    for (size_t i = 0; i < AS_ARRAY_SIZE(parts); i++) {
        const size_t part = strlen(parts[i]) + 1;
        memcpy(text + end, parts[i], part);
        end += part;
    }
    if (!HMAC(EVP_sha256(), passwords->secret, KEY_SIZE, (const unsigned char *)text, end, key_out,
              &size))
        abort();
    explicit_bzero(text, end);
    free(text);
}

bool as_passwords_remember(const struct as_passwords *passwords, const char *user, const char *hash,
                           const char *password)
{
    unsigned char key[KEY_SIZE];
    make_key(passwords, user, hash, password, key);
    const bool found = is_remembered(passwords, key);
    explicit_bzero(key, sizeof(key));
    return found;
}

static struct job *find_job(struct as_passwords *passwords, const unsigned char key[KEY_SIZE])
{
    struct job *job;
    TAILQ_FOREACH (job, &passwords->under_way, under_way) {
        if (as_str_equal_constant_time(job->key, key, KEY_SIZE))
            return job;
    }
    return NULL;
}

static struct job *start_job(struct as_passwords *passwords, const unsigned char key[KEY_SIZE],
                             const struct as_password_guess *guess)
{
    struct job *job = as_xcalloc(1, sizeof(*job));
    memcpy(job->key, key, KEY_SIZE);
    job->is_user = guess->hash != NULL;
    job->is_suspect = guess->is_suspect;
    job->hash = as_xstrdup(guess->hash ? guess->hash : guess->like);
    job->password = as_xstrdup(guess->password);
    LIST_INIT(&job->waits);
    TAILQ_INSERT_TAIL(&passwords->under_way, job, under_way);
    passwords->job_counts[job->is_suspect]++;
    pthread_mutex_lock(&passwords->lock);
    STAILQ_INSERT_TAIL(&passwords->queued[job->is_suspect], job, link);
    pthread_cond_signal(&passwords->wake);
    pthread_mutex_unlock(&passwords->lock);
    return job;
}

enum as_password_outcome as_passwords_check(struct as_passwords *passwords,
                                            const struct as_password_guess *guess,
                                            as_password_fn *done, void *context,
                                            struct as_password_wait **wait_out)
{
    unsigned char key[KEY_SIZE];
    if (strlen(guess->password) > AS_PASSWORD_MAX)
        return AS_PASSWORD_WRONG;
    make_key(passwords, guess->user, guess->hash, guess->password, key);
    if (guess->hash && is_remembered(passwords, key))
        return AS_PASSWORD_RIGHT;
    struct job *job = find_job(passwords, key);
    const bool is_first = !job;
    if (passwords->wait_count == AS_PASSWORDS_WAITING ||
        (!job && passwords->job_counts[guess->is_suspect] == AS_PASSWORDS_QUEUED))
        return AS_PASSWORD_BUSY;
    if (!job)
        job = start_job(passwords, key, guess);
    explicit_bzero(key, sizeof(key));
    struct as_password_wait *wait = as_xcalloc(1, sizeof(*wait));
    *wait = (struct as_password_wait){
        .passwords = passwords, .done = done, .context = context, .is_first = is_first};
    LIST_INSERT_HEAD(&job->waits, wait, link);
    passwords->wait_count++;
    *wait_out = wait;
    return AS_PASSWORD_PENDING;
}

void as_password_wait_cancel(struct as_password_wait *wait)
{
    LIST_REMOVE(wait, link);
    wait->passwords->wait_count--;
    free(wait);
}

bool as_password_wait_is_first(const struct as_password_wait *wait)
{
    return wait->is_first;
}

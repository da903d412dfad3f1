/*
 * An array: it is searched as a whole in any case.
 */
#include "session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>
#include <openssl/sha.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>

#define ID_BYTES 32

struct place {
    struct as_session session;
    char *credential, *token; /* those of session.owner */
    as_mono_time began, used;
};

struct as_sessions {
    struct place places[AS_SESSIONS_MAX];
    size_t count; /* the first ones are taken */
};

struct as_sessions *as_sessions_new(void)
{
    return as_xcalloc(1, sizeof(struct as_sessions));
}

static void clear(struct place *place)
{
    free(place->credential);
    as_wipe_free(place->token);
    explicit_bzero(place, sizeof(*place));
}

struct as_sessions *as_sessions_free(struct as_sessions *sessions)
{
    if (!sessions)
        return NULL;
    for (size_t i = 0; i < sessions->count; i++)
        clear(&sessions->places[i]);
    free(sessions);
    return NULL;
}

static void end(struct as_sessions *sessions, struct place *place)
{
    struct place *last = &sessions->places[--sessions->count];
    clear(place);
    if (place != last)
        *place = *last;
    explicit_bzero(last, sizeof(*last));
}

static bool is_over(const struct place *place, as_mono_time now)
{
    return now.us - place->began.us >= AS_SESSION_MAX_US ||
           now.us - place->used.us >= AS_SESSION_IDLE_US;
}

static size_t count_of(const struct as_sessions *sessions, const char *credential)
{
    size_t count = 0;
    for (size_t i = 0; i < sessions->count; i++)
        count += strcmp(sessions->places[i].credential, credential) == 0;
    return count;
}

/* The one that makes room; `credential` gets one more. */
static struct place *choose(struct as_sessions *sessions, const char *credential)
{
    struct place *chosen = NULL;
    size_t most = 0;
    for (size_t i = 0; i < sessions->count; i++) {
        struct place *place = &sessions->places[i];
        const size_t count =
            count_of(sessions, place->credential) + (strcmp(place->credential, credential) == 0);
        if (count > most || (count == most && place->used.us < chosen->used.us)) {
            chosen = place;
            most = count;
        }
    }
    return chosen;
}

static struct as_digest get_digest(const char *id)
{
    struct as_digest digest;
    static_assert(sizeof(digest.bytes) == SHA256_DIGEST_LENGTH, "SHA-256");
    SHA256((const unsigned char *)id, strlen(id), digest.bytes);
    return digest;
}

void as_sessions_begin(struct as_sessions *sessions, const struct as_session_owner *owner,
                       as_mono_time now, char id_out[AS_SESSION_ID_SIZE])
{
    unsigned char bytes[ID_BYTES];
    struct as_buf id = AS_BUF_INIT(AS_SESSION_ID_SIZE);
    as_sessions_expire(sessions, now, NULL, NULL);
    if (sessions->count == AS_SESSIONS_MAX)
        end(sessions, choose(sessions, owner->credential));
    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        abort();
    as_encode_base64url(&id, bytes, sizeof(bytes));
    assert(as_buf_check(&id) == 0 && id.size == AS_SESSION_ID_SIZE - 1);
    memcpy(id_out, id.data, AS_SESSION_ID_SIZE);
    as_buf_wipe(&id);
    explicit_bzero(bytes, sizeof(bytes));

    struct place *place = &sessions->places[sessions->count++];
    place->credential = as_xstrdup(owner->credential);
    place->token = owner->token ? as_xstrdup(owner->token) : NULL;
    place->began = place->used = now;
    place->session = (struct as_session){get_digest(id_out), *owner};
    place->session.owner.credential = place->credential;
    place->session.owner.token = place->token;
}

static struct place *find(struct as_sessions *sessions, const struct as_digest *digest)
{
    struct place *found = NULL;
    for (size_t i = 0; i < sessions->count; i++) {
        struct place *place = &sessions->places[i];
        if (as_str_equal_constant_time(place->session.digest.bytes, digest->bytes,
                                       sizeof(digest->bytes)))
            found = place;
    }
    return found;
}

const struct as_session *as_sessions_find(struct as_sessions *sessions, const char *id,
                                          as_mono_time now, bool is_use)
{
    const struct as_digest digest = get_digest(id);
    struct place *place = find(sessions, &digest);
    if (!place)
        return NULL;
    if (is_over(place, now)) {
        end(sessions, place);
        return NULL;
    }
    if (is_use)
        place->used = now;
    return &place->session;
}

void as_sessions_end(struct as_sessions *sessions, const struct as_digest *digest)
{
    struct place *place = find(sessions, digest);
    if (place)
        end(sessions, place);
}

void as_sessions_expire(struct as_sessions *sessions, as_mono_time now,
                        bool (*keeps)(void *context, const struct as_session_owner *owner),
                        void *context)
{
    for (size_t i = sessions->count; i > 0; i--) { /* the last one moves to an ended one's place */
        struct place *place = &sessions->places[i - 1];
        if (is_over(place, now) || (keeps && !keeps(context, &place->session.owner)))
            end(sessions, place);
    }
}

size_t as_sessions_count(const struct as_sessions *sessions)
{
    return sessions->count;
}

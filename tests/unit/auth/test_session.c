/*
 * Sessions: found by their id alone, ended in time, limited in number without one credential
 * throwing out the others.
 */
#include "auth/session.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

static struct as_sessions *sessions;
static as_mono_time now;

static void setup(void)
{
    sessions = as_sessions_new();
    now.us = AS_US_PER_S;
}

static void teardown(void)
{
    sessions = as_sessions_free(sessions);
}

TestSuite(session, .init = setup, .fini = teardown);

static void begin(const char *credential, char id_out[AS_SESSION_ID_SIZE])
{
    const struct as_session_owner owner = {.credential = credential};
    as_sessions_begin(sessions, &owner, now, id_out);
    now.us++;
}

/* The script of a page, and not a person, uses it. */
static bool has_for_script(const char *id)
{
    return as_sessions_find(sessions, id, now, false) != NULL;
}

static bool has(const char *id)
{
    return as_sessions_find(sessions, id, now, true) != NULL;
}

Test(session, a_script_does_not_extend_it)
{
    char id[AS_SESSION_ID_SIZE];
    begin("alice", id);
    for (int i = 0; i < 3; i++) {
        cr_expect(has_for_script(id));
        now.us += AS_SESSION_IDLE_US / 4;
    }
    cr_expect(has(id));
    now.us += AS_SESSION_IDLE_US - 1;
    cr_expect(has_for_script(id));
    now.us++;
    cr_expect_not(has_for_script(id));
}

Test(session, is_found_by_its_whole_id)
{
    char id[AS_SESSION_ID_SIZE], other[AS_SESSION_ID_SIZE], text[64];
    begin("alice", id);
    begin("alice", other);
    cr_expect_eq(strlen(id), AS_SESSION_ID_SIZE - 1);
    cr_expect_str_neq(id, other);
    cr_expect_eq(strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"),
                 strlen(id));
    const struct as_session *session = as_sessions_find(sessions, id, now, true);
    cr_assert(session);
    cr_expect_str_eq(session->owner.credential, "alice");
    cr_expect_not(has(""));
    for (size_t size = 0; size < strlen(id); size++) {
        (void)snprintf(text, sizeof(text), "%.*s", (int)size, id);
        cr_expect_not(has(text));
        (void)snprintf(text, sizeof(text), "%s", id);
        text[size] = text[size] == 'A' ? 'B' : 'A';
        cr_expect_not(has(text));
    }
    (void)snprintf(text, sizeof(text), "%sA", id);
    cr_expect_not(has(text));
    cr_expect(has(id));
}

Test(session, copies_what_its_owner_is)
{
    char id[AS_SESSION_ID_SIZE], name[] = "alice", token[] = "a.secret.token";
    const struct as_session_owner owner = {
        .credential = name, .secret = {{1, 2}}, .token = token, .is_local = true};
    as_sessions_begin(sessions, &owner, now, id);
    name[0] = token[0] = 'x';
    const struct as_session *session = as_sessions_find(sessions, id, now, true);
    cr_assert(session);
    cr_expect_str_eq(session->owner.credential, "alice");
    cr_expect_str_eq(session->owner.token, "a.secret.token");
    cr_expect_eq(session->owner.secret.bytes[1], 2);
    cr_expect(session->owner.is_local);
}

Test(session, ends_after_half_an_hour_without_use)
{
    char id[AS_SESSION_ID_SIZE], used[AS_SESSION_ID_SIZE];
    begin("alice", id);
    begin("alice", used);
    for (int i = 0; i < 3; i++) {
        now.us += 10 * AS_US_PER_MIN;
        cr_expect(has(used));
    }
    cr_expect_not(has(id));
    cr_expect_eq(as_sessions_count(sessions), 1); /* it is gone, not only hidden */
    now.us += AS_SESSION_IDLE_US - 1;
    cr_expect(has(used));
    now.us += AS_SESSION_IDLE_US;
    cr_expect_not(has(used));
}

Test(session, ends_after_twelve_hours_however_much_it_is_used)
{
    char id[AS_SESSION_ID_SIZE];
    begin("alice", id);
    const int64_t end = now.us - 1 + AS_SESSION_MAX_US;
    while (now.us + AS_US_PER_MIN < end) {
        now.us += AS_US_PER_MIN;
        cr_assert(has(id));
    }
    now.us = end - 1;
    cr_expect(has(id));
    now.us = end;
    cr_expect_not(has(id));
    cr_expect_eq(as_sessions_count(sessions), 0);
}

Test(session, ends_when_it_is_told)
{
    char id[AS_SESSION_ID_SIZE], other[AS_SESSION_ID_SIZE];
    begin("alice", id);
    begin("alice", other);
    const struct as_digest digest = as_sessions_find(sessions, id, now, true)->digest;
    as_sessions_end(sessions, &digest);
    as_sessions_end(sessions, &digest);
    cr_expect_not(has(id));
    cr_expect(has(other));
}

static bool is_bob(void *context, const struct as_session_owner *owner)
{
    ++*(int *)context;
    return strcmp(owner->credential, "bob") == 0;
}

Test(session, those_that_are_not_kept_end_together)
{
    char ids[4][AS_SESSION_ID_SIZE];
    int asked = 0;
    begin("alice", ids[0]);
    begin("bob", ids[1]);
    begin("alice", ids[2]);
    begin("bob", ids[3]);
    as_sessions_expire(sessions, now, is_bob, &asked);
    cr_expect_eq(asked, 4);
    cr_expect_eq(as_sessions_count(sessions), 2);
    cr_expect(has(ids[1]) && has(ids[3]));
    now.us += AS_SESSION_IDLE_US;
    as_sessions_expire(sessions, now, NULL, NULL);
    cr_expect_eq(as_sessions_count(sessions), 0);
}

/* The one who logs in often loses his own, the longest unused first. */
Test(session, the_hundred_and_first_throws_out_nobody_else)
{
    static char ids[AS_SESSIONS_MAX + 50][AS_SESSION_ID_SIZE];
    char alice[2][AS_SESSION_ID_SIZE], late[AS_SESSION_ID_SIZE];
    begin("alice", alice[0]);
    begin("alice", alice[1]);
    for (size_t i = 0; i < AS_ARRAY_SIZE(ids); i++)
        begin("mallory", ids[i]);
    cr_expect_eq(as_sessions_count(sessions), AS_SESSIONS_MAX);
    cr_expect(has(alice[0]) && has(alice[1]));
    cr_expect(has(ids[AS_ARRAY_SIZE(ids) - 1]));
    cr_expect(has(ids[52]));
    cr_expect_not(has(ids[51]));
    begin("bob", late); /* makes room at mallory's, not at alice's */
    cr_expect(has(late) && has(alice[0]) && has(alice[1]));
    cr_expect_not(has(ids[53])); /* 52 was used a moment ago */
    cr_expect(has(ids[52]));
}

Test(session, a_full_table_of_old_ones_makes_room_by_itself)
{
    static char ids[AS_SESSIONS_MAX][AS_SESSION_ID_SIZE];
    char id[AS_SESSION_ID_SIZE];
    for (size_t i = 0; i < AS_ARRAY_SIZE(ids); i++)
        begin("alice", ids[i]);
    now.us += AS_SESSION_IDLE_US;
    begin("bob", id);
    cr_expect_eq(as_sessions_count(sessions), 1);
    cr_expect(has(id));
}

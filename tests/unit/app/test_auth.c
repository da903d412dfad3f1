/*
 * Bearer tokens: who gets in, and under which name; what happens when their files change.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth.h"

static char folder[] = "/tmp/test-auth-XXXXXX";
static char paths[2][64];

static void write_file(const char *path, const char *text)
{
    char temporary[80];
    (void)snprintf(temporary, sizeof(temporary), "%s.new", path);
    FILE *file = fopen(temporary, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
    cr_assert_eq(rename(temporary, path), 0);
}

static void make_folder(void)
{
    cr_assert(mkdtemp(folder));
    for (int i = 0; i < 2; i++)
        (void)snprintf(paths[i], sizeof(paths[i]), "%s/token%d", folder, i);
}

static void remove_folder(void)
{
    for (int i = 0; i < 2; i++)
        (void)unlink(paths[i]);
    (void)rmdir(folder);
}

TestSuite(auth, .init = make_folder, .fini = remove_folder);

static struct as_auth *make_two(void)
{
    const struct as_auth_token tokens[] = {{"old", paths[0]}, {"new", paths[1]}};
    struct as_auth *auth = NULL;
    write_file(paths[0], "first-token\n");
    write_file(paths[1], "  second token with spaces \n");
    cr_assert_eq(as_auth_new(tokens, 2, &auth, NULL), 0);
    return auth;
}

Test(auth, each_token_opens_under_its_name_and_nothing_else_does)
{
    static const struct {
        const char *header;
        enum as_auth_outcome outcome;
        const char *name;
    } rows[] = {
        {"Bearer first-token", AS_AUTH_OK, "old"},
        {"bearer first-token", AS_AUTH_OK, "old"}, /* schemes have no case */
        {"Bearer   first-token", AS_AUTH_OK, "old"},
        {"Bearer second token with spaces", AS_AUTH_OK, "new"},
        {NULL, AS_AUTH_MISSING, ""},
        {"", AS_AUTH_MISSING, ""},
        {"Basic Zmlyc3QtdG9rZW4=", AS_AUTH_MISSING, ""},
        {"Bearer", AS_AUTH_MISSING, ""},
        {"Bearer ", AS_AUTH_WRONG, ""},
        {"Bearer first-toke", AS_AUTH_WRONG, ""},
        {"Bearer first-token2", AS_AUTH_WRONG, ""},
        {"Bearer FIRST-TOKEN", AS_AUTH_WRONG, ""},
    };
    struct as_auth *auth = make_two();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *name = NULL;
        cr_expect_eq(as_auth_check(auth, rows[i].header, (as_mono_time){0}, &name), rows[i].outcome,
                     "row %zu", i);
        cr_expect_str_eq(name, rows[i].name, "row %zu", i);
    }
    as_auth_free(auth);
}

Test(auth, without_tokens_everyone_gets_in_without_a_name)
{
    struct as_auth *auth = NULL;
    const char *name = NULL;
    cr_assert_eq(as_auth_new(NULL, 0, &auth, NULL), 0);
    cr_expect_eq(as_auth_check(auth, NULL, (as_mono_time){0}, &name), AS_AUTH_OK);
    cr_expect_str_eq(name, "");
    as_auth_free(auth);
}

Test(auth, a_rotated_token_replaces_the_old_one_within_a_second)
{
    struct as_auth *auth = make_two();
    const char *name;
    cr_expect_eq(as_auth_check(auth, "Bearer first-token", (as_mono_time){10 * AS_US_PER_S}, &name),
                 AS_AUTH_OK);
    write_file(paths[0], "third-token");
    const as_mono_time later = {12 * AS_US_PER_S};
    cr_expect_eq(as_auth_check(auth, "Bearer first-token", later, &name), AS_AUTH_WRONG);
    cr_expect_eq(as_auth_check(auth, "Bearer third-token", later, &name), AS_AUTH_OK);
    cr_expect_str_eq(name, "old");
    as_auth_free(auth);
}

Test(auth, while_a_file_cannot_be_used_the_old_token_stays)
{
    struct as_auth *auth = make_two();
    const char *name;
    write_file(paths[0], " \n");
    cr_expect_eq(as_auth_check(auth, "Bearer first-token", (as_mono_time){2 * AS_US_PER_S}, &name),
                 AS_AUTH_OK);
    cr_assert_eq(unlink(paths[0]), 0);
    cr_expect_eq(as_auth_check(auth, "Bearer first-token", (as_mono_time){4 * AS_US_PER_S}, &name),
                 AS_AUTH_OK);
    as_auth_free(auth);
}

Test(auth, a_file_that_is_missing_or_empty_at_the_start_is_an_error_that_names_it)
{
    const struct as_auth_token token = {"one", paths[0]};
    struct as_auth *auth = NULL;
    struct as_error error = AS_ERROR_INIT;
    cr_expect_eq(as_auth_new(&token, 1, &auth, &error), -2 /* ENOENT */);
    cr_expect(strstr(error.text, paths[0]), "%s", error.text);
    write_file(paths[0], "\n");
    cr_expect_eq(as_auth_new(&token, 1, &auth, &error), -22 /* EINVAL */);
    cr_expect(strstr(error.text, "empty"), "%s", error.text);
}

/*
 * Bearer tokens: their credentials, and changes of their files.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/log.h>

#include <alertscaler/auth/credentials.h>

static char folder[] = "/tmp/test-credentials-XXXXXX";
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

TestSuite(credentials, .init = make_folder, .fini = remove_folder);

static struct as_token_settings make_token(const char *name, const char *file, unsigned permissions)
{
    return (struct as_token_settings){
        .name = name, .file = file, .access = {.permissions = permissions}};
}

static struct as_credentials *make_two(void)
{
    struct as_token_settings tokens[] = {make_token("old", paths[0], 1),
                                         make_token("new", paths[1], 6)};
    const struct as_receiver_settings settings = {.tokens = tokens, .token_count = 2};
    struct as_credentials *credentials = NULL;
    write_file(paths[0], "first-token\n");
    write_file(paths[1], "  second token with spaces \n");
    cr_assert_eq(as_credentials_new(&settings, NULL, &credentials, NULL), 0);
    return credentials;
}

static const char *find(struct as_credentials *credentials, const char *token, int64_t at_s)
{
    const struct as_credential *found =
        as_credentials_find_token(credentials, token, (as_mono_time){at_s * AS_US_PER_S});
    return found ? found->name : "";
}

Test(credentials, each_token_is_its_own_and_nothing_else_is_one)
{
    static const struct {
        const char *token, *name;
    } rows[] = {
        {"first-token", "old"},
        {"second token with spaces", "new"},
        {"", ""},
        {"first-toke", ""},
        {"first-token2", ""},
        {"FIRST-TOKEN", ""},
        {"first-token\n", ""},
    };
    struct as_credentials *credentials = make_two();
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        cr_expect_str_eq(find(credentials, rows[i].token, 0), rows[i].name, "row %zu", i);
    as_credentials_free(credentials);
}

Test(credentials, what_each_may_do_is_known)
{
    struct as_credentials *credentials = make_two();
    const as_mono_time now = {0};
    cr_expect_eq(as_credentials_find_token(credentials, "first-token", now)->permissions, 1);
    cr_expect_eq(
        as_credentials_find_token(credentials, "second token with spaces", now)->permissions, 6);
    cr_expect(as_credentials_has_permission(credentials, AS_PERMISSION_ADMIN));
    cr_expect_not(as_credentials_is_empty(credentials));
    as_credentials_free(credentials);
}

Test(credentials, none_are_none)
{
    struct as_credentials *credentials = NULL;
    cr_assert_eq(as_credentials_new(&(struct as_receiver_settings){0}, NULL, &credentials, NULL),
                 0);
    cr_expect(as_credentials_is_empty(credentials));
    cr_expect_not(as_credentials_has_permission(credentials, AS_PERMISSION_NOTIFY));
    cr_expect_str_eq(find(credentials, "", 0), "");
    as_credentials_free(credentials);
}

Test(credentials, a_rotated_token_replaces_the_old_one_within_two_seconds)
{
    struct as_credentials *credentials = make_two();
    cr_expect_str_eq(find(credentials, "first-token", 10), "old");
    write_file(paths[0], "third-token");
    cr_expect_str_eq(find(credentials, "first-token", 12), "old");
    cr_expect_str_eq(find(credentials, "first-token", 13), "");
    cr_expect_str_eq(find(credentials, "third-token", 13), "old");
    as_credentials_free(credentials);
}

Test(credentials, half_of_a_token_is_no_token)
{
    struct as_credentials *credentials = make_two();
    write_file(paths[0], "th");
    cr_expect_str_eq(find(credentials, "th", 2), "");
    cr_expect_str_eq(find(credentials, "first-token", 2), "old");
    write_file(paths[0], "third-token");
    cr_expect_str_eq(find(credentials, "first-token", 3), "old", "it has changed since");
    cr_expect_str_eq(find(credentials, "third-token", 4), "old");
    cr_expect_str_eq(find(credentials, "th", 4), "");
    as_credentials_free(credentials);
}

Test(credentials, while_a_file_cannot_be_used_the_old_token_stays)
{
    struct as_credentials *credentials = make_two();
    write_file(paths[0], " \n");
    cr_expect_str_eq(find(credentials, "first-token", 2), "old");
    cr_assert_eq(unlink(paths[0]), 0);
    cr_expect_str_eq(find(credentials, "first-token", 4), "old");
    as_credentials_free(credentials);
}

/* Else the time of an answer to nobody would be that of whoever is named first. */
Test(credentials, nobodys_password_costs_as_much_as_the_dearest)
{
#define REST "ABpxdbZS3aRuCeVrPHD29.h35Bh9KqToLEkb0Fty3MlWusHsMbV.G"
    struct as_web_user users[] = {
        {"a", "$2b$04$" REST}, {"b", "$2y$12$" REST}, {"c", "$2b$09$" REST}};
    const struct as_web_settings web = {.users = users, .user_count = 3};
    struct as_credentials *credentials = NULL;
    cr_assert_eq(as_credentials_new(&(struct as_receiver_settings){0}, &web, &credentials, NULL),
                 0);
    cr_expect_str_eq(as_credentials_find_dearest_hash(credentials), users[1].hash);
    as_credentials_free(credentials);
    cr_assert_eq(as_credentials_new(&(struct as_receiver_settings){0}, NULL, &credentials, NULL),
                 0);
    cr_expect_null(as_credentials_find_dearest_hash(credentials));
    as_credentials_free(credentials);
}

static unsigned count(int log, const char *what)
{
    char text[8192] = "";
    unsigned found = 0;
    cr_assert_geq(pread(log, text, sizeof(text) - 1, 0), 0);
    for (const char *at = text; (at = strstr(at, what)); at++)
        found++;
    return found;
}

/* What keeps us from a file may end without a trace on it. */
Test(credentials, a_file_that_could_not_be_read_is_tried_until_it_can)
{
    struct as_credentials *credentials = make_two();
    struct rlimit files, none;
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    const int log = fileno(file);
    as_log_configure(AS_LOG_INFO, AS_LOG_LOGFMT, log);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = files;
    none.rlim_cur = 0;
    write_file(paths[0], "third-token");
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int64_t at = 2; at < 8; at++)
        cr_expect_str_eq(find(credentials, "first-token", at), "old");
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    cr_expect_str_eq(find(credentials, "first-token", 9), "");
    cr_expect_str_eq(find(credentials, "third-token", 9), "old");
    cr_expect_eq(count(log, "token file not usable, keeping the old token"), 1);
    cr_expect_eq(count(log, "token file read again"), 1);
    as_log_configure(AS_LOG_WARN, AS_LOG_LOGFMT, STDERR_FILENO);
    as_credentials_free(credentials);
    (void)fclose(file);
}

/* As many as before, in place, at a time that was set back: only the inode's own time differs. */
Test(credentials, a_file_that_differs_only_by_its_inodes_time_has_changed)
{
    struct as_credentials *credentials = make_two();
    struct stat before;
    cr_assert_eq(stat(paths[0], &before), 0);
    FILE *file = fopen(paths[0], "w");
    cr_assert(file && fputs("other-token\n", file) >= 0 && fclose(file) == 0);
    const struct timespec times[] = {before.st_atim, before.st_mtim};
    cr_assert_eq(utimensat(AT_FDCWD, paths[0], times, 0), 0);
    (void)find(credentials, "other-token", 1); /* it may be half written */
    cr_expect_str_eq(find(credentials, "other-token", 2), "old");
    as_credentials_free(credentials);
}

Test(credentials, a_file_that_is_missing_or_empty_at_the_start_is_an_error_that_names_it)
{
    struct as_token_settings token = make_token("one", paths[0], 1);
    const struct as_receiver_settings settings = {.tokens = &token, .token_count = 1};
    struct as_credentials *credentials = NULL;
    struct as_error error = AS_ERROR_INIT;
    cr_expect_eq(as_credentials_new(&settings, NULL, &credentials, &error), -2 /* ENOENT */);
    cr_expect(strstr(error.text, paths[0]), "%s", error.text);
    write_file(paths[0], "\n");
    cr_expect_eq(as_credentials_new(&settings, NULL, &credentials, &error), -22 /* EINVAL */);
    cr_expect(strstr(error.text, "empty"), "%s", error.text);
}

/*
 * providers.h: the files shared with AWS' own tools, and commands in them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/str.h>

#include <alertscaler/login/cloud_credentials.h>

static struct as_arena arena = {.chunks = NULL};
static struct aws_profiles profiles;
static struct as_error error;

static void deinit(void)
{
    as_arena_deinit(&arena);
}

TestSuite(aws_profiles, .fini = deinit);

static void parse(const char *text, enum aws_profile_file file)
{
    cr_assert_eq(aws_profiles_parse(&profiles, &arena, text, file, &error), 0, "%s", error.text);
}

static void expect(const char *profile, const char *key, const char *value)
{
    const char *found = aws_profiles_find(&profiles, profile, key);
    cr_expect(as_str_equal(found, value), "%s %s: %s", profile, key, found);
}

Test(aws_profiles, configuration)
{
    parse("stray = 1\n"
          "# no [profile]\n"
          "[default]\n"
          "region = eu-central-1 \r\n"
          "; no = 1\n"
          "OUTPUT: json # this is part of it\n"
          "\n"
          "[profile  two words ]\n"
          "a = 1\n"
          "[profile \"two words\"]\n"
          "region=eu=west\n"
          "s3 =\n"
          "  region = nested\n"
          "\tmax = 2\n"
          "empty =\n"
          "[prod]\n"
          "region = not-a-profile\n"
          "[profile prod] # more\n"
          "role_arn = arn:aws:iam::1:role/x\n"
          "[profiled]\n"
          "b = 1\n"
          "[sso-session s]\n"
          "c = 1\n",
          AWS_FILE_CONFIG);
    expect("default", "region", "eu-central-1");
    expect("default", "output", "json # this is part of it");
    expect("default", "no", NULL);
    expect("two words", "region", "eu=west");
    expect("two words", "s3", "");
    expect("two words", "max", NULL);
    expect("two words", "empty", "");
    expect("two", "a", NULL);
    expect("prod", "region", NULL);
    expect("prod", "role_arn", "arn:aws:iam::1:role/x");
    expect("d", "b", NULL);
    cr_expect(aws_profiles_have(&profiles, "prod"));
    cr_expect_not(aws_profiles_have(&profiles, "s"));
    cr_expect_not(aws_profiles_have(&profiles, "stray"));
}

Test(aws_profiles, the_credentials_file_has_plain_names_and_goes_first)
{
    parse("[prod]\naws_access_key_id = FROM_CREDENTIALS\n[profile x]\na = 1\n[empty]\n",
          AWS_FILE_CREDENTIALS);
    parse("[profile prod]\naws_access_key_id = FROM_CONFIG\nregion = r\n[default]\n[empty]\n",
          AWS_FILE_CONFIG);
    expect("prod", "aws_access_key_id", "FROM_CREDENTIALS");
    expect("prod", "region", "r");
    expect("profile x", "a", "1");
    cr_expect(aws_profiles_have(&profiles, "empty"));
    cr_expect(aws_profiles_have(&profiles, "default"));
    cr_expect_str_eq(aws_profiles_find_in(&profiles, AWS_FILE_CONFIG, "prod", "aws_access_key_id"),
                     "FROM_CONFIG");
}

Test(aws_profiles, what_cannot_be_read)
{
    static const struct {
        const char *text, *problem;
    } rows[] = {
        {"[default\n", "line 1: a section has no ]"},
        {"[a]\n\nword\n", "line 3: expected a section or `key = value`"},
        {"[a]\n= x\n", "line 2: expected a section or `key = value`"},
        {"[a]\nb=1\nB = 2\n", "line 3: b stands twice in profile a"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        profiles = (struct aws_profiles){0};
        cr_expect_eq(
            aws_profiles_parse(&profiles, &arena, rows[i].text, AWS_FILE_CREDENTIALS, &error),
            -EINVAL);
        cr_expect_str_eq(error.text, rows[i].problem);
    }
    profiles = (struct aws_profiles){0};
    parse("", AWS_FILE_CONFIG);
    cr_expect_eq(profiles.count, 0);
}

Test(aws_profiles, commands)
{
    static const struct {
        const char *command, *words; /* with | between them; NULL: it is none */
    } rows[] = {
        {"a", "a|"},
        {"  /opt/get it\t--now  ", "/opt/get|it|--now|"},
        {"a 'b c' \"d e\"f", "a|b c|d ef|"},
        {"a\\ b 'c\\d' \"e\\\"f\\g\"", "a b|c\\d|e\"f\\g|"},
        {"a '' \"\"", "a|||"},
        {"a\"it's\"", "ait's|"},
        {"a \\", "a|\\|"},
        {"a 'b", NULL},
        {"\"", NULL},
        {"", NULL},
        {"  ", NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const char **words = aws_split_command(&arena, rows[i].command);
        char text[256] = "";
        for (size_t at = 0; words && words[at]; at++) {
            strcat(text, words[at]);
            strcat(text, "|");
        }
        cr_expect_eq(words == NULL, rows[i].words == NULL, "%s", rows[i].command);
        cr_expect_str_eq(text, rows[i].words ? rows[i].words : "", "%s: %s", rows[i].command, text);
    }
}

static void note_name(void *context, const char *path, bool is_program)
{
    char *names = context;
    const size_t size = strlen(names);
    snprintf(names + size, 128 - size, "%s%s ", is_program ? "!" : "", path);
}

/* So that the sandbox lets it be read, and run. */
Test(aws_profiles, what_a_file_names_is_known)
{
    static const struct {
        const char *content, *names;
    } rows[] = {
        {"[default]\nregion = r\n", ""},
        {"[profile a]\nweb_identity_token_file = /t 1\n[b]\nWeb_Identity_Token_File=/u\n",
         "/t 1 /u "},
        {"[profile a]\ncredential_process = \"/opt/a b\" --all\n", "!/opt/a b "},
        {"[a]\ncredential_process = \"\nweb_identity_token_file =\n", ""},
        {"web_identity_token_file2 = /t\n#web_identity_token_file = /t\n", ""},
        {"web_identity_token_file:/t", "/t "},
        {"eyJ.a.token", ""},
        {"", ""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char names[128] = "";
        aws_profiles_read_names(rows[i].content, strlen(rows[i].content), note_name, names);
        cr_expect_str_eq(names, rows[i].names, "%s", rows[i].content);
    }
}

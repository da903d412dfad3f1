/*
 * All that configurations need of a new type of provider: a row. The table here replaces that of
 * src/rules/provider_keys.c.
 */
#include <criterion/criterion.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/rules/config.h>
#include <alertscaler/rules/provider_kind.h>

#include <files.h>

static const struct as_provider_kind example = {
    .type = "example",
    .account_keys = (const struct as_provider_key[]){{.key = "realm", .is_required = true},
                                                     {.key = "realm_url", .is_url = true},
                                                     {0}},
    .group_keys = (const struct as_provider_key[]){{.key = "name", .is_required = true},
                                                   {.key = "herd", .place = AS_PLACE_CLUSTER},
                                                   {0}},
};

const struct as_provider_kind *const as_provider_kinds[] = {&example, NULL};

static char folder[] = "/tmp/as-provider-XXXXXX", rules[64], settings[64];
static struct as_diagnostics diagnostics;
static struct as_config *config;

static void setup(void)
{
    cr_assert_not_null(mkdtemp(folder));
    snprintf(rules, sizeof(rules), "%s/rules.yaml", folder);
    snprintf(settings, sizeof(settings), "%s/alertscaler.yaml", folder);
}

static void teardown(void)
{
    config = as_config_free(config);
    as_diagnostics_deinit(&diagnostics);
    unlink(rules);
    unlink(settings);
    rmdir(folder);
}

TestSuite(example_provider, .init = setup, .fini = teardown);

static int load(const char *account, const char *group)
{
    char text[512];
    snprintf(text, sizeof(text), "rule_files: [rules.yaml]\nproviders: {mine: {%s}}\n", account);
    write_file(settings, text);
    snprintf(text, sizeof(text), "targets: {a: {node_group: {provider: mine, %s}, max: 5}}\n",
             group);
    write_file(rules, text);
    return as_config_load(settings, &config, &diagnostics);
}

Test(example_provider, a_row_is_enough)
{
    cr_assert_eq(load("type: example, realm: r", "name: web, herd: h"), AS_CONFIG_OK);
    cr_assert_eq(config->settings.provider_count, 1);
    cr_expect_str_eq(config->settings.providers[0].type, "example");
    cr_expect_str_eq(config->settings.providers[0].options[0].key, "realm");
    cr_expect_str_eq(config->ruleset->targets[0]->family, "example");
}

Test(example_provider, its_keys_are_checked)
{
    static const char *const expected[] = {
        "key `realm` is missing: a provider of type example needs it",
        "unknown key `realm_ur` for a provider of type example; did you mean `realm_url`?",
    };
    cr_assert_eq(load("type: example, realm_ur: 'https://x'", "name: web"), AS_CONFIG_INVALID);
    for (size_t i = 0; i < 2; i++) {
        bool is_said = false;
        for (size_t k = 0; k < diagnostics.count; k++)
            is_said = is_said || strcmp(diagnostics.items[k].message, expected[i]) == 0;
        cr_expect(is_said, "%s", expected[i]);
    }
    as_diagnostics_deinit(&diagnostics);
    cr_assert_eq(load("type: aws", "name: web"), AS_CONFIG_INVALID, "the row is not in this table");
}

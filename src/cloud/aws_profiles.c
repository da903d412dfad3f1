/*
 * Profiles of AWS: see the header. An indented line belongs to the key above it, as a nested
 * setting of one service, which is ignored here, or as the rest of a value.
 */
#include "aws_profiles.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

struct place { /* the parser's position */
    struct aws_profiles *profiles;
    struct as_arena *arena;
    enum aws_profile_file file;
    const char *profile; /* NULL: in a section without a profile */
    unsigned line;
};

static void aws_profiles_add(struct place *place, const char *key, const char *value)
{
    struct aws_profiles *profiles = place->profiles;
    if (profiles->count == profiles->room) {
        const size_t room = profiles->room ? 2 * profiles->room : 32;
        struct aws_entry *more = as_arena_alloc(place->arena, room, sizeof(*more));
        if (profiles->count > 0)
            memcpy(more, profiles->entries, profiles->count * sizeof(*more));
        profiles->entries = more;
        profiles->room = room;
    }
    profiles->entries[profiles->count++] =
        (struct aws_entry){place->profile, key, value, place->file};
}

/* Removes blanks at both ends. */
static char *aws_profiles_trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return text;
}

/* The profile of a section; NULL: not a profile. In the configuration file all profiles but the
 * default are called "profile NAME". */
static const char *judge_section(const struct place *place, char *name)
{
    if (place->file == AWS_FILE_CREDENTIALS || strcmp(name, "default") == 0)
        return name;
    if (!as_str_starts_with(name, "profile") || !isspace((unsigned char)name[7]))
        return NULL;
    const char **words = aws_split_command(place->arena, name);
    return words && words[1] && !words[2] ? words[1] : NULL;
}

static int begin_section(struct place *place, char *text, struct as_error *error)
{
    char *end = strchr(text, ']');
    if (!end) {
        as_error_set(error, "line %u: a section has no ]", place->line);
        return -EINVAL;
    }
    *end = '\0';
    place->profile = judge_section(place, aws_profiles_trim(text + 1));
    if (place->profile)
        aws_profiles_add(place, "", "");
    return 0;
}

static int take_pair(struct place *place, char *text, struct as_error *error)
{
    char *middle = text + strcspn(text, "=:");
    if (!*middle || middle == text) {
        as_error_set(error, "line %u: expected a section or `key = value`", place->line);
        return -EINVAL;
    }
    *middle = '\0';
    char *key = aws_profiles_trim(text);
    for (char *at = key; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    if (!place->profile)
        return 0;
    if (aws_profiles_find_in(place->profiles, place->file, place->profile, key)) {
        as_error_set(error, "line %u: %s stands twice in profile %s", place->line, key,
                     place->profile);
        return -EINVAL;
    }
    aws_profiles_add(place, key, aws_profiles_trim(middle + 1));
    return 0;
}

int aws_profiles_parse(struct aws_profiles *profiles, struct as_arena *arena, const char *text,
                       enum aws_profile_file file, struct as_error *error)
{
    struct place place = {.profiles = profiles, .arena = arena, .file = file};
    char *rest = as_arena_strdup(arena, text), *line;
    while ((line = strsep(&rest, "\n"))) {
        place.line++;
        const bool is_indented = *line == ' ' || *line == '\t';
        char *words = aws_profiles_trim(line);
        int status = 0;
        if (!*words || *words == '#' || *words == ';' || is_indented)
            continue;
        status =
            *words == '[' ? begin_section(&place, words, error) : take_pair(&place, words, error);
        if (status != 0)
            return status;
    }
    return 0;
}

bool aws_profiles_have(const struct aws_profiles *profiles, const char *profile)
{
    return aws_profiles_find(profiles, profile, "") != NULL;
}

const char *aws_profiles_find_in(const struct aws_profiles *profiles, enum aws_profile_file file,
                                 const char *profile, const char *key)
{
    for (size_t i = 0; i < profiles->count; i++) {
        const struct aws_entry *entry = &profiles->entries[i];
        if (entry->file == file && strcmp(entry->key, key) == 0 &&
            strcmp(entry->profile, profile) == 0)
            return entry->value;
    }
    return NULL;
}

const char *aws_profiles_find(const struct aws_profiles *profiles, const char *profile,
                              const char *key)
{
    const char *value = aws_profiles_find_in(profiles, AWS_FILE_CREDENTIALS, profile, key);
    return value ? value : aws_profiles_find_in(profiles, AWS_FILE_CONFIG, profile, key);
}

/* The value of `key` in a line, or NULL; the caller frees it. */
static char *take_value(const char *line, size_t size, const char *key)
{
    const size_t key_size = strlen(key);
    if (size <= key_size || strncasecmp(line, key, key_size) != 0)
        return NULL;
    AS_CLEANUP(as_free_p) char *rest = as_xstrndup(line + key_size, size - key_size);
    char *text = aws_profiles_trim(rest);
    return *text == '=' || *text == ':' ? as_xstrdup(aws_profiles_trim(text + 1)) : NULL;
}

/* Keys (secrets) are not copied: it reads line by line, and only certain keys. */
static void aws_profiles_read_line(const char *line, size_t size, as_provider_names_fn *tell,
                                   void *context)
{
    AS_CLEANUP(as_free_p) char *path = take_value(line, size, "web_identity_token_file");
    AS_CLEANUP(as_free_p) char *command = take_value(line, size, "credential_process");
    AS_CLEANUP(as_arena_deinit) struct as_arena arena = AS_ARENA_INIT;
    const char **words = command ? aws_split_command(&arena, command) : NULL;
    if (!as_str_is_empty(path))
        tell(context, path, false);
    if (words)
        tell(context, words[0], true);
}

void aws_profiles_read_names(const char *content, size_t size, as_provider_names_fn *tell,
                             void *context)
{
    while (size > 0) {
        const char *end = memchr(content, '\n', size);
        const size_t line_size = end ? (size_t)(end - content) : size;
        aws_profiles_read_line(content, line_size, tell, context);
        content += line_size + (end != NULL);
        size -= line_size + (end != NULL);
    }
}

/* Copies the next word to `out`, without its quotes; false if a quote is open. */
static bool take_word(const char **at, char *out)
{
    char quote = '\0';
    for (; **at && (quote || !isspace((unsigned char)**at)); ++*at) {
        const char byte = **at;
        const bool is_escape =
            byte == '\\' && quote != '\'' && (*at)[1] &&
            (!quote || (*at)[1] == '"' || (*at)[1] == '\\'); /* in "", only these are */
        if (is_escape)
            *out++ = *++*at;
        else if (byte == quote)
            quote = '\0';
        else if (!quote && (byte == '"' || byte == '\''))
            quote = byte;
        else
            *out++ = byte;
    }
    *out = '\0';
    return !quote;
}

const char **aws_split_command(struct as_arena *arena, const char *command)
{
    const size_t size = strlen(command);
    const char **words = as_arena_alloc(arena, size / 2 + 2, sizeof(*words)), *at = command;
    size_t count = 0;
    for (;;) {
        while (isspace((unsigned char)*at))
            at++;
        if (!*at)
            return count > 0 ? words : NULL;
        char *word = as_arena_alloc_raw(arena, strlen(at) + 1);
        words[count++] = word;
        if (!take_word(&at, word))
            return NULL;
    }
}

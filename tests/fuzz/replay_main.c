/*
 * Runs a fuzz target without libFuzzer: replay_NAME [--mutations=N] CORPUS-DIRECTORY... Runs each
 * file of the corpora unchanged, then N mutations of it (5000; fewer if there are many files) from
 * a fixed seed, so that runs are reproducible. A target that mutates its inputs itself
 * (LLVMFuzzerCustomMutator) does so here too. The input is in memory of exactly its size, so a
 * sanitizer detects every read beyond it.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/random.h>
#include <alertscaler/base/str.h>

#include "fuzz.h"

#define MUTATIONS_MAX 200000 /* of all files of a corpus together */
#define FILE_MAX      ((size_t)1 << 20)
#define MUTATED_MAX   4096 /* larger files run only as they are, or mutated by the target */

#pragma weak LLVMFuzzerCustomMutator

static void run(const char *data, size_t size)
{
    uint8_t *copy = as_xmalloc(size);

    memcpy(copy, data, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

/* One change at a random place; `data` has room for one more byte. */
static size_t mutate(char *data, size_t size, struct as_random *random)
{
    static const char telling[] = "\"\\{}[]|=!~,:.*+?()$^ \n\0\xFF\xC3\xE2u0n";
    size_t at = as_random_get_below(random, size + 1);
    char byte = as_random_get_below(random, 2)
                    ? telling[as_random_get_below(random, sizeof(telling) - 1)]
                    : (char)as_random_get_below(random, 256);

    switch (as_random_get_below(random, 4)) {
    case 0: /* insert */
        memmove(data + at + 1, data + at, size - at);
        data[at] = byte;
        return size + 1;
    case 1: /* remove */
        if (at == size)
            return size;
        memmove(data + at, data + at + 1, size - at - 1);
        return size - 1;
    case 2: /* cut, rarely */ return as_random_get_below(random, 8) ? size : at;
    }
    if (at < size)
        data[at] = byte;
    return size;
}

static void run_mutations(const char *data, size_t size, long mutations, struct as_random *random)
{
    for (long i = 0; i < mutations; i++) {
        size_t changes = 1 + as_random_get_below(random, 6), mutated_size = size;
        AS_CLEANUP(as_free_p) char *mutated = as_xmalloc(size + changes);
        memcpy(mutated, data, size);
        while (changes-- > 0)
            mutated_size = mutate(mutated, mutated_size, random);
        run(mutated, mutated_size);
    }
}

/* By the target itself: a second change is made to the first one's result. */
static void run_own_mutations(const char *data, size_t size, long mutations,
                              struct as_random *random)
{
    const size_t max_size = 2 * size + MUTATED_MAX;
    for (long i = 0; i < mutations; i++) {
        AS_CLEANUP(as_free_p) char *mutated = as_xmalloc(max_size);
        size_t mutated_size = size;
        memcpy(mutated, data, size);
        for (uint64_t changes = 1 + as_random_get_below(random, 2); changes > 0; changes--)
            mutated_size = LLVMFuzzerCustomMutator((uint8_t *)mutated, mutated_size, max_size,
                                                   (unsigned)as_random_get_below(random, UINT_MAX));
        run(mutated, mutated_size);
    }
}

static void run_file(const char *directory, const char *name, long mutations,
                     struct as_random *random)
{
    AS_CLEANUP(as_free_p) char *path = as_xasprintf("%s/%s", directory, name);
    AS_CLEANUP(as_free_p) char *data = NULL;
    size_t size = 0;
    int r = as_file_read(path, FILE_MAX, &data, &size);

    if (r < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(-r));
        exit(1);
    }
    run(data, size);
    if (LLVMFuzzerCustomMutator)
        run_own_mutations(data, size, mutations, random);
    else if (size <= MUTATED_MAX)
        run_mutations(data, size, mutations, random);
}

static int is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int run_directory(const char *directory, long mutations)
{
    struct dirent **entries = NULL;
    struct as_random random;
    const int count = scandir(directory, &entries, is_file, alphasort);

    as_random_init(&random, 2);
    if (count > 0 && mutations > MUTATIONS_MAX / count)
        mutations = MUTATIONS_MAX / count;
    for (int i = 0; i < count; i++) {
        run_file(directory, entries[i]->d_name, mutations, &random);
        free(entries[i]);
    }
    free(entries);
    return count;
}

int main(int argc, char **argv)
{
    static const char option[] = "--mutations=";
    const bool is_given = argc > 1 && strncmp(argv[1], option, strlen(option)) == 0;
    const long mutations = is_given ? strtol(argv[1] + strlen(option), NULL, 10) : 5000;
    int total = 0;

    for (int at = is_given ? 2 : 1; at < argc; at++) {
        const int count = run_directory(argv[at], mutations);
        total = count > 0 && total >= 0 ? total + count : -1;
    }
    if (total <= 0) {
        fprintf(stderr, "usage: %s [--mutations=N] CORPUS-DIRECTORY... (none of them empty)\n",
                argv[0]);
        return 1;
    }
    printf("%d files, with up to %ld mutations each\n", total, mutations);
    return 0;
}

/*
 * Passwords with their thread, for ThreadSanitizer (which does not work in Criterion's sandbox):
 * requested while it computes, cancelled, requested twice, and freed meanwhile. Ends with 0 if all
 * were answered, and only the right ones were right.
 */
#include <alertscaler/auth/auth_passwords.h>

#include <stdio.h>
#include <stdlib.h>

#include <event2/event.h>

/* Of "sesame", not of our making. */
#define HASH  "$2b$04$ABpxdbZS3aRuCeVrPHD29.h35Bh9KqToLEkb0Fty3MlWusHsMbV.G"
#define ASKED 600

struct heard {
    unsigned asked, given_up, right, wrong, busy, at_once;
};

static void expect(bool fine, const char *what)
{
    if (!fine) {
        fprintf(stderr, "not as promised: %s\n", what);
        exit(1);
    }
}

static void on_done(void *context, bool is_right)
{
    struct heard *heard = context;
    *(is_right ? &heard->right : &heard->wrong) += 1;
}

/* Every third is right, every fifth of the others is given up at once. */
static void ask(struct as_passwords *passwords, struct heard *heard, unsigned number)
{
    const bool is_right = number % 3 == 0;
    struct as_password_wait *wait = NULL;
    char user[16], password[16];
    snprintf(user, sizeof(user), "user%u", number % 90);
    snprintf(password, sizeof(password), is_right ? "sesame" : "wrong%u", number);
    const struct as_password_guess guess = {.user = user,
                                            .hash = HASH,
                                            .like = HASH,
                                            .password = password,
                                            .is_suspect = number % 2 == 0};
    switch (as_passwords_check(passwords, &guess, on_done, heard, &wait)) {
    case AS_PASSWORD_RIGHT:
        expect(is_right, "what is remembered was right");
        heard->at_once++;
        break;
    case AS_PASSWORD_WRONG: expect(false, "nothing is wrong before it was computed"); break;
    case AS_PASSWORD_BUSY: heard->busy++; break;
    case AS_PASSWORD_PENDING:
        heard->asked++;
        if (!is_right && number % 5 == 0) {
            as_password_wait_cancel(wait);
            heard->given_up++;
        }
        break;
    }
}

static unsigned count_answers(const struct heard *heard)
{
    return heard->right + heard->wrong + heard->given_up;
}

int main(void)
{
    struct event_base *base = event_base_new();
    struct as_passwords *passwords = as_passwords_new(base);
    struct heard heard = {0};
    for (unsigned number = 0; number < ASKED; number++) {
        ask(passwords, &heard, number);
        if (number % 7 == 0)
            event_base_loop(base, number % 2 ? EVLOOP_ONCE : EVLOOP_NONBLOCK);
    }
    while (count_answers(&heard) < heard.asked)
        event_base_loop(base, EVLOOP_ONCE);
    expect(heard.right > 0 && heard.wrong > 0 && heard.given_up > 0 && heard.busy > 0 &&
               heard.at_once > 0,
           "all that can happen did");
    for (unsigned number = 0; number < AS_PASSWORDS_QUEUED; number++)
        ask(passwords, &heard, ASKED + number);
    as_passwords_free(passwords); /* while it computes */
    expect(count_answers(&heard) < heard.asked, "who waited is not told");
    event_base_free(base);
    printf("right %u, wrong %u, given up %u, at once %u, no room %u times\n", heard.right,
           heard.wrong, heard.given_up, heard.at_once, heard.busy);
    return 0;
}

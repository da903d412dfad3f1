/*
 * Resources of containers: rollouts that are waited for and put back, and pods that come later.
 */
#include "engine_harness.h"

#include <stdio.h>
#include <string.h>

#define RULE(which, alert, ...)                                                                    \
    {                                                                                              \
        .name = (which), .match = {"alertname=" alert}, .target = "cart", __VA_ARGS__              \
    }
#define CART(...)                                                                                  \
    {                                                                                              \
        .name = "cart", .container = "app", .min = 1, .max = 20, __VA_ARGS__                       \
    }

static const struct spec rolled = {
    .targets = {CART(.up = 60, .down = 60)},
    .rules = {RULE("oom", "OOM", .up = 1), RULE("idle", "Idle", .down = 1)},
};

static const struct spec in_place = {
    .targets = {CART(.up = 120, .down = 60, .by_pods = true)},
    .rules = {RULE("oom", "OOM", .up = 1), RULE("idle", "Idle", .down = 1)},
};

static const struct spec templated = {
    .targets = {CART(.address = "{{ .Labels.app }}", .allow = "*", .up = 60, .down = 60,
                     .by_pods = true)},
    .rules = {RULE("oom", "OOM", .up = 1)},
};

/* The target that is there from now on. Its observation begins a rollout that does not end. */
static struct virtual_target *get_cart(struct harness *h, bool is_rolling)
{
    struct virtual_target *cart =
        harness_target(h, "kubernetes/default/apps/v1/Deployment/shop/cart:container/app/memory");
    cart->resize = (struct as_resize_seen){
        .is_set = true,
        .is_rolling = is_rolling,
        .has_verdict = true,
        .template_size = -1,
        .settled = -1,
        .asked = -1,
    };
    return cart;
}

/* As get_cart, and its controller says that the deadline has passed. */
static struct virtual_target *fail_rollout(struct harness *h)
{
    struct virtual_target *cart = get_cart(h, true);
    cart->resize.has_failed = true;
    (void)snprintf(cart->resize.message, sizeof(cart->resize.message), "timed out progressing");
    return cart;
}

/* A step up, whose rollout fails. */
static struct virtual_target *step_and_fail(struct harness *h)
{
    (void)get_cart(h, false);
    fire(h, "OOM", 990);
    (void)said(h);
    return fail_rollout(h);
}

#define expect_said(text, part, times)                                                             \
    cr_expect_eq(count(text, part), times, "%u times %s in: %s", count(text, part), part, text)

static bool view_did_not_come;

static void take_view(void *context, const struct as_target_view *view)
{
    (void)context;
    view_did_not_come = view->did_not_come;
}

static bool did_not_come(struct harness *h)
{
    as_engine_visit_targets(h->engine, h->mono, h->wall, take_view, NULL);
    return view_did_not_come;
}

Test(engine_resize, a_rollout_is_in_progress_until_it_ends)
{
    WITH(h, rolled);
    struct virtual_target *cart = get_cart(&h, false);
    fire(&h, "OOM", 990);
    expect_said(said(&h), "acted memory 4>5 applied", 1);
    cart->resize.is_rolling = true;
    tick(&h, 120);
    expect_said(said(&h), "in_progress", 1);
    cr_expect_eq(h.last_in_progress_by, AS_IN_PROGRESS_RESIZE);
    cart->resize.is_rolling = false;
    tick(&h, 60);
    expect_said(said(&h), "acted memory 5>6 applied", 1);
    harness_stop(&h);
}

Test(engine_resize, what_does_not_roll_out_did_not_come_and_is_put_back_once)
{
    WITH(h, rolled);
    struct virtual_target *cart = step_and_fail(&h);
    tick(&h, 60);
    const char *text = said(&h);
    expect_said(text, "acted memory 4>5 did_not_come late", 1);
    expect_said(text, "late memory 5 ready -1", 1);
    expect_said(text, "acted memory 5>4 applied", 1);
    cr_expect_str_eq(h.last_message, "put back to 4 (256Mi), as the rollout of 5 (320Mi) did not "
                                     "end in time");
    cr_expect(did_not_come(&h));
    cart->resize.is_rolling = cart->resize.has_failed = false;
    tick(&h, 230);
    text = said(&h);
    cr_expect_not_null(strstr(text, "decided memory 4 did_not_come"), "%s", text);
    cr_expect_eq(cart->size, 4, "no step up in the first five minutes: %s", text);
    tick(&h, 120);
    expect_said(said(&h), "acted memory 4>5 applied", 1);
    cr_expect_not(did_not_come(&h));
    harness_stop(&h);
}

Test(engine_resize, the_outcome_names_what_the_controller_says)
{
    WITH(h, rolled);
    (void)step_and_fail(&h);
    h.hold_calls = true;
    tick(&h, 60);
    for (int i = 0; i < 3 && !strstr(h.last_message, "timed out"); i++)
        harness_settle_to_request(&h);
    cr_expect_str_eq(h.last_message,
                     "the rollout of 5 (320Mi) did not end in time: timed out progressing");
    h.hold_calls = false;
    harness_settle(&h);
    harness_stop(&h);
}

Test(engine_resize, a_crash_before_the_put_back_is_sent)
{
    WITH(h, rolled);
    (void)step_and_fail(&h);
    h.hold_calls = true;
    tick(&h, 60);
    harness_settle_to_request(&h);
    expect_said(said(&h), "did_not_come late", 1);
    h.hold_calls = false;
    harness_crash(&h, 30);
    struct virtual_target *cart = fail_rollout(&h);
    tick(&h, 120);
    const char *text = said(&h);
    expect_said(text, "did_not_come late", 0);
    expect_said(text, "acted memory 5>4 applied", 1);
    cr_expect_eq(cart->size, 4);
    cr_expect(did_not_come(&h));
    harness_stop(&h);
}

/* The request arrives, its answer does not: it is not sent again, and what was put back is not
 * taken for a change whose rollout is waited for. */
Test(engine_resize, a_crash_after_the_put_back)
{
    WITH(h, rolled);
    (void)step_and_fail(&h);
    h.hold_calls = true;
    tick(&h, 60);
    harness_settle_to_request(&h);
    struct virtual_target *cart = get_cart(&h, true);
    cart->size = 4;
    cart->version++;
    h.hold_calls = false;
    expect_said(said(&h), "did_not_come late", 1);
    harness_crash(&h, 30);
    cart = fail_rollout(&h); /* the old template's rollout fails too: that is nobody's change */
    cr_assert_eq(cart->size, 4);
    tick(&h, 120);
    const char *text = said(&h);
    expect_said(text, "acted memory 5>4 applied late", 1);
    expect_said(text, "did_not_come late", 0);
    expect_said(text, "scale memory", 0);
    cr_expect_eq(cart->size, 4);
    cr_expect(did_not_come(&h));
    harness_stop(&h);
}

Test(engine_resize, without_a_deadline_of_its_own_ten_minutes_without_progress_are_one)
{
    WITH(h, rolled);
    (void)get_cart(&h, false);
    fire(&h, "OOM", 990);
    (void)said(&h);
    struct virtual_target *cart = get_cart(&h, true);
    cart->resize.has_verdict = false;
    tick(&h, 500);
    cart->resize.updated = 1;
    tick(&h, 500);
    expect_said(said(&h), "did_not_come late", 0);
    tick(&h, 200);
    const char *text = said(&h);
    expect_said(text, "acted memory 4>5 did_not_come late", 1);
    expect_said(text, "acted memory 5>4 applied", 1);
    harness_stop(&h);
}

Test(engine_resize, a_decrease_that_does_not_roll_out_stops_no_step_up)
{
    WITH(h, rolled);
    (void)get_cart(&h, false);
    fire(&h, "Idle", 990);
    expect_said(said(&h), "acted memory 4>3 applied", 1);
    struct virtual_target *cart = fail_rollout(&h);
    tick(&h, 60);
    const char *text = said(&h);
    expect_said(text, "acted memory 4>3 did_not_come late", 1);
    expect_said(text, "acted memory 3>4 applied", 1);
    cr_expect_eq(cart->size, 4);
    cr_expect_not(did_not_come(&h));
    harness_stop(&h);
}

Test(engine_resize, a_refused_put_back_is_not_tried_again)
{
    WITH(h, rolled);
    struct virtual_target *cart = step_and_fail(&h);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_REJECTED});
    tick(&h, 200);
    const char *text = said(&h);
    expect_said(text, "did_not_come late", 1);
    expect_said(text, "acted memory 5>4 rejected", 1);
    expect_said(text, "scale memory 5>4", 1);
    cr_expect_eq(cart->size, 5);
    harness_stop(&h);
}

Test(engine_resize, what_somebody_has_changed_since_is_not_put_back)
{
    WITH(h, rolled);
    struct virtual_target *cart = step_and_fail(&h);
    cart->size = 9;
    cart->version++;
    resolve(&h, "OOM", 990);
    tick(&h, 120);
    const char *text = said(&h);
    expect_said(text, "did_not_come", 0);
    expect_said(text, "scale memory", 0);
    cr_expect_eq(cart->size, 9);
    harness_stop(&h);
}

/* ---- pods ---- */

static struct virtual_target *get_pods(struct harness *h, int32_t template_size)
{
    struct virtual_target *cart = get_cart(h, false);
    cart->has_no_version = true;
    cart->resize.has_verdict = false;
    cart->resize.template_size = template_size;
    return cart;
}

/* Somebody has resized pods: what the smallest one asks for, and has. */
static void set_pods(struct virtual_target *cart, int32_t size)
{
    cart->size = cart->resize.asked = size;
}

Test(engine_resize, a_node_that_can_never_do_it_stops_steps_up)
{
    WITH(h, in_place);
    struct virtual_target *cart = get_pods(&h, 4);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_DID_NOT_COME});
    fire(&h, "OOM", 990);
    expect_said(said(&h), "acted memory 4>5 did_not_come", 1);
    cr_expect(did_not_come(&h));
    tick(&h, 250);
    const char *text = said(&h);
    cr_expect_not_null(strstr(text, "decided memory 4 did_not_come"), "%s", text);
    expect_said(text, "scale memory", 0);
    harness_crash(&h, 10);
    cart = get_pods(&h, 4);
    cr_expect(did_not_come(&h), "a crash keeps it");
    tick(&h, 200);
    expect_said(said(&h), "acted memory 4>5 applied", 1);
    cr_expect_gt(cart->size, 4);
    harness_stop(&h);
}

/* Some pods were resized: that is a step, with its lock. */
Test(engine_resize, a_part_of_the_pods_is_a_step_and_stops_the_next)
{
    WITH(h, in_place);
    (void)get_pods(&h, 4);
    harness_script(&h,
                   (struct scale_script){.outcome = AS_REASON_DID_NOT_COME, .is_accepted = true});
    fire(&h, "OOM", 990);
    expect_said(said(&h), "acted memory 4>5 applied", 1);
    cr_expect(did_not_come(&h));
    tick(&h, 120);
    expect_said(said(&h), "scale memory", 0);
    harness_stop(&h);
}

Test(engine_resize, pods_that_come_later_get_the_last_size_without_a_lock)
{
    WITH(h, in_place);
    struct virtual_target *cart = get_pods(&h, 4);
    fire(&h, "OOM", 990);
    expect_said(said(&h), "acted memory 4>5 applied", 1);
    resolve(&h, "OOM", 990);
    cart->uid = "u";
    tick(&h, 30);
    (void)said(&h);
    cart->size = cart->resize.asked = 4; /* a new pod, with the template's request */
    cart->resize.settled = 5;
    fire(&h, "OOM", 1020);
    const char *text = said(&h);
    expect_said(text, "acted memory 4>5 applied", 1);
    cr_expect_str_eq(h.last_message, "pods that came after the last change");
    cart->resize.asked = 5;
    tick(&h, 95);
    text = said(&h);
    cr_expect_not_null(strstr(text, "acted memory 5>6 applied"),
                       "the lock is still that of the first step: %s", text);
    harness_stop(&h);
}

/* The step up that did not come backs off; a pod that comes meanwhile needs the last size at once.
 * A pod that was there before is not tried again. */
Test(engine_resize, pods_that_come_during_a_back_off_get_the_last_size)
{
    WITH(h, in_place);
    struct virtual_target *cart = get_pods(&h, 4);
    cart->resize.newest = (as_maybe_time){true, {100}};
    fire(&h, "OOM", 990);
    expect_said(said(&h), "acted memory 4>5 applied", 1);
    cart->resize.asked = cart->resize.settled = 5;
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_DID_NOT_COME});
    tick(&h, 121);
    expect_said(said(&h), "acted memory 5>6 did_not_come", 1);
    cart->size = cart->resize.asked = 4; /* one of the old pods was put back */
    tick(&h, 100);
    cr_expect(did_not_come(&h));
    expect_said(said(&h), "scale memory", 0);
    cart->resize.newest = (as_maybe_time){true, {200}};
    tick(&h, 100);
    expect_said(said(&h), "acted memory 4>5 applied", 1);
    cr_expect_str_eq(h.last_message, "pods that came after the last change");
    cr_expect_eq(h.last_later_than.at.us, 100);
    cr_expect(did_not_come(&h), "the back-off goes on");
    cart->size = 4;
    tick(&h, 60);
    expect_said(said(&h), "scale memory", 0);
    harness_stop(&h);
}

/* The kubelet of a pod that asks for the last size has no room for it yet. */
Test(engine_resize, a_deferred_pod_did_not_come_later)
{
    WITH(h, in_place);
    struct virtual_target *cart = get_pods(&h, 4);
    fire(&h, "OOM", 990);
    resolve(&h, "OOM", 990);
    (void)said(&h);
    cart->size = 4;
    cart->resize.asked = 5;
    tick(&h, 600);
    expect_said(said(&h), "scale memory", 0);
    harness_stop(&h);
}

/* Nothing fires any more, the daemon was restarted, and labels named the workload. */
Test(engine_resize, later_pods_are_resized_without_an_incident_too)
{
    WITH(h, templated);
    struct virtual_target *cart = get_pods(&h, 4);
    fire(&h, "OOM,app=cart", 990);
    expect_said(said(&h), "acted memory 4>5 applied", 1);
    cart->resize.asked = 5;
    resolve(&h, "OOM,app=cart", 990);
    tick(&h, 6 * 3600);
    harness_crash(&h, 10);
    cart = get_pods(&h, 4);
    cart->size = cart->resize.asked = 4;
    (void)said(&h);
    tick(&h, 120);
    expect_said(said(&h), "acted memory 4>5 applied", 1);
    cart = get_pods(&h, 5); /* somebody has changed the template: there is nothing left to do */
    cart->resize.asked = 5;
    tick(&h, 6 * 3600);
    expect_said(said(&h), "scale memory", 0);
    tick(&h, 3600);
    expect_said(said(&h), "observe memory", 0);
    harness_stop(&h);
}

/* Three times within an hour, as with any other size; a VPA that resizes pods in place does so. */
Test(engine_resize, pods_that_others_set_back_make_the_target_contended)
{
    WITH(h, in_place);
    struct virtual_target *cart = get_pods(&h, 2);
    set_pods(cart, 4);
    fire(&h, "OOM", 990);
    expect_said(said(&h), "acted memory 4>5 applied", 1);
    for (int i = 0; i < 2; i++) {
        set_pods(cart, 4);
        tick(&h, 120);
        expect_said(said(&h), "acted memory 4>5 applied", 1);
    }
    set_pods(cart, 3);
    tick(&h, 120);
    const char *text = said(&h);
    cr_expect_not_null(strstr(text, "contended memory 4>5>4 by ? 4>5>4 by ? 4>5>3 by ?"), "%s",
                       text);
    expect_said(text, "scale memory", 0);
    harness_stop(&h);
}

/* A new pod has the template's request, a deferred one asks for ours, and one that could not be
 * resized to the end was put back by ourselves. */
Test(engine_resize, pods_that_have_less_without_anybody_elses_doing_are_no_set_backs)
{
    WITH(h, in_place);
    struct virtual_target *cart = get_pods(&h, 4);
    fire(&h, "OOM", 990);
    for (int i = 0; i < 4; i++) {
        set_pods(cart, 4);
        tick(&h, 60);
        cart->size = 4;
        cart->resize.asked = 5 + i;
        tick(&h, 60);
    }
    expect_said(said(&h), "contended", 0);
    set_pods(cart, 6);
    for (int i = 0; i < 4; i++) {
        harness_script(&h,
                       (struct scale_script){.outcome = AS_REASON_CONFLICT, .is_accepted = true});
        tick(&h, 120);
        expect_said(said(&h), "acted memory 6>7", 1);
        set_pods(cart, 6);
    }
    expect_said(said(&h), "contended", 0);
    harness_stop(&h);
}

/* No step of the incident, no lock: when there are pods, the incident acts. */
Test(engine_resize, without_pods_no_step_is_used_up)
{
    static const struct spec once = {
        .targets = {CART(.up = 3600, .by_pods = true)},
        .rules = {RULE("oom", "OOM", .up = 1, .max_steps = 1)},
    };
    WITH(h, once);
    struct virtual_target *cart = get_pods(&h, 4);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_NO_PODS});
    fire(&h, "OOM", 990);
    expect_said(said(&h), "acted memory 4>5 no_pods", 1);
    cr_expect_eq(cart->size, 4);
    tick(&h, 400);
    expect_said(said(&h), "acted memory 4>5 applied", 1);
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME, .target = "cart"});
    (void)said(&h);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_NO_PODS});
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "cart", .replicas = 8});
    tick(&h, 900);
    expect_said(said(&h), "memory 5>8 no_pods", 1);
    harness_stop(&h);
}

Test(engine_resize, another_workload_of_that_name_is_not_put_back)
{
    WITH(h, rolled);
    struct virtual_target *cart = get_cart(&h, false);
    cart->uid = "one";
    fire(&h, "OOM", 990);
    resolve(&h, "OOM", 990);
    (void)said(&h);
    cart = fail_rollout(&h);
    cart->uid = "two";
    cart->version++;
    tick(&h, 120);
    const char *text = said(&h);
    expect_said(text, "did_not_come", 0);
    expect_said(text, "scale memory", 0);
    harness_stop(&h);
}

/* A template that was sized before is no size that others could set back from. */
Test(engine_resize, our_own_resize_of_pods_is_nobody_elses)
{
    WITH(h, rolled);
    struct virtual_target *cart = get_cart(&h, false);
    fire(&h, "OOM", 990);
    expect_said(said(&h), "acted memory 4>5 applied", 1);
    resolve(&h, "OOM", 990);
    cart = get_pods(&h, 5);
    cart->resize.asked = 4; /* pods of before */
    harness_reload(&h, &in_place);
    for (int i = 0; i < 3; i++) {
        tick(&h, 60);
        fire(&h, "Idle", 1061 + 60 * i);
        resolve(&h, "Idle", 1061 + 60 * i);
    }
    tick(&h, 60);
    const char *text = said(&h);
    cr_expect_leq(cart->size, 3, "%s", text);
    expect_said(text, "contended", 0);
    as_engine_visit_targets(h.engine, h.mono, h.wall, take_view, NULL);
    harness_stop(&h);
}

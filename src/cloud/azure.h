/*
 * Azure: what scale sets and agent pools have in common. Both are resources of Azure Resource
 * Manager; their changes are operations that continue after the answer.
 */
#ifndef ALERTSCALER_SRC_CLOUD_AZURE_H
#define ALERTSCALER_SRC_CLOUD_AZURE_H

#include <stdbool.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/cloud/provider_group.h>

struct azure_kind {                                            /* of a group */
    const char *what;                                          /* in messages: "scale set" */
    void (*read)(struct as_talk *talk, as_talk_hear_fn *then); /* reads the resource only */
    as_talk_hear_fn *hear; /* its answer: fills the view, may ask more, then calls `then` */
    void (*grow)(struct as_talk *talk);
    void (*set_size)(struct as_talk *talk); /* sets `to`, for the view just read */
    void (*remove)(struct as_talk *talk);   /* the talk's `instances`; then azure_hear_removed */
};

struct azure_state { /* of a talk; texts are its memory */
    const struct azure_kind *kind;
    const char *base;     /* of Resource Manager, without a slash at its end */
    const char *scope;    /* URL of the resource group */
    const char *resource; /* URL of the group, without a query */
    const char *version;  /* of the API */
    /* the kinds' own */
    const char *id;        /* as the resource itself says */
    as_talk_hear_fn *then; /* called when the view is complete */
    bool is_forced, is_tried_again;
};

extern const struct azure_kind azure_scale_set, azure_agent_pool;

struct azure_state *azure_get_state(struct as_talk *talk) AS_MUST_USE;

/* ---- requests ---- */

/* Asks for a change with `body`, which is freed; conditional on `version` unless empty. */
void azure_ask_change(struct as_talk *talk, const char *method, const char *url,
                      const char *version, json_t *body);
/* {"`member`": ["..."]} with the instances to remove. */
json_t *azure_make_list(const struct as_group_talk *group, const char *member) AS_MUST_USE;

/* ---- answers (azure_errors.c) ---- */

/* Whether the answer is good; if not, the talk has failed with the error's class and words. */
bool azure_is_good(struct as_talk *talk) AS_MUST_USE;
/* The document of a good answer; NULL after failing the talk. */
const json_t *azure_take_json(struct as_talk *talk) AS_MUST_USE;
/* Fails the talk with the class and words of an `error`; with `absent` if it says nothing. */
void azure_fail(struct as_talk *talk, const json_t *error, const char *what,
                enum as_talk_fault absent);
/* The class of an error's code and message; `absent` if unknown. */
enum as_talk_fault azure_judge(const char *code, const char *message,
                               enum as_talk_fault absent) AS_MUST_USE;
/* The code of an error answer; "" if it has no code. Valid until the next answer. */
const char *azure_peek_code(struct as_talk *talk) AS_MUST_USE;
/* Keeps an ETag as the view's version. False after failing the talk. */
bool azure_take_version(struct as_talk *talk, const char *etag) AS_MUST_USE;

/* Adds the first `size` bytes of a resource's id to the view's resources. Azure compares ids
 * without case. False after failing the talk. */
bool azure_add_backing(struct as_talk *talk, const char *id, size_t size) AS_MUST_USE;

/* ---- operations and pages (azure_operation.c) ---- */

/* Whether credentials may be sent to `url`: it has Resource Manager's scheme, host and port. */
bool azure_is_own_url(const struct azure_state *state, const char *url) AS_MUST_USE;
/* After a good answer to a change: ends the talk with the operation that the change started. */
void azure_begin_operation(struct as_talk *talk);
void azure_poll(struct as_talk *talk); /* the verb */
/* Asks for the next page, named in `document`. False if there is no next page; true after asking or
 * after failing the talk. */
bool azure_ask_next_page(struct as_talk *talk, const json_t *document, const char *operation,
                         as_talk_hear_fn *hear) AS_MUST_USE;
/* "Succeeded" and similar: no operation is running. */
bool azure_is_settled(const char *provisioning_state) AS_MUST_USE;

/* ---- removing (azure.c) ---- */

/* Hears the answer to a removal. If instances were already gone, which fails the whole call, reads
 * the group and asks once more without them. If force is not allowed, asks again without force. */
void azure_hear_removed(struct as_talk *talk);

#endif

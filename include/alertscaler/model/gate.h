/*
 * The gates of a decision, in their order (docs/decision.md#the-gates).
 */
#ifndef ALERTSCALER_MODEL_GATE_H
#define ALERTSCALER_MODEL_GATE_H

/* X(enumerator, word, what the gate does, in a few words) */
#define AS_GATES(X)                                                                                \
    X(AS_GATE_SWITCHED_OFF, "switched_off", "0 with min above 0 is left alone")                    \
    X(AS_GATE_OUT_OF_BOUNDS, "out_of_bounds", "brought back into its bounds")                      \
    X(AS_GATE_COMBINE, "combine", "the highest size that a rule wants")                            \
    X(AS_GATE_STABILIZE, "stabilize", "no further than the stabilization window allows")           \
    X(AS_GATE_POLICIES, "policies", "no faster than the scaling policies allow")                   \
    X(AS_GATE_BOUNDS, "bounds", "the bound ahead")                                                 \
    X(AS_GATE_COOLDOWN, "cooldown", "the lock after an earlier change")                            \
    X(AS_GATE_HOLDS, "holds",                                                                      \
      "paused, contended, in progress, guarded, unconfirmed or out of budget")                     \
    X(AS_GATE_APPROVAL, "approval", "what waits for a person is left out")                         \
    X(AS_GATE_DRY_RUN, "dry_run", "nothing is set in a dry run")

#define AS_GATE_ENUM(enumerator, word, meaning) enumerator,
enum as_gate { AS_GATES(AS_GATE_ENUM) AS_GATE_COUNT };
const char *as_gate_get_word(enum as_gate gate);
const char *as_gate_get_meaning(enum as_gate gate);

#endif

// SPDX-License-Identifier: Apache-2.0
// Ends a test case that has failed, with one line that says why.
#pragma once

#include <stdbool.h>

// Says what failed (printf) and ends the process with status 1.
__attribute__((format(printf, 1, 2), noreturn)) void fail(const char *format, ...);

// Fails with the text, unless the condition holds.
#define check(condition, ...)      \
    do {                           \
        if (!(condition)) {        \
            fail(__VA_ARGS__);     \
        }                          \
    } while (0)

/* SPDX-License-Identifier: Apache-2.0 */
/* What the test programs of the library expect: each deviation is printed with its line, and counted in `failures`. */
#ifndef EXPECT_H
#define EXPECT_H

#include <nacelle.h>

#include <stdio.h>
#include <string.h>

static int failures;

/* The result of a call of the library, with its name: also that there is a text and a hint for each error. */
static void expect_at(int line, const char *what, nacelle_result got, nacelle_result wanted) {
  if (got != wanted) {
    printf("line %d: %s: %u (%s), not %u (%s): %s\n", line, what, got, nacelle_result_string(got), wanted,
           nacelle_result_string(wanted), nacelle_last_error());
    ++failures;
  } else if (got != NACELLE_OK && (strstr(nacelle_last_error(), "try: ") == NULL || nacelle_last_hint()[0] == '\0')) {
    printf("line %d: %s: no hint in '%s'\n", line, what, nacelle_last_error());
    ++failures;
  }
}
#define EXPECT(wanted, call) expect_at(__LINE__, #call, (call), (wanted))
#define CHECK(condition) \
  ((condition) ? (void)0 : (void)(printf("line %d: %s does not hold\n", __LINE__, #condition), ++failures))

#endif

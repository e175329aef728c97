/* SPDX-License-Identifier: Apache-2.0 */
/* Does work of its own while a device multiplies matrices, and measures what that gains: overlap ADDRESS [SIDE]. */
#include <nacelle.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The function of the kernel `matmul` (docs/reference/kernels.md). */
#define MATMUL 16

/* Ends the program with the reason, if there is one. */
static void check(nacelle_result result) {
  if (result != NACELLE_OK) {
    fprintf(stderr, "error %u: %s\n", result, nacelle_last_error());
    exit(EXIT_FAILURE);
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* A piece of the program's own work, some 20 us long: steps of a random sequence (Marsaglia, Xorshift RNGs, 2003). */
static uint64_t work(uint64_t state) {
  for (int i = 0; i < 10000; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
  }
  return state;
}

int main(int argc, char *argv[]) {
  if (argc != 2 && argc != 3) {
    fprintf(stderr, "usage: %s ADDRESS [SIDE]\n", argv[0]);
    return 2;
  }
  const uint32_t side = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 512;
  const size_t elements = (size_t)side * side, size = elements * sizeof(int32_t);
  uint32_t arguments[16] = {0x4d4d414e, 0, side, side, side};
  int32_t *a = malloc(size), *b = malloc(size), *c = malloc(size);
  if (side == 0 || a == NULL || b == NULL || c == NULL) {
    fprintf(stderr, "error: no matrices of side %" PRIu32 "\n", side);
    return EXIT_FAILURE;
  }
  for (size_t i = 0; i < elements; ++i) {
    a[i] = (int32_t)(i % 1000);
    b[i] = i / side == i % side;
  }

  nacelle_device device;
  check(nacelle_device_open(argv[1], NULL, &device));
  const nacelle_region regions[] = {nacelle_input(arguments, sizeof arguments), nacelle_input(a, size), nacelle_input(b, size),
                                    nacelle_output(c, size)};
  nacelle_call call;
  check(nacelle_call_create(device, MATMUL, regions, 4, NULL, &call));

  /* The first call warms up. */
  double call_alone = 0;
  for (int i = 0; i < 2; ++i) {
    const double begin = now();
    check(nacelle_call_invoke(call));
    check(nacelle_call_wait(call, -1));
    call_alone = now() - begin;
  }

  /* As much work as the call is long. */
  uint64_t state = 1;
  long pieces = 0;
  const double work_begin = now();
  do {
    state = work(state);
    ++pieces;
  } while (now() - work_begin < call_alone);
  const double work_alone = now() - work_begin;

  /* Both: a look between two pieces. */
  const double begin = now();
  double looking = 0;
  long looks = 0, left = pieces;
  check(nacelle_call_invoke(call));
  for (bool done = false; !done || left > 0;) {
    if (left > 0) {
      state = work(state);
      --left;
    }
    if (!done) {
      const double look = now();
      check(nacelle_call_test(call, &done));
      looking += now() - look;
      ++looks;
    }
  }
  const double both = now() - begin;

  size_t wrong = 0;
  for (size_t i = 0; i < elements; ++i) {
    wrong += c[i] != a[i];
  }
  const double shorter = call_alone < work_alone ? call_alone : work_alone;
  printf("call alone    %8.3f ms\n", 1e3 * call_alone);
  printf("work alone    %8.3f ms (%ld pieces, %016" PRIx64 ")\n", 1e3 * work_alone, pieces, state);
  printf("both          %8.3f ms: %.0f %% of the shorter one hidden\n", 1e3 * both,
         100 * (call_alone + work_alone - both) / shorter);
  printf("one look      %8.3f us, of %ld\n", 1e6 * looking / (double)looks, looks);
  printf("%zu wrong\n", wrong);

  check(nacelle_call_close(call));
  check(nacelle_device_close(device));
  free(a);
  free(b);
  free(c);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplies matrices by NAAICE's middleware interface: NAA_SPEC=<address>::16:3 matmul. */
#include <naaice_ap2.h>

/* The function of the kernel `matmul` (docs/reference/kernels.md). */
#define MATMUL 16
#define SIDE 16
#define CALLS 3

int main(void) {
  static uint32_t arguments[16] = {0x4d4d414e, 0, SIDE, SIDE, SIDE};
  static int32_t a[SIDE][SIDE], b[SIDE][SIDE], c[SIDE][SIDE];
  for (int i = 0; i < SIDE; ++i) {
    b[i][i] = 2;
  }

  /* The arguments and b stay the same: they are sent with the first call only. */
  naa_param_t inputs[] = {{arguments, sizeof arguments, true}, {a, sizeof a, false}, {b, sizeof b, true}};
  naa_param_t outputs[] = {{c, sizeof c, false}};
  naa_handle naa;
  if (naa_create(MATMUL, inputs, 3, outputs, 1, &naa) != 0) {
    return EXIT_FAILURE;
  }

  for (int call = 1; call <= CALLS; ++call) {
    for (int i = 0; i < SIDE; ++i) {
      for (int j = 0; j < SIDE; ++j) {
        a[i][j] = call * (i - j);
      }
    }
    naa_status status;
    bool flag = false;
    if (naa_invoke(&naa) != 0) {
      break;
    }
    /* Something else could be done here. */
    while (!flag && naa_test(&naa, &flag, &status) == 0) {
    }
    if (!flag || status.state != NAAICE_FINISHED || status.naa_error != NAA_SUCCESS) {
      break;
    }
    int wrong = 0;
    for (int i = 0; i < SIDE; ++i) {
      for (int j = 0; j < SIDE; ++j) {
        wrong += c[i][j] != 2 * call * (i - j);
      }
    }
    printf("call %d: %" PRIu64 " bytes, %d wrong\n", call, status.bytes_received, wrong);
  }
  return naa_finalize(&naa) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

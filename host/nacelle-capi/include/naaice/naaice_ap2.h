/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NAAICE's middleware interface, for Nacelle: programs that were written for the upstream library compile against this header
 * and link with libnacelle. docs/reference/naaice-api.md says where the two differ.
 *
 * The environment says which devices there are: NAA_SPEC=<address>:<port>:<function>:<inputs>[,...]. NAA_LOCAL_IP is the
 * caller's own address. A function that returns -1 tells the reason on stderr, unless NACELLE_LOG is "off";
 * nacelle_last_error() of nacelle.h has it, too.
 *
 * Threads: different sessions may be used by different threads at the same time. If two threads use one session at the same
 * time, the second gets -1.
 */
#ifndef NAAICE_AP2_H
#define NAAICE_AP2_H

#include "naaice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The device's result of a call. 0x10 to 0x7f are those of its kernels. */
enum naa_error {
  NAA_SUCCESS = 0x00,
  SOCKET_UNAVAIL = 0x01,
  KERNEL_TIMEOUT = 0x02
};

/* Which function of the device: 1 to 127. */
typedef uint32_t naa_function_code_t;

/* A parameter. Its memory is used in place, from naa_create() to naa_finalize(). */
typedef struct naa_param_t {
  void *addr;
  /* Bytes: 1 to 2^32 - 1. */
  size_t size;
  /* Of an input: it is sent with the first call only. */
  bool single_send;
} naa_param_t;

/* A session. It may be copied; naa_finalize() ends all copies. */
typedef struct naa_handle {
  naa_function_code_t function_code;
  struct naaice_communication_context *comm_ctx;
} naa_handle;

/* How the last call of a session stands. */
typedef struct naa_status {
  naaice_communication_state state;
  /* The device's result, when the state is NAAICE_FINISHED. */
  enum naa_error naa_error;
  /* Bytes of all outputs that the call has brought. */
  uint64_t bytes_received;
} naa_status;

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a session with the first device of NAA_SPEC that has the function, the number of inputs, and no session. The kernel sees
 * the inputs, then the outputs; an output at the address of an input is one region with it. Returns 0, or -1: then there is
 * nothing to finalize. */
int naa_create(const naa_function_code_t function_code, naa_param_t *input_params, unsigned int input_amount,
               naa_param_t *output_params, unsigned int output_amount, naa_handle *handle);

/* Starts a call and returns at once. Returns 0, or -1. */
int naa_invoke(naa_handle *handle);

/* Sets *flag to whether the call has ended, and *status. Does not wait. Returns 0, or -1 if the call failed without an answer of
 * the device: then *flag is true, and the state NAAICE_ERROR. */
int naa_test(naa_handle *handle, bool *flag, naa_status *status);

/* Waits for the end of the call, and sets *status. Returns 0 when the device has answered, also with a result other than
 * NAA_SUCCESS, or -1. The session must be finalized in either case. */
int naa_wait(naa_handle *handle, naa_status *status);

/* Ends the session. Its entry of NAA_SPEC is free again. Returns 0, or -1. */
int naa_finalize(naa_handle *handle);

#ifdef __cplusplus
}
#endif

#endif

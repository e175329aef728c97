/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses NAAICE's middleware interface wrongly, and in the ways that the upstream library does not survive. NAA_SPEC has one device
 * each for the functions 1, 99 and 16 with one input, and for 3 without.
 */
#include <naaice_ap2.h>

static int failures;

#define CHECK(condition) \
  ((condition) ? (void)0 : (void)(printf("line %d: %s does not hold\n", __LINE__, #condition), ++failures))

static void *nothing(void) { return NULL; }

int main(void) {
  static unsigned char bytes[256], other[256];
  naa_param_t in[] = {{bytes, sizeof bytes, false}}, out[] = {{bytes, sizeof bytes, false}};
  naa_param_t separate[] = {{other, sizeof other, true}};
  naa_handle handle, second;
  naa_status status;
  bool flag;
  naa_param_t *no_params = (naa_param_t *)nothing();
  naa_handle *no_handle = (naa_handle *)nothing();

  /* Arguments. */
  CHECK(naa_create(1, in, 1, out, 1, no_handle) == -1);
  CHECK(naa_create(1, no_params, 1, out, 1, &handle) == -1);
  CHECK(naa_create(1, in, 33, out, 1, &handle) == -1);
  CHECK(naa_create(0, in, 1, out, 1, &handle) == -1);
  CHECK(naa_create(257, in, 1, out, 1, &handle) == -1);
  naa_param_t larger[] = {{bytes, sizeof bytes, false}}, smaller[] = {{bytes, 16, false}};
  CHECK(naa_create(1, smaller, 1, larger, 1, &handle) == -1);
  naa_param_t overlapping[] = {{bytes + 1, 16, false}};
  CHECK(naa_create(1, in, 1, overlapping, 1, &handle) == -1);
  /* What was not created cannot be used. */
  CHECK(naa_invoke(&handle) == -1);
  CHECK(naa_finalize(&handle) == -1);
  CHECK(naa_invoke(no_handle) == -1 && naa_finalize(no_handle) == -1 && naa_wait(no_handle, &status) == -1);

  /* A failed create and a finalized session leave the entry of NAA_SPEC free; a session that runs holds it. */
  for (int round = 0; round < 2; ++round) {
    CHECK(naa_create(1, in, 1, out, 1, &handle) == 0);
    CHECK(naa_create(1, in, 1, out, 1, &second) == -1);
    CHECK(naa_test(&handle, &flag, &status) == 0 && !flag && status.state == NAAICE_MRSP_DONE);
    CHECK(naa_wait(&handle, &status) == -1);
    const unsigned char before = bytes[0];
    CHECK(naa_invoke(&handle) == 0);
    CHECK(naa_invoke(&handle) == -1);
    CHECK(naa_wait(&handle, &status) == 0);
    CHECK(status.state == NAAICE_FINISHED && status.naa_error == NAA_SUCCESS && status.bytes_received == sizeof bytes);
    CHECK(bytes[0] == (unsigned char)(before + 1) && bytes[255] == bytes[0]);
    CHECK(naa_wait(&handle, &status) == 0 && status.state == NAAICE_FINISHED);
    CHECK(naa_test(&handle, &flag, &status) == 0 && flag);
    uint8_t user[3] = {1, 2, 3};
    CHECK(naaice_set_immediate(handle.comm_ctx, user) == 0);
    CHECK(naaice_set_immediate(handle.comm_ctx, (uint8_t *)nothing()) == -1);
    CHECK(naa_finalize(&handle) == 0);
    CHECK(naa_finalize(&handle) == -1);
    CHECK(naa_test(&handle, &flag, &status) == -1 && flag && status.state == NAAICE_ERROR);
    CHECK(naaice_set_immediate(handle.comm_ctx, user) == -1);
  }

  /* An input that is sent once and comes back: the device works on what it has, not on what the program has put there since. */
  in[0].single_send = true;
  naa_param_t two[] = {{bytes, sizeof bytes, false}, {other, sizeof other, true}};
  CHECK(naa_create(1, in, 1, two, 2, &handle) == 0);
  for (int round = 1; round <= 2; ++round) {
    memset(bytes, 0, sizeof bytes);
    CHECK(naa_invoke(&handle) == 0 && naa_wait(&handle, &status) == 0);
    CHECK(bytes[0] == round && bytes[255] == round && other[0] == round);
    CHECK(status.bytes_received == sizeof bytes + sizeof other);
  }
  CHECK(naa_finalize(&handle) == 0);

  /* The device's result is no error of naa_wait(), whole and in the status. An input that is sent once, and an output beside it. */
  CHECK(naa_create(99, separate, 1, out, 1, &handle) == 0);
  for (int round = 0; round < 2; ++round) {
    CHECK(naa_invoke(&handle) == 0);
    CHECK(naa_wait(&handle, &status) == 0);
    CHECK(status.state == NAAICE_FINISHED && status.naa_error == 3 && status.bytes_received == 0);
  }
  /* Two sessions with one device have one address, also with NAA_LOCAL_IP. */
  CHECK(naa_create(16, in, 1, NULL, 0, &second) == 0);
  CHECK(naa_invoke(&second) == 0);
  while (naa_test(&second, &flag, &status) == 0 && !flag) {
  }
  CHECK(flag && status.naa_error == 0x10);
  CHECK(naa_finalize(&second) == 0);
  CHECK(naa_finalize(&handle) == 0);

  /* No input at all. */
  const unsigned char before = other[0];
  naa_param_t only_out[] = {{other, sizeof other, true}};
  CHECK(naa_create(3, NULL, 0, only_out, 1, &handle) == 0);
  CHECK(naa_invoke(&handle) == 0);
  CHECK(naa_wait(&handle, &status) == 0 && status.state == NAAICE_FINISHED && status.bytes_received == sizeof other);
  CHECK(naa_finalize(&handle) == 0);
  CHECK(other[0] == before || other[0] == 0);

  printf("%d failures\n", failures);
  return failures != 0;
}

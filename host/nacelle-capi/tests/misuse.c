/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses the library wrongly in every way that it documents, and expects the documented result each time: misuse ADDRESS.
 * "misuse ADDRESS exit" leaves with a call under way.
 */
#include <nacelle.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

enum { INCREMENT = 1, MATMUL = 16, NO_FUNCTION = 99, SIDE = 2048 };

/* A product of two matrices of this side, in memory that stays: with SIDE, work for seconds. */
static uint32_t arguments[16] = {0x4d4d414e};
static int32_t a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];

static nacelle_call product(nacelle_device device, uint32_t side) {
  arguments[2] = arguments[3] = arguments[4] = side;
  const nacelle_region regions[] = {nacelle_input(arguments, sizeof arguments), nacelle_input(a, sizeof a),
                                    nacelle_input(b, sizeof b), nacelle_output(c, sizeof c)};
  nacelle_call call = {0};
  EXPECT(NACELLE_OK, nacelle_call_create(device, MATMUL, regions, 4, NULL, &call));
  return call;
}

static void *nothing(void) { return NULL; }

static void null_pointers(nacelle_device device, nacelle_call call) {
  unsigned char bytes[4] = {0};
  const nacelle_region region = nacelle_inout(bytes, sizeof bytes);
  const nacelle_region *none = (const nacelle_region *)nothing();
  nacelle_device other = {1};
  nacelle_call made = {1};
  char text[4];
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_open(NULL, NULL, &other));
  CHECK(other.id == 0);
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_open("10.77.0.2", NULL, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_describe(device, NULL, 0, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_describe(device, NULL, 10, NULL));
  EXPECT(NACELLE_BUFFER_TOO_SMALL, nacelle_device_describe(device, text, sizeof text, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_fd(device, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_create(device, INCREMENT, none, 1, NULL, &made));
  CHECK(made.id == 0);
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_create(device, INCREMENT, &region, 1, NULL, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_create(device, INCREMENT, &region, 0, NULL, &made));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_test(call, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_get_status(call, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_on_finish(call, NULL, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_connection_open(device, NULL, NULL));
}

static void options(nacelle_device device) {
  nacelle_device other;
  nacelle_call call;
  nacelle_connection connection;
  unsigned char bytes[4] = {0};
  const nacelle_region region = nacelle_inout(bytes, sizeof bytes);
  nacelle_device_options wrong;
  memset(&wrong, 0, sizeof wrong);
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_open("10.77.0.2", &wrong, &other));
  wrong.size = (size_t)-1;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_open("10.77.0.2", &wrong, &other));
  wrong.size = sizeof wrong;
  wrong.trace = 2;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_open("10.77.0.2", &wrong, &other));
  wrong.trace = 0;
  wrong.link = NACELLE_LINK_VERBS + 1;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_open("10.77.0.2", &wrong, &other));
  wrong.link = NACELLE_LINK_UDP;
  wrong.link_name = "udp";
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_open("10.77.0.2", &wrong, &other));
  wrong.link = NACELLE_LINK_AUTO;
  const char *const names[] = {"", "pigeon", "udp:eth0", "verbs:a/b", "packet:vb"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    wrong.link_name = names[i];
    EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_open("10.77.0.2", &wrong, &other));
  }
  /* There is no such NIC, and no such interface. */
  wrong.link_name = "verbs:absent0";
  wrong.source = "127.0.0.1/8";
  EXPECT(NACELLE_LINK, nacelle_device_open("127.0.0.2", &wrong, &other));
  wrong.link_name = "packet:absent0";
  wrong.source = "10.99.0.9/24";
  EXPECT(NACELLE_LINK, nacelle_device_open("10.99.0.2", &wrong, &other));
  CHECK(strstr(nacelle_last_error(), "absent0") != NULL);
  wrong.link_name = NULL;
  wrong.source = "nowhere";
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_open("10.77.0.2", &wrong, &other));
  wrong.source = "10.77.0.50/33";
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_open("10.77.0.2", &wrong, &other));
  wrong.source = "\xff";
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_open("10.77.0.2", &wrong, &other));
  /* A field that only a later version has. */
  struct {
    nacelle_device_options known;
    uint64_t later;
  } newer = {NACELLE_DEVICE_OPTIONS_INIT, 1};
  newer.known.size = sizeof newer;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_open("10.77.0.2", &newer.known, &other));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_open("not a device", NULL, &other));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_open("0.0.0.0", NULL, &other));
  EXPECT(NACELLE_NO_SUCH_DEVICE, nacelle_device_open("no-such-device", NULL, &other));
  nacelle_call_options reserved = NACELLE_CALL_OPTIONS_INIT;
  reserved.reserved = 1;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_create(device, INCREMENT, &region, 1, &reserved, &call));
  nacelle_connection_options many = NACELLE_CONNECTION_OPTIONS_INIT;
  many.contexts = 256;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_connection_open(device, &many, &connection));
}

static void regions(nacelle_device device) {
  static unsigned char bytes[64];
  nacelle_call call;
  nacelle_region wrong = nacelle_inout(bytes, sizeof bytes);
  wrong.role = 0;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_create(device, INCREMENT, &wrong, 1, NULL, &call));
  wrong.role = 77;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_create(device, INCREMENT, &wrong, 1, NULL, &call));
  wrong = nacelle_inout(bytes, sizeof bytes);
  wrong.reserved = 1;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_create(device, INCREMENT, &wrong, 1, NULL, &call));
  wrong = nacelle_inout(NULL, 8);
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_create(device, INCREMENT, &wrong, 1, NULL, &call));
  wrong = nacelle_inout(bytes, 0);
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_create(device, INCREMENT, &wrong, 1, NULL, &call));
  wrong = nacelle_inout(bytes, (size_t)-1);
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_create(device, INCREMENT, &wrong, 1, NULL, &call));
  wrong = nacelle_internal(64);
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_create(device, INCREMENT, &wrong, 1, NULL, &call));
  const nacelle_region overlap[] = {nacelle_input(bytes, 32), nacelle_output(bytes + 31, 33)};
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_create(device, INCREMENT, overlap, 2, NULL, &call));
  const nacelle_region good = nacelle_inout(bytes, sizeof bytes);
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_create(device, 0, &good, 1, NULL, &call));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_create(device, 128, &good, 1, NULL, &call));
}

static void handles(nacelle_device device, nacelle_call call) {
  const nacelle_call zero = {0}, garbage = {0x0123456789abcdef}, not_a_call = {device.id};
  const nacelle_device not_a_device = {call.id};
  bool done;
  EXPECT(NACELLE_BAD_HANDLE, nacelle_call_invoke(zero));
  EXPECT(NACELLE_BAD_HANDLE, nacelle_call_invoke(garbage));
  EXPECT(NACELLE_BAD_HANDLE, nacelle_call_close(garbage));
  EXPECT(NACELLE_BAD_HANDLE, nacelle_call_cancel(zero));
  EXPECT(NACELLE_WRONG_HANDLE, nacelle_call_test(not_a_call, &done));
  EXPECT(NACELLE_WRONG_HANDLE, nacelle_call_close(not_a_call));
  EXPECT(NACELLE_WRONG_HANDLE, nacelle_device_close(not_a_device));
}

static void order(nacelle_device device) {
  static unsigned char bytes[1 << 20];
  bool done = true;
  nacelle_call call;
  const nacelle_region region = nacelle_inout(bytes, sizeof bytes);
  EXPECT(NACELLE_OK, nacelle_call_create(device, INCREMENT, &region, 1, NULL, &call));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_wait(call, 0));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_test(call, &done));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_invoke_with(call, 1u << 24));
  EXPECT(NACELLE_OK, nacelle_call_invoke(call));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_call_invoke(call));
  EXPECT(NACELLE_PENDING, nacelle_call_wait(call, 0));
  EXPECT(NACELLE_OK, nacelle_call_wait(call, -1));
  EXPECT(NACELLE_OK, nacelle_call_wait(call, -1));
  EXPECT(NACELLE_OK, nacelle_call_test(call, &done));
  CHECK(done);
  nacelle_call_status status = NACELLE_CALL_STATUS_INIT;
  EXPECT(NACELLE_OK, nacelle_call_get_status(call, &status));
  CHECK(status.state == NACELLE_CALL_DONE && status.device_result == 0 && status.bytes_received == sizeof bytes);
  CHECK(bytes[0] == 1 && bytes[sizeof bytes - 1] == 1);
  EXPECT(NACELLE_OK, nacelle_call_close(call));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_call_close(call));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_call_invoke(call));
  /* Its place in the table has another call now. */
  nacelle_call next;
  EXPECT(NACELLE_OK, nacelle_call_create(device, INCREMENT, &region, 1, NULL, &next));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_call_invoke(call));
  /* A call that runs is closed. */
  EXPECT(NACELLE_OK, nacelle_call_invoke(next));
  EXPECT(NACELLE_OK, nacelle_call_close(next));
}

static void results_of_the_device(nacelle_device device) {
  static unsigned char bytes[64];
  bool done = false;
  nacelle_call call;
  nacelle_call_status status = NACELLE_CALL_STATUS_INIT;
  const nacelle_region region = nacelle_inout(bytes, sizeof bytes);
  EXPECT(NACELLE_OK, nacelle_call_create(device, NO_FUNCTION, &region, 1, NULL, &call));
  EXPECT(NACELLE_OK, nacelle_call_invoke(call));
  EXPECT(NACELLE_UNKNOWN_FUNCTION, nacelle_call_wait(call, -1));
  EXPECT(NACELLE_UNKNOWN_FUNCTION, nacelle_call_test(call, &done));
  CHECK(done);
  EXPECT(NACELLE_OK, nacelle_call_get_status(call, &status));
  CHECK(status.state == NACELLE_CALL_FAILED && status.device_result == 3 && status.bytes_received == 0);
  EXPECT(NACELLE_OK, nacelle_call_close(call));
  EXPECT(NACELLE_OK, nacelle_call_create(device, MATMUL, &region, 1, NULL, &call));
  EXPECT(NACELLE_OK, nacelle_call_invoke(call));
  EXPECT(NACELLE_KERNEL, nacelle_call_wait(call, -1));
  EXPECT(NACELLE_OK, nacelle_call_get_status(call, &status));
  CHECK(status.device_result == 0x10);
  EXPECT(NACELLE_OK, nacelle_call_close(call));
}

static void load(nacelle_device device) {
  static unsigned char bytes[64];
  nacelle_call call;
  nacelle_load before = NACELLE_LOAD_INIT, after = NACELLE_LOAD_INIT;
  const nacelle_region region = nacelle_inout(bytes, sizeof bytes);
  EXPECT(NACELLE_OK, nacelle_device_load(device, &before));
  CHECK(before.connections >= 1 && before.memory_bytes == 1u << 30 && before.running == 0 && before.waiting == 0);
  EXPECT(NACELLE_OK, nacelle_call_create(device, INCREMENT, &region, 1, NULL, &call));
  EXPECT(NACELLE_OK, nacelle_call_invoke(call));
  EXPECT(NACELLE_OK, nacelle_call_wait(call, -1));
  EXPECT(NACELLE_OK, nacelle_device_load(device, &after));
  CHECK(after.memory_held == before.memory_held + sizeof bytes && after.calls == before.calls + 1);
  EXPECT(NACELLE_OK, nacelle_call_close(call));
  /* A program that knows fewer fields gets those alone. */
  after.size = offsetof(nacelle_load, memory_held);
  after.memory_held = after.calls = 77;
  EXPECT(NACELLE_OK, nacelle_device_load(device, &after));
  CHECK(after.memory_held == 77 && after.calls == 77 && after.memory_bytes == before.memory_bytes);
  after.size = 0;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_load(device, &after));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_device_load(device, NULL));
}

static int waits;

static void *wait_for(void *call) {
  __atomic_store_n(&waits, 1, __ATOMIC_SEQ_CST);
  const nacelle_result result = nacelle_call_wait(*(nacelle_call *)call, -1);
  return (void *)(uintptr_t)result;
}

static void threads(nacelle_device device) {
  nacelle_call call = product(device, SIDE);
  bool done;
  pthread_t waiting;
  void *result;
  EXPECT(NACELLE_OK, nacelle_call_invoke(call));
  CHECK(pthread_create(&waiting, NULL, wait_for, &call) == 0);
  while (!__atomic_load_n(&waits, __ATOMIC_SEQ_CST)) {
    usleep(1000);
  }
  usleep(100000);
  EXPECT(NACELLE_BUSY, nacelle_call_test(call, &done));
  EXPECT(NACELLE_BUSY, nacelle_call_close(call));
  EXPECT(NACELLE_OK, nacelle_call_cancel(call));
  CHECK(pthread_join(waiting, &result) == 0);
  CHECK((uintptr_t)result == NACELLE_CANCELLED);
  EXPECT(NACELLE_OK, nacelle_call_close(call));
}

static void forked(nacelle_device device, nacelle_call call) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    static unsigned char bytes[4];
    const nacelle_region region = nacelle_inout(bytes, sizeof bytes);
    nacelle_device own;
    nacelle_call made;
    failures = 0;
    EXPECT(NACELLE_FORKED, nacelle_call_invoke(call));
    EXPECT(NACELLE_FORKED, nacelle_call_close(call));
    EXPECT(NACELLE_FORKED, nacelle_call_create(device, INCREMENT, &region, 1, NULL, &made));
    EXPECT(NACELLE_FORKED, nacelle_device_load(device, NULL));
    EXPECT(NACELLE_FORKED, nacelle_device_close(device));
    EXPECT(NACELLE_OK, nacelle_device_open("10.77.0.2", NULL, &own));
    EXPECT(NACELLE_OK, nacelle_call_create(own, INCREMENT, &region, 1, NULL, &made));
    EXPECT(NACELLE_OK, nacelle_call_invoke(made));
    EXPECT(NACELLE_OK, nacelle_call_wait(made, -1));
    CHECK(bytes[0] == 1);
    EXPECT(NACELLE_OK, nacelle_call_close(made));
    EXPECT(NACELLE_OK, nacelle_device_close(own));
    fflush(stdout);
    _exit(failures != 0);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void count(void *counter) { __atomic_add_fetch((int *)counter, 1, __ATOMIC_SEQ_CST); }

static void connections(nacelle_device device) {
  static unsigned char bytes[16];
  const nacelle_region region = nacelle_inout(bytes, sizeof bytes);
  const nacelle_chain_step wrong = {1, 0, UINT32_MAX, 2};
  nacelle_connection connection;
  nacelle_connection_info info = NACELLE_CONNECTION_INFO_INIT;
  nacelle_call call, other;
  EXPECT(NACELLE_OK, nacelle_connection_open(device, NULL, &connection));
  EXPECT(NACELLE_OK, nacelle_connection_get_info(connection, &info));
  CHECK(info.contexts >= 1 && info.free_contexts == info.contexts);
  EXPECT(NACELLE_OK, nacelle_connection_create(connection, INCREMENT, &region, 1, NULL, &call));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_connection_create_chain(connection, &wrong, 1, &region, 1, NULL, &other));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_connection_create_chain(connection, NULL, 1, &region, 1, NULL, &other));
  if (info.contexts == 1) {
    EXPECT(NACELLE_NO_FREE_CONTEXT, nacelle_connection_create(connection, INCREMENT, &region, 1, NULL, &other));
  }
  EXPECT(NACELLE_OK, nacelle_connection_close(connection));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_connection_close(connection));
  /* The call keeps the connection, and its callback is called. */
  int finished = 0;
  EXPECT(NACELLE_OK, nacelle_call_on_finish(call, count, &finished));
  EXPECT(NACELLE_OK, nacelle_call_invoke(call));
  EXPECT(NACELLE_OK, nacelle_call_wait(call, -1));
  EXPECT(NACELLE_OK, nacelle_call_close(call));
  CHECK(finished == 1 && bytes[15] == 1);
}

int main(int argc, char *argv[]) {
  if (argc < 2) {
    fprintf(stderr, "usage: misuse ADDRESS [exit]\n");
    return 2;
  }
  CHECK(nacelle_last_error()[0] == '\0');
  CHECK(nacelle_version() == NACELLE_VERSION && strcmp(nacelle_version_string(), NACELLE_VERSION_STRING) == 0);
  nacelle_device device;
  nacelle_device_options patient = NACELLE_DEVICE_OPTIONS_INIT;
  EXPECT(NACELLE_OK, nacelle_device_open(argv[1], &patient, &device));
  nacelle_call call = product(device, argc > 2 ? SIDE : 64);
  if (argc > 2) {
    EXPECT(NACELLE_OK, nacelle_call_invoke(call));
    exit(failures != 0);
  }
  null_pointers(device, call);
  options(device);
  regions(device);
  handles(device, call);
  order(device);
  results_of_the_device(device);
  load(device);
  connections(device);
  threads(device);
  forked(device, call);
  /* Calls go on when their device was closed. */
  EXPECT(NACELLE_OK, nacelle_device_close(device));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_device_close(device));
  arguments[2] = arguments[3] = arguments[4] = 64;
  EXPECT(NACELLE_OK, nacelle_call_invoke(call));
  EXPECT(NACELLE_OK, nacelle_call_wait(call, -1));
  EXPECT(NACELLE_OK, nacelle_call_close(call));
  printf("%d failures\n", failures);
  return failures != 0;
}

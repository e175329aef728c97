/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers between hosts, used rightly and wrongly in every way that nacelle.h documents, with the documented result each time:
 * transfers [ADDRESS]. The program is both sides; ADDRESS is the acceptor's, the first free one on the wire without it.
 * "transfers ADDRESS exit" leaves with transfers and callbacks under way; "transfers ADDRESS fork" forks with them. That is not for the
 * address sanitizer, whose allocator may be locked in the child by a thread that it does not have.
 */
#include <nacelle.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

enum { LONG = 300000, LOG = 7, TABLE = 8, SLOW = 9 };

static nacelle_acceptor acceptor;
static nacelle_device device;
static char address[64];

/* With a thread of the library that moves frames, or without. */
static nacelle_connection connect_to(uint32_t progress_thread, nacelle_device *reached) {
  nacelle_device_options options = NACELLE_DEVICE_OPTIONS_INIT;
  nacelle_connection connection = {0};
  options.progress_thread = progress_thread;
  EXPECT(NACELLE_OK, nacelle_device_open(address, &options, reached));
  EXPECT(NACELLE_OK, nacelle_connection_open(*reached, NULL, &connection));
  return connection;
}

static nacelle_connection connect_again(void) {
  nacelle_connection connection = {0};
  EXPECT(NACELLE_OK, nacelle_connection_open(device, NULL, &connection));
  return connection;
}

static int is_set(const int *flag) { return __atomic_load_n(flag, __ATOMIC_SEQ_CST); }
static void set(int *flag) { __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST); }
static void wait_until(const int *flag) {
  for (int looks = 0; !is_set(flag) && looks < 20000; ++looks) {
    usleep(1000);
  }
  CHECK(is_set(flag));
}

/* What the window's callback has seen last, and what it returns. */
struct log {
  unsigned char *bytes;
  size_t size;
  uint32_t label, code;
  int count;
};

static uint32_t note(const nacelle_incoming *incoming, void *data) {
  struct log *log = data;
  CHECK(incoming->size == sizeof *incoming && incoming->peer[0] != '\0' && incoming->window == LOG);
  log->label = incoming->label;
  log->size = incoming->data_size;
  memcpy(log->bytes, incoming->data, incoming->data_size);
  ((unsigned char *)incoming->data)[0] = 99;
  ++log->count;
  return log->code;
}

static uint32_t count(const nacelle_incoming *incoming, void *data) {
  CHECK(incoming->data == NULL && incoming->data_size == 0);
  __atomic_add_fetch((int *)data, 1, __ATOMIC_SEQ_CST);
  return 0;
}

static void fill(unsigned char *bytes, size_t size, unsigned seed) {
  for (size_t at = 0; at < size; ++at) {
    bytes[at] = (unsigned char)((at * 31 + seed) % 251);
  }
}

static void what_is_written_arrives_and_what_is_read_was_there(void) {
  nacelle_device reached;
  nacelle_connection connection = connect_to(0, &reached);
  nacelle_window log_window, table_window;
  unsigned char *bytes = malloc(LONG), *table = malloc(LONG);
  struct log log = {malloc(LONG), 0, 0, 0, 0};
  int reads = 0;
  fill(table, LONG, 3);
  EXPECT(NACELLE_OK, nacelle_accept_incoming_write(acceptor, LOG, LONG, note, &log, &log_window));
  EXPECT(NACELLE_OK, nacelle_accept_incoming_read(acceptor, TABLE, table, LONG, count, &reads, &table_window));
  const size_t sizes[] = {1, 4096, 4097, LONG};
  for (unsigned round = 0; round < 4; ++round) {
    const size_t size = sizes[round];
    fill(bytes, size, round);
    EXPECT(NACELLE_OK, nacelle_write(connection, LOG, bytes, size, round + 0xfff0));
    CHECK(log.label == round + 0xfff0 && log.size == size && memcmp(log.bytes, bytes, size) == 0);
    EXPECT(NACELLE_OK, nacelle_read(connection, TABLE, bytes, size));
    CHECK(memcmp(bytes, table, size) == 0);
  }
  CHECK(log.count == 4 && is_set(&reads) == 0);
  /* Piece by piece, then what the owner says of it. */
  nacelle_remote remote, part;
  nacelle_transfer transfers[8], last;
  nacelle_transfer_status status = NACELLE_TRANSFER_STATUS_INIT;
  bool done = false;
  fill(bytes, 8000, 5);
  EXPECT(NACELLE_OK, nacelle_connection_window_to_write(connection, LOG, 8000, &remote));
  for (unsigned piece = 0; piece < 8; ++piece) {
    EXPECT(NACELLE_OK, nacelle_remote_write(remote, piece * 1000, bytes + piece * 1000, 1000, &transfers[piece]));
  }
  for (unsigned piece = 0; piece < 8; ++piece) {
    if (piece % 2 == 0) {
      EXPECT(NACELLE_OK, nacelle_transfer_wait(transfers[piece], -1));
    }
    EXPECT(NACELLE_OK, nacelle_transfer_close(transfers[piece]));
  }
  log.code = 0x21;
  EXPECT(NACELLE_OK, nacelle_remote_notify(remote, 3, &last));
  EXPECT(NACELLE_KERNEL, nacelle_transfer_wait(last, -1));
  EXPECT(NACELLE_KERNEL, nacelle_transfer_test(last, &done));
  EXPECT(NACELLE_OK, nacelle_transfer_get_status(last, &status));
  CHECK(done && status.state == NACELLE_CALL_FAILED && status.owner_result == 0x21);
  EXPECT(NACELLE_OK, nacelle_transfer_close(last));
  CHECK(log.label == 3 && log.size == 8000 && memcmp(log.bytes, bytes, 8000) == 0);
  /* A code that is none. */
  log.code = 5;
  EXPECT(NACELLE_OK, nacelle_remote_notify(remote, 3, &last));
  EXPECT(NACELLE_SOCKET_UNAVAILABLE, nacelle_transfer_close(last));
  /* The owner has left something. */
  EXPECT(NACELLE_OK, nacelle_remote_read(remote, 0, bytes, 2, &last));
  EXPECT(NACELLE_OK, nacelle_transfer_close(last));
  CHECK(bytes[0] == 99);
  /* Memory of the program, as it is now. */
  EXPECT(NACELLE_OK, nacelle_connection_window_to_read(connection, TABLE, 100, &part));
  table[50] = 111;
  EXPECT(NACELLE_OK, nacelle_remote_read(part, 49, bytes, 3, &last));
  EXPECT(NACELLE_OK, nacelle_transfer_close(last));
  CHECK(bytes[0] == table[49] && bytes[1] == 111 && bytes[2] == table[51]);
  EXPECT(NACELLE_OK, nacelle_remote_notify(part, 0, &last));
  EXPECT(NACELLE_OK, nacelle_transfer_close(last));
  CHECK(is_set(&reads) == 1);
  EXPECT(NACELLE_OK, nacelle_remote_close(part));
  EXPECT(NACELLE_OK, nacelle_remote_close(remote));
  /* Memory of its own, without a window. */
  EXPECT(NACELLE_OK, nacelle_connection_remote(connection, 100, &remote));
  EXPECT(NACELLE_OK, nacelle_remote_write(remote, 10, "abc", 3, &last));
  EXPECT(NACELLE_OK, nacelle_transfer_close(last));
  EXPECT(NACELLE_OK, nacelle_remote_read(remote, 9, bytes, 5, &last));
  EXPECT(NACELLE_OK, nacelle_transfer_close(last));
  CHECK(memcmp(bytes, "\0abc", 5) == 0);
  EXPECT(NACELLE_OK, nacelle_remote_close(remote));
  EXPECT(NACELLE_OK, nacelle_window_close(log_window));
  EXPECT(NACELLE_OK, nacelle_window_close(table_window));
  EXPECT(NACELLE_OK, nacelle_connection_close(connection));
  EXPECT(NACELLE_OK, nacelle_device_close(reached));
  free(log.bytes);
  free(table);
  free(bytes);
}

static void *nothing(void) { return NULL; }

static void arguments(void) {
  nacelle_connection connection = connect_again();
  nacelle_window window, other = {1};
  nacelle_remote remote, made = {1};
  nacelle_transfer transfer = {1};
  nacelle_acceptor_options options = NACELLE_ACCEPTOR_OPTIONS_INIT;
  nacelle_acceptor second = {1};
  nacelle_transfer_status status;
  unsigned char bytes[64] = {0}, more[65] = {0};
  int reads = 0;
  struct log log = {bytes, 0, 0, 0, 0};
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_acceptor_open(address, NULL, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_acceptor_open("here", NULL, &second));
  CHECK(second.id == 0);
  EXPECT(NACELLE_LINK, nacelle_acceptor_open("192.0.2.1", NULL, &second));
  options.contexts = 33;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_acceptor_open(NULL, &options, &second));
  options.contexts = 0;
  options.connections = 4097;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_acceptor_open(NULL, &options, &second));
  options.connections = 0;
  options.reserved = 1;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_acceptor_open(NULL, &options, &second));
  options.reserved = 0;
  options.size = 0;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_acceptor_open(NULL, &options, &second));
  options.size = sizeof options;
  char name[64];
  EXPECT(NACELLE_OK, nacelle_acceptor_name(acceptor, name, sizeof name, NULL));
  options.name = name;
  EXPECT(NACELLE_ADDRESS_TAKEN, nacelle_acceptor_open(NULL, &options, &second));
  EXPECT(NACELLE_BUFFER_TOO_SMALL, nacelle_acceptor_address(acceptor, name, 3, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_acceptor_address(acceptor, NULL, 0, NULL));

  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_accept_incoming_write(acceptor, LOG, 64, NULL, NULL, &other));
  CHECK(other.id == 0);
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_accept_incoming_write(acceptor, LOG, 64, note, &log, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_accept_incoming_read(acceptor, TABLE, nothing(), 64, NULL, NULL, &other));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_accept_incoming_read(acceptor, TABLE, bytes, (size_t)-1, NULL, NULL, &other));
  EXPECT(NACELLE_OK, nacelle_accept_incoming_write(acceptor, LOG, 64, note, &log, &window));
  EXPECT(NACELLE_WINDOW_OPEN, nacelle_accept_incoming_write(acceptor, LOG, 1, note, &log, &other));
  EXPECT(NACELLE_OK, nacelle_accept_incoming_read(acceptor, LOG, bytes, 64, count, &reads, &other));
  EXPECT(NACELLE_OK, nacelle_window_close(other));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_window_close(other));

  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_write(connection, LOG, nothing(), 4, 0));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_write(connection, LOG, bytes, 0, 0));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_write(connection, LOG, bytes, 4, 0x10000));
  EXPECT(NACELLE_REGIONS_REFUSED, nacelle_write(connection, LOG, more, sizeof more, 0));
  EXPECT(NACELLE_REGIONS_REFUSED, nacelle_write(connection, LOG + 1, bytes, 4, 0));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_read(connection, LOG, nothing(), 4));
  EXPECT(NACELLE_REGIONS_REFUSED, nacelle_read(connection, LOG, bytes, 4));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_connection_window_to_write(connection, LOG, 4, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_connection_remote(connection, 0, &made));
  CHECK(made.id == 0);
  EXPECT(NACELLE_REGIONS_REFUSED, nacelle_connection_remote(connection, (uint64_t)1 << 40, &made));
  EXPECT(NACELLE_OK, nacelle_connection_window_to_write(connection, LOG, 4, &remote));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_remote_write(remote, 0, bytes, 4, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_remote_write(remote, 1, bytes, 4, &transfer));
  CHECK(transfer.id == 0);
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_remote_write(remote, UINT64_MAX, bytes, 4, &transfer));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_remote_write(remote, 0, nothing(), 4, &transfer));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_remote_read(remote, 0, nothing(), 4, &transfer));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_remote_write_and_notify(remote, 0, bytes, 4, 0x10000, &transfer));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_remote_notify(remote, 0x10000, &transfer));
  EXPECT(NACELLE_OK, nacelle_remote_notify(remote, 0, &transfer));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_transfer_test(transfer, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_transfer_on_finish(transfer, NULL, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_transfer_get_status(transfer, NULL));
  status.size = 3;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_transfer_get_status(transfer, &status));

  /* Handles that are none, or of another kind. */
  const nacelle_transfer not_a_transfer = {remote.id}, no_transfer = {0};
  const nacelle_remote not_a_remote = {transfer.id}, garbage = {0x0123456789abcdef};
  const nacelle_acceptor not_an_acceptor = {device.id};
  const nacelle_window not_a_window = {acceptor.id};
  const nacelle_connection not_a_connection = {window.id};
  bool done;
  EXPECT(NACELLE_WRONG_HANDLE, nacelle_transfer_test(not_a_transfer, &done));
  EXPECT(NACELLE_BAD_HANDLE, nacelle_transfer_wait(no_transfer, 0));
  EXPECT(NACELLE_WRONG_HANDLE, nacelle_transfer_close(not_a_transfer));
  EXPECT(NACELLE_WRONG_HANDLE, nacelle_remote_close(not_a_remote));
  EXPECT(NACELLE_BAD_HANDLE, nacelle_remote_write(garbage, 0, bytes, 4, &transfer));
  CHECK(transfer.id == 0);
  transfer.id = not_a_remote.id;
  EXPECT(NACELLE_WRONG_HANDLE, nacelle_acceptor_close(not_an_acceptor));
  EXPECT(NACELLE_WRONG_HANDLE, nacelle_accept_incoming_write(not_an_acceptor, LOG, 64, note, &log, &other));
  EXPECT(NACELLE_WRONG_HANDLE, nacelle_window_close(not_a_window));
  EXPECT(NACELLE_WRONG_HANDLE, nacelle_write(not_a_connection, LOG, bytes, 4, 0));
  EXPECT(NACELLE_OK, nacelle_transfer_close(transfer));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_transfer_close(transfer));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_transfer_test(transfer, &done));
  EXPECT(NACELLE_OK, nacelle_remote_close(remote));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_remote_notify(remote, 0, &transfer));
  EXPECT(NACELLE_OK, nacelle_window_close(window));
  EXPECT(NACELLE_OK, nacelle_connection_close(connection));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_read(connection, LOG, bytes, 4));
}

/* Peers that use a window while it is closed. */
static int ended;

static void *write_on(void *given) {
  const nacelle_remote remote = *(nacelle_remote *)given;
  nacelle_result result = NACELLE_OK;
  while (result == NACELLE_OK) {
    nacelle_transfer transfer;
    result = nacelle_remote_write_and_notify(remote, 0, "abcd", 4, 0, &transfer);
    if (result == NACELLE_OK) {
      result = nacelle_transfer_close(transfer);
    }
  }
  return (void *)(uintptr_t)result;
}

static void *read_on(void *given) {
  const nacelle_remote remote = *(nacelle_remote *)given;
  unsigned char *bytes = malloc(LONG);
  nacelle_result result = NACELLE_OK;
  while (result == NACELLE_OK) {
    nacelle_transfer transfer;
    result = nacelle_remote_read(remote, 0, bytes, LONG, &transfer);
    if (result == NACELLE_OK) {
      result = nacelle_transfer_close(transfer);
    }
  }
  free(bytes);
  return (void *)(uintptr_t)result;
}

static uint32_t linger(const nacelle_incoming *incoming, void *data) {
  int *calls = data;
  CHECK(incoming->data_size == 4 && !is_set(&ended));
  __atomic_add_fetch(calls, 1, __ATOMIC_SEQ_CST);
  usleep(2000);
  CHECK(!is_set(&ended));
  return 0;
}

static void no_callback_and_no_access_after_the_close(void) {
  nacelle_connection writer = connect_again(), reader = connect_again();
  nacelle_window log_window, table_window;
  nacelle_remote to_write, to_read;
  pthread_t writes, reads;
  void *result;
  int *calls = calloc(1, sizeof *calls);
  unsigned char *table = malloc(LONG);
  memset(table, 1, LONG);
  EXPECT(NACELLE_OK, nacelle_accept_incoming_write(acceptor, LOG, 4, linger, calls, &log_window));
  EXPECT(NACELLE_OK, nacelle_accept_incoming_read(acceptor, TABLE, table, LONG, NULL, NULL, &table_window));
  EXPECT(NACELLE_OK, nacelle_connection_window_to_write(writer, LOG, 4, &to_write));
  EXPECT(NACELLE_OK, nacelle_connection_window_to_read(reader, TABLE, LONG, &to_read));
  CHECK(pthread_create(&writes, NULL, write_on, &to_write) == 0);
  CHECK(pthread_create(&reads, NULL, read_on, &to_read) == 0);
  wait_until(calls);
  usleep(20000);
  EXPECT(NACELLE_OK, nacelle_window_close(log_window));
  set(&ended);
  free(calls);
  EXPECT(NACELLE_OK, nacelle_window_close(table_window));
  free(table);
  CHECK(pthread_join(writes, &result) == 0 && (uintptr_t)result == NACELLE_SOCKET_UNAVAILABLE);
  CHECK(pthread_join(reads, &result) == 0 && (uintptr_t)result == NACELLE_TRANSPORT);
  EXPECT(NACELLE_OK, nacelle_remote_close(to_write));
  EXPECT(NACELLE_OK, nacelle_remote_close(to_read));
  EXPECT(NACELLE_OK, nacelle_connection_close(writer));
  EXPECT(NACELLE_OK, nacelle_connection_close(reader));
}

/* Windows that are opened before the acceptor listens. */
static void the_first_peer_finds_the_windows(void) {
  unsigned char bytes[8] = {0}, table[8] = "a table", other[64];
  struct log log = {bytes, 0, 0, 0, 0};
  nacelle_acceptor_options options = NACELLE_ACCEPTOR_OPTIONS_INIT;
  nacelle_acceptor early = {1};
  nacelle_window log_window, table_window;
  nacelle_device reached;
  nacelle_connection connection;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_acceptor_create("here", NULL, &early));
  CHECK(early.id == 0);
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_acceptor_create(NULL, NULL, NULL));
  EXPECT(NACELLE_BAD_HANDLE, nacelle_acceptor_listen(early));
  /* That its name is taken shows when it listens. */
  EXPECT(NACELLE_OK, nacelle_acceptor_name(acceptor, (char *)other, sizeof other, NULL));
  options.name = (const char *)other;
  EXPECT(NACELLE_OK, nacelle_acceptor_create(NULL, &options, &early));
  EXPECT(NACELLE_ADDRESS_TAKEN, nacelle_acceptor_listen(early));
  EXPECT(NACELLE_ADDRESS_TAKEN, nacelle_acceptor_listen(early));
  EXPECT(NACELLE_OK, nacelle_acceptor_close(early));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_acceptor_listen(early));

  options.name = "early";
  EXPECT(NACELLE_OK, nacelle_acceptor_create(NULL, &options, &early));
  EXPECT(NACELLE_OK, nacelle_accept_incoming_write(early, LOG, 8, note, &log, &log_window));
  EXPECT(NACELLE_OK, nacelle_accept_incoming_read(early, TABLE, table, sizeof table, NULL, NULL, &table_window));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_acceptor_address(early, (char *)other, sizeof other, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_acceptor_name(early, (char *)other, sizeof other, NULL));
  EXPECT(NACELLE_NO_SUCH_DEVICE, nacelle_device_open("early", NULL, &reached));
  EXPECT(NACELLE_OK, nacelle_acceptor_listen(early));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_acceptor_listen(early));
  EXPECT(NACELLE_OK, nacelle_acceptor_address(early, (char *)other, sizeof other, NULL));
  EXPECT(NACELLE_OK, nacelle_device_open((const char *)other, NULL, &reached));
  EXPECT(NACELLE_OK, nacelle_connection_open(reached, NULL, &connection));
  EXPECT(NACELLE_OK, nacelle_write(connection, LOG, "abcdefg", 8, 5));
  CHECK(log.count == 1 && memcmp(bytes, "abcdefg", 8) == 0);
  EXPECT(NACELLE_OK, nacelle_read(connection, TABLE, other, 8));
  CHECK(memcmp(other, table, 8) == 0);
  EXPECT(NACELLE_OK, nacelle_connection_close(connection));
  EXPECT(NACELLE_OK, nacelle_device_close(reached));
  EXPECT(NACELLE_OK, nacelle_acceptor_close(early));
  EXPECT(NACELLE_OK, nacelle_window_close(log_window));
  EXPECT(NACELLE_OK, nacelle_window_close(table_window));
}

/* Callbacks that close their own window, and their acceptor. */
static nacelle_window own_window;
static nacelle_acceptor own_acceptor;
static int closed;

static uint32_t close_window(const nacelle_incoming *incoming, void *data) {
  (void)incoming;
  (void)data;
  EXPECT(NACELLE_OK, nacelle_window_close(own_window));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_window_close(own_window));
  return 0;
}

static uint32_t close_acceptor(const nacelle_incoming *incoming, void *data) {
  (void)incoming;
  (void)data;
  EXPECT(NACELLE_OK, nacelle_acceptor_close(own_acceptor));
  set(&closed);
  return 0;
}

static void a_callback_closes_its_window(void) {
  nacelle_connection connection = connect_again();
  EXPECT(NACELLE_OK, nacelle_accept_incoming_write(acceptor, LOG, 4, close_window, NULL, &own_window));
  EXPECT(NACELLE_OK, nacelle_write(connection, LOG, "abcd", 4, 0));
  EXPECT(NACELLE_REGIONS_REFUSED, nacelle_write(connection, LOG, "abcd", 4, 0));
  EXPECT(NACELLE_OK, nacelle_connection_close(connection));
}

static void a_callback_closes_its_acceptor(void) {
  nacelle_connection connection;
  nacelle_device reached;
  char other[64];
  EXPECT(NACELLE_OK, nacelle_acceptor_open(NULL, NULL, &own_acceptor));
  EXPECT(NACELLE_OK, nacelle_acceptor_address(own_acceptor, other, sizeof other, NULL));
  EXPECT(NACELLE_OK, nacelle_accept_incoming_write(own_acceptor, LOG, 4, close_acceptor, NULL, &own_window));
  /* A peer that has gone is noticed by what it does not acknowledge. */
  nacelle_device_options impatient = NACELLE_DEVICE_OPTIONS_INIT;
  impatient.ack_timeout_ms = 10;
  EXPECT(NACELLE_OK, nacelle_device_open(other, &impatient, &reached));
  EXPECT(NACELLE_OK, nacelle_connection_open(reached, NULL, &connection));
  EXPECT(NACELLE_LOST, nacelle_write(connection, LOG, "abcd", 4, 0));
  wait_until(&closed);
  EXPECT(NACELLE_OK, nacelle_window_close(own_window));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_acceptor_close(own_acceptor));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_accept_incoming_write(own_acceptor, LOG, 4, close_window, NULL, &own_window));
  EXPECT(NACELLE_OK, nacelle_connection_close(connection));
  EXPECT(NACELLE_OK, nacelle_device_close(reached));
}

/* A callback that ends when it is told to. */
static int begun, may_end;

static uint32_t take_time(const nacelle_incoming *incoming, void *data) {
  (void)incoming;
  (void)data;
  set(&begun);
  wait_until(&may_end);
  return 0;
}

static void *wait_for(void *transfer) {
  return (void *)(uintptr_t)nacelle_transfer_wait(*(nacelle_transfer *)transfer, -1);
}

static void one_thread_at_a_time_uses_a_transfer(nacelle_transfer transfer) {
  bool done = true;
  pthread_t waiting;
  void *result;
  EXPECT(NACELLE_PENDING, nacelle_transfer_wait(transfer, 20));
  EXPECT(NACELLE_OK, nacelle_transfer_test(transfer, &done));
  CHECK(!done);
  CHECK(pthread_create(&waiting, NULL, wait_for, &transfer) == 0);
  usleep(100000);
  EXPECT(NACELLE_BUSY, nacelle_transfer_test(transfer, &done));
  EXPECT(NACELLE_BUSY, nacelle_transfer_close(transfer));
  set(&may_end);
  CHECK(pthread_join(waiting, &result) == 0 && (uintptr_t)result == NACELLE_OK);
  EXPECT(NACELLE_OK, nacelle_transfer_test(transfer, &done));
  CHECK(done);
}

static void forked(nacelle_connection connection, nacelle_remote remote, nacelle_transfer transfer, nacelle_window window) {
  unsigned char bytes[4] = {0};
  struct log log = {bytes, 0, 0, 0, 0};
  nacelle_window log_window;
  EXPECT(NACELLE_OK, nacelle_accept_incoming_write(acceptor, LOG, 4, note, &log, &log_window));
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    nacelle_transfer other;
    failures = 0;
    EXPECT(NACELLE_FORKED, nacelle_transfer_close(transfer));
    EXPECT(NACELLE_FORKED, nacelle_remote_write(remote, 0, "abcd", 4, &other));
    EXPECT(NACELLE_FORKED, nacelle_write(connection, SLOW, "abcd", 4, 0));
    EXPECT(NACELLE_FORKED, nacelle_window_close(window));
    EXPECT(NACELLE_FORKED, nacelle_acceptor_close(acceptor));
    nacelle_device own;
    nacelle_connection mine = connect_to(0, &own);
    EXPECT(NACELLE_OK, nacelle_write(mine, LOG, "abcd", 4, 0));
    EXPECT(NACELLE_OK, nacelle_connection_close(mine));
    EXPECT(NACELLE_OK, nacelle_device_close(own));
    fflush(stdout);
    _exit(failures != 0);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  EXPECT(NACELLE_OK, nacelle_window_close(log_window));
  CHECK(memcmp(bytes, "abcd", 4) == 0);
  set(&may_end);
  EXPECT(NACELLE_OK, nacelle_transfer_close(transfer));
}

/* A callback that closes its transfer, and one that says that it was called. */
static nacelle_transfer own_transfer;

static void close_transfer(void *flag) {
  EXPECT(NACELLE_OK, nacelle_transfer_close(own_transfer));
  set(flag);
}

static void raise_flag(void *flag) { set(flag); }

/* Is called by the thread that waits for the transfer. */
static void close_too_early(void *flag) {
  EXPECT(NACELLE_BUSY, nacelle_transfer_close(own_transfer));
  set(flag);
}

static void the_transfer_that_calls_is_busy(void) {
  nacelle_device reached;
  nacelle_connection connection = connect_to(0, &reached);
  nacelle_remote remote;
  int called = 0;
  EXPECT(NACELLE_OK, nacelle_connection_remote(connection, 4, &remote));
  EXPECT(NACELLE_OK, nacelle_remote_write(remote, 0, "abcd", 4, &own_transfer));
  EXPECT(NACELLE_OK, nacelle_transfer_on_finish(own_transfer, close_too_early, &called));
  EXPECT(NACELLE_OK, nacelle_transfer_wait(own_transfer, -1));
  CHECK(called);
  EXPECT(NACELLE_OK, nacelle_transfer_close(own_transfer));
  EXPECT(NACELLE_OK, nacelle_remote_close(remote));
  EXPECT(NACELLE_OK, nacelle_connection_close(connection));
  EXPECT(NACELLE_OK, nacelle_device_close(reached));
}

static void transfers_end(nacelle_connection driven) {
  nacelle_remote remote;
  nacelle_transfer transfer;
  int called = 0, replaced = 0;
  EXPECT(NACELLE_OK, nacelle_connection_remote(driven, LONG, &remote));
  unsigned char *bytes = malloc(LONG);
  memset(bytes, 7, LONG);
  /* The buffer is the program's again at once, whatever is under way. */
  for (int round = 0; round < 10; ++round) {
    unsigned char *own = malloc(LONG);
    memset(own, 7, LONG);
    EXPECT(NACELLE_OK, nacelle_remote_write(remote, 0, own, LONG, &transfer));
    EXPECT(NACELLE_OK, nacelle_transfer_close(transfer));
    free(own);
  }
  EXPECT(NACELLE_OK, nacelle_remote_read(remote, 0, bytes, LONG, &own_transfer));
  EXPECT(NACELLE_OK, nacelle_transfer_on_finish(own_transfer, raise_flag, &replaced));
  EXPECT(NACELLE_OK, nacelle_transfer_wait(own_transfer, -1));
  wait_until(&replaced);
  /* It has ended: the callback is called at once, by this thread, which is in a function of the transfer. */
  EXPECT(NACELLE_OK, nacelle_transfer_on_finish(own_transfer, raise_flag, &called));
  CHECK(is_set(&called));
  EXPECT(NACELLE_OK, nacelle_transfer_close(own_transfer));
  free(bytes);
  EXPECT(NACELLE_OK, nacelle_remote_close(remote));
}

static void callbacks_of_transfers(nacelle_connection driven) {
  nacelle_remote remote;
  int called = 0;
  may_end = 0;
  EXPECT(NACELLE_OK, nacelle_connection_window_to_write(driven, SLOW, 4, &remote));
  EXPECT(NACELLE_OK, nacelle_remote_write_and_notify(remote, 0, "abcd", 4, 0, &own_transfer));
  EXPECT(NACELLE_OK, nacelle_transfer_on_finish(own_transfer, close_transfer, &called));
  set(&may_end);
  wait_until(&called);
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_transfer_close(own_transfer));
  EXPECT(NACELLE_OK, nacelle_remote_close(remote));
}

int main(int argc, char *argv[]) {
  EXPECT(NACELLE_OK, nacelle_acceptor_open(argc > 1 && argv[1][0] != '\0' ? argv[1] : NULL, NULL, &acceptor));
  EXPECT(NACELLE_OK, nacelle_acceptor_address(acceptor, address, sizeof address, NULL));
  nacelle_connection driven = connect_to(1, &device);
  nacelle_window slow;
  nacelle_remote remote;
  nacelle_transfer transfer;
  EXPECT(NACELLE_OK, nacelle_accept_incoming_write(acceptor, SLOW, 4, take_time, NULL, &slow));
  EXPECT(NACELLE_OK, nacelle_connection_window_to_write(driven, SLOW, 4, &remote));
  EXPECT(NACELLE_OK, nacelle_remote_write_and_notify(remote, 0, "abcd", 4, 0, &transfer));
  wait_until(&begun);
  if (argc > 2 && strcmp(argv[2], "fork") == 0) {
    forked(driven, remote, transfer, slow);
  }
  if (argc > 2) {
    exit(failures != 0);
  }
  one_thread_at_a_time_uses_a_transfer(transfer);
  what_is_written_arrives_and_what_is_read_was_there();
  arguments();
  no_callback_and_no_access_after_the_close();
  a_callback_closes_its_window();
  if (argc == 1 || argv[1][0] == '\0') {
    a_callback_closes_its_acceptor();
    the_first_peer_finds_the_windows();
  }
  transfers_end(driven);
  callbacks_of_transfers(driven);
  the_transfer_that_calls_is_busy();
  EXPECT(NACELLE_OK, nacelle_transfer_close(transfer));
  EXPECT(NACELLE_OK, nacelle_remote_close(remote));
  EXPECT(NACELLE_OK, nacelle_acceptor_close(acceptor));
  EXPECT(NACELLE_OK, nacelle_window_close(slow));
  EXPECT(NACELLE_OK, nacelle_connection_close(driven));
  EXPECT(NACELLE_OK, nacelle_device_close(device));
  printf("%d failures\n", failures);
  return failures != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a device in a slot, used rightly and wrongly in every way that nacelle_slot.h documents, with the documented result each
 * time: copies SOCKET. "copies SOCKET exit" leaves with copies under way, "copies SOCKET fork" forks with them.
 */
#include <nacelle_slot.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

enum { SIZE = 20000, COPIES = 20, THREADS = 3 };

static nacelle_slot slot;

static nacelle_buffer in_host(size_t size, unsigned char **data) {
  nacelle_buffer buffer = {0};
  void *first = NULL;
  EXPECT(NACELLE_OK, nacelle_slot_alloc_host(slot, size, &buffer, &first));
  *data = first;
  return buffer;
}

static nacelle_buffer in_device(uint64_t size) {
  nacelle_buffer buffer = {0};
  EXPECT(NACELLE_OK, nacelle_slot_alloc_device(slot, size, &buffer));
  return buffer;
}

static void numbers(unsigned char *data, size_t size, unsigned seed) {
  for (size_t at = 0; at < size; ++at) {
    data[at] = (unsigned char)(at * 7 + (at >> 8) + seed);
  }
}

/* There and back, all at once and in pieces behind each other, not aligned. */
static void copies(void) {
  unsigned char *data, *back, wanted[SIZE];
  nacelle_buffer host = in_host(SIZE, &data), returned = in_host(SIZE, &back), near = in_device(SIZE);
  nacelle_copy_entry whole = {host, 0, near, 0, SIZE}, again = {near, 0, returned, 0, SIZE};
  nacelle_copy_entry pieces[COPIES];
  nacelle_copy under_way[COPIES];
  bool done = false;
  for (size_t at = 0; at < SIZE; ++at) {
    CHECK(data[at] == 0);
  }
  numbers(data, SIZE, 1);
  EXPECT(NACELLE_OK, nacelle_slot_copy(slot, &whole, 1));
  EXPECT(NACELLE_OK, nacelle_slot_copy(slot, &again, 1));
  CHECK(memcmp(data, back, SIZE) == 0);

  for (size_t i = 0; i < COPIES; ++i) {
    pieces[i] = (nacelle_copy_entry){near, 977 * i, returned, SIZE - 977 * (i + 1), i == 3 ? 0 : 977};
    memcpy(wanted + pieces[i].to_offset, data + pieces[i].from_offset, (size_t)pieces[i].size);
  }
  memset(back, 0, SIZE);
  memset(wanted, 0, SIZE - 977 * COPIES);
  memset(wanted + pieces[3].to_offset, 0, 977);
  EXPECT(NACELLE_OK, nacelle_slot_copy(slot, pieces, COPIES));
  CHECK(memcmp(back, wanted, SIZE) == 0);

  memset(back, 0, SIZE);
  for (size_t i = 0; i < COPIES; ++i) {
    EXPECT(NACELLE_OK, nacelle_slot_copy_start(slot, &pieces[i], 1, &under_way[i]));
  }
  EXPECT(NACELLE_OK, nacelle_copy_wait(under_way[COPIES - 1], -1));
  EXPECT(NACELLE_OK, nacelle_copy_wait(under_way[0], 0));
  for (size_t i = 0; i < COPIES; ++i) {
    while (!done) {
      EXPECT(NACELLE_OK, nacelle_copy_test(under_way[i], &done));
    }
    done = false;
    EXPECT(NACELLE_OK, nacelle_copy_close(under_way[i]));
  }
  CHECK(memcmp(back, wanted, SIZE) == 0);

  EXPECT(NACELLE_OK, nacelle_slot_fill(slot, near, 1, SIZE - 2, 0xa5));
  EXPECT(NACELLE_OK, nacelle_slot_copy(slot, &again, 1));
  CHECK(back[0] == data[0] && back[SIZE - 1] == data[SIZE - 1] && back[1] == 0xa5 && back[SIZE - 2] == 0xa5);
  EXPECT(NACELLE_OK, nacelle_buffer_close(host));
  EXPECT(NACELLE_OK, nacelle_buffer_close(returned));
  EXPECT(NACELLE_OK, nacelle_buffer_close(near));
}

static void *copies_of_a_thread(void *number) {
  unsigned char *data;
  nacelle_buffer host = in_host(3000, &data), near = in_device(3000);
  for (unsigned round = 0; round < 8; ++round) {
    nacelle_copy_entry there = {host, 1, near, 2, 2900}, back = {near, 2, host, 1, 2900};
    numbers(data, 3000, *(unsigned *)number + round);
    EXPECT(NACELLE_OK, nacelle_slot_copy(slot, &there, 1));
    memset(data + 1, 0, 2900);
    EXPECT(NACELLE_OK, nacelle_slot_copy(slot, &back, 1));
    for (size_t at = 0; at < 3000; ++at) {
      CHECK(data[at] == (unsigned char)(at * 7 + (at >> 8) + *(unsigned *)number + round));
    }
  }
  EXPECT(NACELLE_OK, nacelle_buffer_close(host));
  EXPECT(NACELLE_OK, nacelle_buffer_close(near));
  return NULL;
}

static void threads(void) {
  pthread_t all[THREADS];
  unsigned seeds[THREADS];
  for (unsigned i = 0; i < THREADS; ++i) {
    seeds[i] = 40 * i;
    CHECK(pthread_create(&all[i], NULL, copies_of_a_thread, &seeds[i]) == 0);
  }
  for (unsigned i = 0; i < THREADS; ++i) {
    CHECK(pthread_join(all[i], NULL) == 0);
  }
}

static void wrong(void) {
  unsigned char *data;
  void *first = NULL;
  uint64_t address = 0, size = 0;
  bool done = false;
  nacelle_slot none = {0}, other = {7};
  nacelle_buffer host = in_host(100, &data), near = in_device(100), buffer = {5};
  nacelle_copy copy = {5}, under_way = {0};
  nacelle_copy_entry entry = {host, 0, near, 0, 100}, bad;
  nacelle_slot_options options = NACELLE_SLOT_OPTIONS_INIT;

  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_open(NULL, NULL, &other));
  CHECK(other.id == 0);
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_open("x", NULL, NULL));
  EXPECT(NACELLE_SLOT, nacelle_slot_open("no-such.sock", NULL, &other));
  EXPECT(NACELLE_SLOT, nacelle_slot_open("ffff:00:00.0", NULL, &other));
  options.ring_log = 4;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_open("no-such.sock", &options, &other));
  options.ring_log = 16;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_open("no-such.sock", &options, &other));
  options.ring_log = 5;
  options.poll = 2;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_open("no-such.sock", &options, &other));
  options.size = 3;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_open("no-such.sock", &options, &other));

  EXPECT(NACELLE_OK, nacelle_slot_get_memory(slot, NULL, NULL));
  EXPECT(NACELLE_OK, nacelle_slot_get_memory(slot, &address, &size));
  CHECK(size == 256u << 20);
  EXPECT(NACELLE_BAD_HANDLE, nacelle_slot_get_memory(none, &address, &size));
  EXPECT(NACELLE_WRONG_HANDLE, nacelle_buffer_close((nacelle_buffer){slot.id}));
  EXPECT(NACELLE_WRONG_HANDLE, nacelle_slot_close((nacelle_slot){near.id}));
  EXPECT(NACELLE_BAD_HANDLE, nacelle_copy_close((nacelle_copy){0}));

  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_alloc_host(slot, 0, &buffer, &first));
  CHECK(buffer.id == 0 && first == NULL);
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_alloc_host(slot, 1, &buffer, NULL));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_alloc_host(slot, 1, NULL, &first));
  EXPECT(NACELLE_SLOT, nacelle_slot_alloc_host(slot, SIZE_MAX, &buffer, &first));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_alloc_device(slot, 0, &buffer));
  EXPECT(NACELLE_DEVICE_MEMORY, nacelle_slot_alloc_device(slot, size + 1, &buffer));
  EXPECT(NACELLE_DEVICE_MEMORY, nacelle_slot_alloc_device(slot, UINT64_MAX, &buffer));
  EXPECT(NACELLE_OK, nacelle_slot_alloc_device_at(slot, size - 1, 1, &buffer));
  EXPECT(NACELLE_DEVICE_MEMORY, nacelle_slot_alloc_device_at(slot, size - 1, 1, &(nacelle_buffer){0}));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_buffer_get_address(buffer, NULL));
  EXPECT(NACELLE_OK, nacelle_buffer_get_address(buffer, &address));
  CHECK(address == (1u << 30) - 1);
  EXPECT(NACELLE_OK, nacelle_buffer_get_address(host, &address));
  CHECK(address >> 63 == 1);
  EXPECT(NACELLE_OK, nacelle_buffer_close(buffer));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_buffer_get_address(buffer, &address));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_buffer_close(buffer));

  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_copy(slot, NULL, 1));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_copy(slot, &entry, 0));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_copy(slot, &entry, SIZE_MAX));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_copy_start(slot, &entry, 1, NULL));
  bad = entry;
  bad.size = 101;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_copy_start(slot, &bad, 1, &copy));
  CHECK(copy.id == 0);
  bad = entry;
  bad.from_offset = UINT64_MAX;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_copy(slot, &bad, 1));
  bad = (nacelle_copy_entry){near, 0, near, 50, 50};
  EXPECT(NACELLE_OK, nacelle_slot_copy(slot, &bad, 1));
  bad.to_offset = 49;
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_copy(slot, &bad, 1));
  bad = entry;
  bad.to = buffer;
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_slot_copy(slot, &bad, 1));
  bad.to = (nacelle_buffer){slot.id};
  EXPECT(NACELLE_WRONG_HANDLE, nacelle_slot_copy(slot, &bad, 1));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_fill(slot, near, 0, 101, 0));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_fill(slot, near, 0, 100, 256));
  EXPECT(NACELLE_OK, nacelle_slot_fill(slot, near, 100, 0, 1));

  /* A buffer that is closed while it is copied stays until then. */
  numbers(data, 100, 9);
  EXPECT(NACELLE_OK, nacelle_slot_copy_start(slot, &entry, 1, &under_way));
  EXPECT(NACELLE_OK, nacelle_buffer_close(host));
  EXPECT(NACELLE_OK, nacelle_copy_wait(under_way, 60000));
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_copy_test(under_way, NULL));
  EXPECT(NACELLE_OK, nacelle_copy_close(under_way));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_copy_wait(under_way, 0));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_copy_test(under_way, &done));
  CHECK(done);
  EXPECT(NACELLE_OK, nacelle_buffer_close(near));
}

/* A reset ends what is under way, and all works afterwards. */
static void reset(void) {
  unsigned char *data;
  nacelle_buffer host = in_host(1 << 20, &data), near = in_device(1 << 20);
  nacelle_copy_entry entry = {near, 0, host, 0, 1 << 20};
  nacelle_copy copy;
  bool done = false;
  EXPECT(NACELLE_OK, nacelle_slot_copy_start(slot, &entry, 1, &copy));
  EXPECT(NACELLE_PENDING, nacelle_copy_wait(copy, 1));
  EXPECT(NACELLE_OK, nacelle_copy_test(copy, &done));
  CHECK(!done);
  EXPECT(NACELLE_OK, nacelle_slot_reset(slot));
  EXPECT(NACELLE_COPY_FAILED, nacelle_copy_test(copy, &done));
  CHECK(done && strstr(nacelle_last_error(), "reset") != NULL);
  EXPECT(NACELLE_COPY_FAILED, nacelle_copy_wait(copy, -1));
  EXPECT(NACELLE_OK, nacelle_copy_close(copy));
  EXPECT(NACELLE_OK, nacelle_buffer_close(host));
  EXPECT(NACELLE_OK, nacelle_buffer_close(near));
}

/* More than the ring has room for. */
static void full(const char *socket) {
  nacelle_slot_options options = NACELLE_SLOT_OPTIONS_INIT;
  nacelle_copy_entry entries[33];
  nacelle_copy copy, more;
  unsigned char *data;
  options.ring_log = 5;
  options.poll = 1;
  options.timeout_ms = 100000;
  EXPECT(NACELLE_OK, nacelle_slot_close(slot));
  EXPECT(NACELLE_OK, nacelle_slot_open(socket, &options, &slot));
  EXPECT(NACELLE_SLOT, nacelle_slot_open(socket, NULL, &(nacelle_slot){0}));
  nacelle_buffer host = in_host(4096, &data), near = in_device(4096);
  for (int i = 0; i < 33; ++i) {
    entries[i] = (nacelle_copy_entry){near, 0, host, 0, 4096};
  }
  EXPECT(NACELLE_INVALID_ARGUMENT, nacelle_slot_copy(slot, entries, 33));
  EXPECT(NACELLE_OK, nacelle_slot_copy_start(slot, entries, 32, &copy));
  EXPECT(NACELLE_COPIES_FULL, nacelle_slot_copy_start(slot, entries, 32, &more));
  EXPECT(NACELLE_OK, nacelle_slot_copy(slot, entries, 32));
  EXPECT(NACELLE_OK, nacelle_copy_close(copy));
  EXPECT(NACELLE_OK, nacelle_buffer_close(host));
  EXPECT(NACELLE_OK, nacelle_buffer_close(near));
}

int main(int argc, char **argv) {
  if (argc < 2) {
    return 2;
  }
  EXPECT(NACELLE_OK, nacelle_slot_open(argv[1], NULL, &slot));
  if (argc > 2) {
    unsigned char *data;
    nacelle_buffer host = in_host(1 << 20, &data), near = in_device(1 << 20);
    nacelle_copy_entry entry = {near, 0, host, 0, 1 << 20};
    nacelle_copy copy;
    EXPECT(NACELLE_OK, nacelle_slot_copy_start(slot, &entry, 1, &copy));
    if (strcmp(argv[2], "fork") == 0) {
      pid_t child = fork();
      if (child == 0) {
        EXPECT(NACELLE_FORKED, nacelle_copy_wait(copy, 0));
        EXPECT(NACELLE_FORKED, nacelle_slot_close(slot));
        _exit(failures != 0);
      }
      int status = 1;
      CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
      EXPECT(NACELLE_OK, nacelle_copy_wait(copy, -1));
    }
    printf("%d failures\n", failures);
    exit(failures != 0);
  }
  copies();
  threads();
  wrong();
  reset();
  copies();
  full(argv[1]);
  copies();
  EXPECT(NACELLE_OK, nacelle_slot_close(slot));
  EXPECT(NACELLE_CLOSED_HANDLE, nacelle_slot_close(slot));
  printf("%d failures\n", failures);
  return failures != 0;
}

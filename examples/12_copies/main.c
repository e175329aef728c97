/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles of a matrix in host memory, to the memory of a device in a slot and back: a row of a tile is a copy, a tile is a list of them
 * with one end. While one list is under way the next one is begun, as long as the ring has room.
 *
 *     ./copies card.sock
 */
#include <nacelle_slot.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 96, COLUMNS = 160, TILE = 32, TILES = ROWS / TILE * (COLUMNS / TILE) };

/* Ends the program if something has failed. */
static void must(nacelle_result result, const char *what) {
  if (result == NACELLE_OK) return;
  fprintf(stderr, "%s: %s\n", what, nacelle_last_error());
  exit(1);
}

/* The rows of a tile of `matrix`; in the device they lie behind each other, tile by tile. */
static void rows_of(int tile, nacelle_buffer matrix, nacelle_buffer tiles, bool to_device, nacelle_copy_entry *entries) {
  int first_row = tile / (COLUMNS / TILE) * TILE, first_column = tile % (COLUMNS / TILE) * TILE;
  for (int row = 0; row < TILE; row++) {
    uint64_t here = sizeof(int32_t) * ((uint64_t)(first_row + row) * COLUMNS + first_column);
    uint64_t there = sizeof(int32_t) * ((uint64_t)tile * TILE + row) * TILE;
    entries[row] = to_device ? (nacelle_copy_entry){matrix, here, tiles, there, TILE * sizeof(int32_t)}
                             : (nacelle_copy_entry){tiles, there, matrix, here, TILE * sizeof(int32_t)};
  }
}

/* Copies all tiles one way. */
static void copy_tiles(nacelle_slot slot, nacelle_buffer matrix, nacelle_buffer tiles, bool to_device) {
  nacelle_copy copies[TILES];
  nacelle_copy_entry entries[TILE];
  int ended = 0;
  for (int tile = 0; tile < TILES; tile++) {
    nacelle_result result;
    rows_of(tile, matrix, tiles, to_device, entries);
    /* No room in the ring: the oldest list that is under way has to end. */
    while ((result = nacelle_slot_copy_start(slot, entries, TILE, &copies[tile])) == NACELLE_COPIES_FULL && ended < tile) {
      must(nacelle_copy_wait(copies[ended], -1), "copy");
      must(nacelle_copy_close(copies[ended++]), "copy");
    }
    must(result, "begin of a copy");
  }
  for (; ended < TILES; ended++) {
    must(nacelle_copy_wait(copies[ended], -1), "copy");
    must(nacelle_copy_close(copies[ended]), "copy");
  }
}

int main(int argc, char **argv) {
  nacelle_slot slot;
  nacelle_slot_options options = NACELLE_SLOT_OPTIONS_INIT;
  nacelle_buffer matrix, again, tiles;
  void *data, *found;
  size_t size = ROWS * COLUMNS * sizeof(int32_t);
  int wrong = 0;

  if (argc != 2) {
    fprintf(stderr, "usage: %s SOCKET or PCI address\n", argv[0]);
    return 2;
  }
  options.ring_log = 7; /* 128 places: room for the rows of four tiles */
  must(nacelle_slot_open(argv[1], &options, &slot), argv[1]);
  must(nacelle_slot_alloc_host(slot, size, &matrix, &data), "host memory");
  must(nacelle_slot_alloc_host(slot, size, &again, &found), "host memory");
  must(nacelle_slot_alloc_device(slot, size, &tiles), "device memory");

  for (int i = 0; i < ROWS * COLUMNS; i++) ((int32_t *)data)[i] = i * 7 - 3;
  copy_tiles(slot, matrix, tiles, true);
  copy_tiles(slot, again, tiles, false);
  for (int i = 0; i < ROWS * COLUMNS; i++) wrong += ((int32_t *)found)[i] != i * 7 - 3;
  printf("%d tiles of %dx%d there and back: %d of %d numbers wrong\n", TILES, TILE, TILE, wrong, ROWS * COLUMNS);

  must(nacelle_buffer_close(matrix), "host memory");
  must(nacelle_buffer_close(again), "host memory");
  must(nacelle_buffer_close(tiles), "device memory");
  must(nacelle_slot_close(slot), argv[1]);
  return wrong != 0;
}

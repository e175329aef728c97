/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplies matrices by MPI ranks, each on the device that NAA_SPEC has for it: NAA_SPEC=<address>::16:3,... mpirun -np N matmul-mpi. */
#include <mpi.h>
#include <naaice_ap2.h>

/* The function of the kernel `matmul` (docs/reference/kernels.md). */
#define MATMUL 16
/* Rows of each rank, and the side of the other matrix. */
#define ROWS 8
#define SIDE 64

/* Leaves in NAA_SPEC the entry of this rank only: entry number rank, counted round the list. 0, or -1 if there is none. */
static int choose_device(int rank) {
  const char *list = getenv("NAA_SPEC");
  if (list == NULL || *list == '\0') {
    return -1;
  }
  int entries = 1;
  for (const char *at = list; *at != '\0'; ++at) {
    entries += *at == ',';
  }
  for (int skip = rank % entries; skip > 0; --skip) {
    list = strchr(list, ',') + 1;
  }
  char *entry = strndup(list, strcspn(list, ","));
  const int result = entry == NULL ? -1 : setenv("NAA_SPEC", entry, 1);
  free(entry);
  return result;
}

/* C = A * B on the device of this rank. */
static int multiply(int32_t a[ROWS][SIDE], int32_t b[SIDE][SIDE], int32_t c[ROWS][SIDE]) {
  uint32_t arguments[16] = {0x4d4d414e, 0, ROWS, SIDE, SIDE};
  naa_param_t inputs[] = {{arguments, sizeof arguments, true}, {a, sizeof(int32_t[ROWS][SIDE]), false}, {b, sizeof(int32_t[SIDE][SIDE]), true}};
  naa_param_t outputs[] = {{c, sizeof(int32_t[ROWS][SIDE]), false}};
  naa_handle naa;
  naa_status status;
  if (naa_create(MATMUL, inputs, 3, outputs, 1, &naa) != 0) {
    return -1;
  }
  int result = naa_invoke(&naa);
  if (result == 0) {
    result = naa_wait(&naa, &status);
  }
  if (result == 0 && (status.state != NAAICE_FINISHED || status.naa_error != NAA_SUCCESS)) {
    result = -1;
  }
  return naa_finalize(&naa) == 0 ? result : -1;
}

int main(int argc, char *argv[]) {
  static int32_t a[ROWS][SIDE], b[SIDE][SIDE], c[ROWS][SIDE];
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  /* Rank 0 has all of A and B. */
  int32_t *all = NULL;
  if (rank == 0) {
    all = malloc((size_t)ranks * sizeof a);
    if (all == NULL) {
      MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    for (int i = 0; i < ranks * ROWS * SIDE; ++i) {
      all[i] = i;
    }
    for (int i = 0; i < SIDE; ++i) {
      b[i][(i + 1) % SIDE] = 3;
    }
  }
  MPI_Scatter(all, ROWS * SIDE, MPI_INT32_T, a, ROWS * SIDE, MPI_INT32_T, 0, MPI_COMM_WORLD);
  MPI_Bcast(b, SIDE * SIDE, MPI_INT32_T, 0, MPI_COMM_WORLD);

  if (choose_device(rank) != 0 || multiply(a, b, c) != 0) {
    fprintf(stderr, "rank %d has no product of its rows\n", rank);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  }
  printf("rank %d used %s\n", rank, getenv("NAA_SPEC"));

  MPI_Gather(c, ROWS * SIDE, MPI_INT32_T, all, ROWS * SIDE, MPI_INT32_T, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    /* B moves each column one to the right, and triples it. */
    int wrong = 0;
    for (int i = 0; i < ranks * ROWS; ++i) {
      for (int j = 0; j < SIDE; ++j) {
        wrong += all[i * SIDE + (j + 1) % SIDE] != 3 * (i * SIDE + j);
      }
    }
    printf("%d rows by %d ranks, %d wrong\n", ranks * ROWS, ranks, wrong);
    free(all);
  }
  MPI_Finalize();
  return EXIT_SUCCESS;
}

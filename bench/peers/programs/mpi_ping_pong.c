/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of 8 bytes between two MPI processes: the median round trip in seconds, of as many as the argument says.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    char bytes[8] = {0};
    int rank;
    int count = argc > 1 ? atoi(argv[1]) : 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double *times = count > 0 ? malloc(sizeof *times * (size_t)count) : NULL;
    if (!times) {
        fprintf(stderr, "usage: mpi_ping_pong COUNT\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    /* The first half warms up. */
    for (int i = -count; i < count; i++) {
        double begin = MPI_Wtime();
        if (rank == 0) {
            MPI_Send(bytes, sizeof bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(bytes, sizeof bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(bytes, sizeof bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(bytes, sizeof bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
        if (i >= 0)
            times[i] = MPI_Wtime() - begin;
    }
    qsort(times, (size_t)count, sizeof *times, by_size);
    if (rank == 0)
        printf("%.9f\n", times[count / 2]);
    free(times);
    MPI_Finalize();
    return 0;
}

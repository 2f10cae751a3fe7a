/* Heat in a rod, ends held at 0 and 1: each rank has a part of the rod and swaps the cells at its edges with its
 * neighbours in every step. Prints the largest difference from the steady state, a straight line.
 *   heat [cells per rank] [steps] */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int cells = argc > 1 ? atoi(argv[1]) : 20;
    int steps = argc > 2 ? atoi(argv[2]) : 20000;
    if (cells < 1 || steps < 1) {
        if (rank == 0) fprintf(stderr, "usage: heat [cells per rank] [steps]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int total = cells * ranks;
    double *now = calloc(cells + 2, sizeof *now), *next = calloc(cells + 2, sizeof *next);
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
    for (int step = 0; step < steps; step++) {
        MPI_Sendrecv(&now[1], 1, MPI_DOUBLE, left, 0, &now[cells + 1], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(&now[cells], 1, MPI_DOUBLE, right, 1, &now[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        if (left == MPI_PROC_NULL) now[0] = 0.0;
        if (right == MPI_PROC_NULL) now[cells + 1] = 1.0;
        for (int i = 1; i <= cells; i++) next[i] = now[i] + 0.5 * (now[i - 1] - 2.0 * now[i] + now[i + 1]);
        double *swap = now;
        now = next;
        next = swap;
    }
    double worst = 0.0, all = 0.0;
    for (int i = 1; i <= cells; i++) {
        double wanted = (double)(rank * cells + i) / (total + 1);
        worst = fmax(worst, fabs(now[i] - wanted));
    }
    MPI_Reduce(&worst, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("ranks %d cells %d steps %d largest difference %.3e\n", ranks, total, steps, all);
    free(now);
    free(next);
    MPI_Finalize();
    return 0;
}

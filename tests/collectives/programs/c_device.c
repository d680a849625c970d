/* The C ABI's collectives on GPUs, over the NCCL at TUTTI_NCCL_LIBRARY: the tests' stand-in, which
 * works on plain memory among threads of one process. Two ranks as threads, or one of
 * them alone; each prints its number and "ok", or why NCCL is not there.
 *   c_device PORT [RANK]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "tutti_comm.h"

enum { SIZE = 2 };
static int port;

static int32_t at_the_third_look(void* looks) { return ++*(int*)looks == 3; }

static void use_device(tutti_comm_group group, int rank) {
  const float mine = (float)(rank + 1);
  float data[4] = {mine, mine, mine, mine}, half[2], all[4];
  int looks = 0;
  OK(tutti_comm_device_all_reduce(group, data, data, 4, TUTTI_COMM_FLOAT32, TUTTI_COMM_MEAN, NULL,
                                  30));
  CHECK(data[0] == 1.5f && data[3] == 1.5f);
  data[2] = data[3] = 4;
  OK(tutti_comm_device_reduce_scatter(group, data, half, 2, TUTTI_COMM_FLOAT32, TUTTI_COMM_SUM,
                                      NULL, 30));
  CHECK(half[1] == (rank == 0 ? 3.0f : 8.0f));
  OK(tutti_comm_device_all_gather(group, half, sizeof(half), all, NULL, 30));
  CHECK(all[0] == 3 && all[1] == 3 && all[2] == 8 && all[3] == 8);
  OK(tutti_comm_device_broadcast(group, half, sizeof(half), 1, NULL, 30));
  CHECK(half[0] == 8);
  half[0] = mine;
  if (rank == 0) OK(tutti_comm_device_send(group, half, sizeof(float), 1, NULL, 30));
  if (rank == 1) OK(tutti_comm_device_receive(group, half, sizeof(float), 0, NULL, 30));
  CHECK(half[0] == 1);
  OK(tutti_comm_device_await(group, &at_the_third_look, &looks, 30));
  CHECK(looks == 3);
  CHECK(tutti_comm_device_await(group, NULL, NULL, 30) == TUTTI_COMM_INVALID_ARGUMENT);
  CHECK(tutti_comm_device_all_reduce(group, data, data, 4, 99, TUTTI_COMM_SUM, NULL, 30) ==
        TUTTI_COMM_INVALID_ARGUMENT);
  CHECK(tutti_comm_device_all_reduce(group, data, data, 4, TUTTI_COMM_INT16, TUTTI_COMM_SUM, NULL,
                                     30) == TUTTI_COMM_UNIMPLEMENTED);
}

static void* live(void* number) {
  const int rank = *(int*)number;
  tutti_comm_group_options options;
  tutti_comm_group group;
  tutti_comm_status status;
  float one = 1;
  tutti_comm_group_options_init(&options, sizeof(options));
  options.rank = rank;
  options.size = SIZE;
  options.master_port = port;
  OK(tutti_comm_group_join(&options, &group));
  status = tutti_comm_device_all_reduce(group, &one, &one, 1, TUTTI_COMM_FLOAT32, TUTTI_COMM_SUM,
                                        NULL, 30);
  if (status == TUTTI_COMM_FAILED_PRECONDITION) {
    printf("rank %d: %s\n", rank, tutti_comm_last_error());
  } else {
    CHECK(status == TUTTI_COMM_OK && one == SIZE);
    use_device(group, rank);
    printf("rank %d ok\n", rank);
  }
  OK(tutti_comm_barrier(group, 30)); /* the group itself goes on */
  OK(tutti_comm_group_leave(group));
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t threads[SIZE];
  int ranks[SIZE], i;
  if (argc < 2) return 2;
  port = atoi(argv[1]);
  if (argc == 3) {
    ranks[0] = atoi(argv[2]);
    live(&ranks[0]);
    return 0;
  }
  for (i = 0; i < SIZE; ++i) {
    ranks[i] = i;
    if (pthread_create(&threads[i], NULL, &live, &ranks[i]) != 0) return 2;
  }
  for (i = 0; i < SIZE; ++i) pthread_join(threads[i], NULL);
  return 0;
}

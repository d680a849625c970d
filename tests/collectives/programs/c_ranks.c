/* Ranks as forked processes that use all of tutti_comm.h, and misuse it.
 *   c_ranks SIZE [KILLED]     KILLED: a rank that kills itself; the others must get its number
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, size;
#define SELF rank
#include "check.h"
#include "free_port.h"
#include "tutti_comm.h"

enum { MOST = 16, FUSION_BYTES = 1 << 20 };
#define CYCLE_TIME 0.0625

static tutti_comm_group join(int port) {
  tutti_comm_group_options options;
  tutti_comm_group group = 0;
  tutti_comm_group_options_init(&options, sizeof(options));
  options.rank = rank;
  options.size = size;
  options.master_port = port;
  options.token = "a secret";
  OK(tutti_comm_group_join(&options, &group));
  CHECK(group != 0);
  return group;
}

static void use_group(tutti_comm_group group) {
  tutti_comm_placement placement;
  tutti_comm_group self;
  tutti_comm_buffer buffer;
  void* shared;
  int32_t ranks[1];
  size_t counts[MOST], ones[MOST];
  int64_t sum = rank + 1, parts[MOST], mine = rank, swapped[MOST];
  float row[MOST];
  int i;
  OK(tutti_comm_group_placement(group, &placement, sizeof(placement)));
  CHECK(placement.rank == rank && placement.size == size && placement.local_size == size &&
        placement.local_rank == rank && placement.cross_size == 1 && placement.homogeneous == 1);
  OK(tutti_comm_all_reduce(group, &sum, 1, TUTTI_COMM_INT64, TUTTI_COMM_SUM, 30));
  CHECK(sum == size * (size + 1) / 2);
  for (i = 0; i < size; ++i) {
    counts[i] = 1;
    ones[i] = sizeof(int64_t);
    row[i] = (float)i;
    parts[i] = 100 * rank + i;
  }
  OK(tutti_comm_reduce_scatter(group, row, counts, row, TUTTI_COMM_FLOAT32, TUTTI_COMM_MAX, 30));
  CHECK(row[0] == (float)rank);
  OK(tutti_comm_all_to_allv(group, parts, ones, swapped, ones, 30));
  for (i = 0; i < size; ++i) CHECK(swapped[i] == 100 * i + rank);
  OK(tutti_comm_all_gather(group, &mine, sizeof(mine), parts, 30));
  for (i = 0; i < size; ++i) CHECK(parts[i] == i);
  OK(tutti_comm_all_gatherv(group, &mine, ones, parts, 30));
  mine = rank == size - 1 ? 42 : 0;
  OK(tutti_comm_broadcast(group, &mine, sizeof(mine), size - 1, 30));
  CHECK(mine == 42);
  if (size > 1 && rank == 0) OK(tutti_comm_send(group, &mine, sizeof(mine), 1, 30));
  if (size > 1 && rank == 1) OK(tutti_comm_receive(group, &mine, sizeof(mine), 0, 30));
  ranks[0] = rank;
  OK(tutti_comm_subgroup(group, ranks, 1, 30, &self));
  OK(tutti_comm_barrier(self, 30));
  OK(tutti_comm_group_leave(self));
  OK(tutti_comm_buffer_allocate(group, 4096, &buffer, &shared));
  ((int32_t*)shared)[1023] = 1;
  OK(tutti_comm_all_reduce(group, shared, 1024, TUTTI_COMM_INT32, TUTTI_COMM_SUM, 30));
  CHECK(((int32_t*)shared)[1023] == size);
  OK(tutti_comm_buffer_free(buffer));
  CHECK(tutti_comm_buffer_free(buffer) == TUTTI_COMM_INVALID_ARGUMENT);
  OK(tutti_comm_barrier(group, 30));
}

/* 0.3 in every place but one: in int8 that is not exact, but what is lost comes later. */
static void use_encodings(tutti_comm_group group) {
  enum { COUNT = 1000, STEPS = 50 };
  static float data[COUNT];
  double total;
  tutti_comm_feedback feedback;
  int encoding, step, i;
  for (encoding = 0; encoding <= TUTTI_COMM_ENCODING_INT8; ++encoding) {
    OK(tutti_comm_feedback_open(&feedback));
    total = 0;
    for (step = 0; step < STEPS; ++step) {
      for (i = 0; i < COUNT; ++i) data[i] = i == 0 ? 100 : 0.3f;
      OK(tutti_comm_all_reduce_encoded(group, data, COUNT, TUTTI_COMM_MEAN, encoding, feedback,
                                       30));
      CHECK(data[0] > 99 && data[0] < 101);
      total += data[1];
    }
    CHECK(total > 0.3 * STEPS - 1 && total < 0.3 * STEPS + 1);
    /* In int8 0.3 beside 100 is nothing, without the feedback. */
    for (i = 0; i < COUNT; ++i) data[i] = i == 0 ? 100 : 0.3f;
    OK(tutti_comm_all_reduce_encoded(group, data, COUNT, TUTTI_COMM_SUM, encoding, 0, 30));
    CHECK(data[0] > 99 * size && data[0] < 101 * size);
    if (size > 1 && encoding == TUTTI_COMM_ENCODING_INT8) CHECK(data[1] != 0.3f * (float)size);
    OK(tutti_comm_feedback_close(feedback));
    CHECK(tutti_comm_all_reduce_encoded(group, data, COUNT, TUTTI_COMM_SUM, encoding, feedback,
                                        30) == TUTTI_COMM_INVALID_ARGUMENT);
  }
  CHECK(tutti_comm_all_reduce_encoded(group, data, COUNT, TUTTI_COMM_SUM, 3, 0, 30) ==
        TUTTI_COMM_INVALID_ARGUMENT);
  CHECK(tutti_comm_all_reduce_encoded(group, data, COUNT, TUTTI_COMM_MAX, 0, 0, 30) ==
        TUTTI_COMM_INVALID_ARGUMENT);
  OK(tutti_comm_barrier(group, 30));
}

static void misuse(tutti_comm_group group) {
  tutti_comm_group_options options;
  int value = 0;
  CHECK(tutti_comm_barrier(0, 1) == TUTTI_COMM_INVALID_ARGUMENT);
  CHECK(tutti_comm_barrier(12345, 1) == TUTTI_COMM_INVALID_ARGUMENT);
  CHECK(tutti_comm_session_shutdown(group) == TUTTI_COMM_INVALID_ARGUMENT);
  CHECK(strstr(tutti_comm_last_error(), "no open handle of a session") != NULL);
  CHECK(tutti_comm_all_reduce(group, NULL, 1, TUTTI_COMM_INT64, TUTTI_COMM_SUM, 1) ==
        TUTTI_COMM_INVALID_ARGUMENT);
  CHECK(tutti_comm_all_reduce(group, &value, 1, 77, TUTTI_COMM_SUM, 1) ==
        TUTTI_COMM_INVALID_ARGUMENT);
  CHECK(tutti_comm_all_reduce(group, &value, 1, TUTTI_COMM_INT32, -1, 1) ==
        TUTTI_COMM_INVALID_ARGUMENT);
  CHECK(tutti_comm_broadcast(group, &value, 4, size, 1) == TUTTI_COMM_INVALID_ARGUMENT);
  CHECK(tutti_comm_group_join(NULL, NULL) == TUTTI_COMM_INVALID_ARGUMENT);
  CHECK(tutti_comm_group_placement(group, NULL, sizeof(int)) == TUTTI_COMM_INVALID_ARGUMENT);
  memset(&options, 0, sizeof(options));
  CHECK(tutti_comm_group_join(&options, &group) == TUTTI_COMM_INVALID_ARGUMENT);
  CHECK(strstr(tutti_comm_last_error(), "struct_size") != NULL);
  CHECK(strcmp(tutti_comm_status_name(TUTTI_COMM_UNAVAILABLE), "UNAVAILABLE") == 0);
  CHECK(strcmp(tutti_comm_status_name(99), "UNKNOWN") == 0);
  CHECK(tutti_comm_size_of(TUTTI_COMM_BFLOAT16) == 2 && tutti_comm_size_of(-1) == 0);
  CHECK(tutti_comm_built_with("shm") == 1 && tutti_comm_built_with(NULL) == 0);
  tutti_comm_group_options_init(NULL, sizeof(options));
  tutti_comm_request_init(NULL, sizeof(tutti_comm_request));
}

static tutti_comm_operation submit(tutti_comm_session session, tutti_comm_kind kind,
                                   const char* name, const tutti_comm_tensor* tensor) {
  tutti_comm_request request;
  tutti_comm_operation operation = 0;
  tutti_comm_request_init(&request, sizeof(request));
  request.kind = kind;
  request.name = name;
  request.tensors = tensor;
  request.tensor_size = sizeof(*tensor);
  request.tensor_count = tensor != NULL ? 1 : 0;
  OK(tutti_comm_submit(session, &request, &operation));
  return operation;
}

/* Sums of tensors that every rank submits in another order. */
static void sum_many(tutti_comm_session session) {
  enum { TENSORS = 50 };
  tutti_comm_operation operations[TENSORS];
  float data[TENSORS][3];
  const int64_t three = 3;
  tutti_comm_tensor tensor = {NULL, NULL, &three, 1, TUTTI_COMM_FLOAT32};
  char name[16];
  int32_t done;
  int i;
  for (i = 0; i < TENSORS; ++i) {
    const int k = (i * 7 + rank * 13) % TENSORS;
    data[k][0] = data[k][1] = data[k][2] = (float)(k + rank);
    tensor.input = tensor.output = data[k];
    sprintf(name, "tensor %d", k);
    operations[k] = submit(session, TUTTI_COMM_ALL_REDUCE, name, &tensor);
  }
  for (i = 0; i < TENSORS; ++i) {
    OK(tutti_comm_operation_wait(operations[i], 30));
    OK(tutti_comm_operation_poll(operations[i], &done));
    CHECK(done == 1 && data[i][2] == (float)(size * i + size * (size - 1) / 2));
    OK(tutti_comm_operation_release(operations[i]));
    CHECK(tutti_comm_operation_release(operations[i]) == TUTTI_COMM_INVALID_ARGUMENT);
  }
}

/* As many rows of each rank as its number is, in memory of the library. */
static void gather_rows(tutti_comm_session session) {
  float row[MOST] = {0};
  const int64_t rows = rank;
  tutti_comm_tensor tensor = {row, NULL, &rows, 1, TUTTI_COMM_FLOAT32};
  tutti_comm_output output;
  const int64_t* received;
  size_t count;
  const tutti_comm_operation operation = submit(session, TUTTI_COMM_ALL_GATHER, NULL, &tensor);
  OK(tutti_comm_operation_wait_on_stream(operation, NULL, 30)); /* on the host: a plain wait */
  OK(tutti_comm_operation_output(operation, 0, &output, sizeof(output)));
  CHECK(output.dimensions == 1 && output.shape[0] == size * (size - 1) / 2);
  CHECK(output.bytes == sizeof(float) * (size_t)output.shape[0]);
  OK(tutti_comm_operation_received(operation, &received, &count));
  CHECK((int)count == size && received[size - 1] == size - 1);
  CHECK(tutti_comm_operation_output(operation, 1, &output, sizeof(output)) ==
        TUTTI_COMM_INVALID_ARGUMENT);
  OK(tutti_comm_operation_release(operation));
}

static void join_all(tutti_comm_session session) {
  const tutti_comm_operation operation = submit(session, TUTTI_COMM_JOIN, NULL, NULL);
  int64_t value;
  OK(tutti_comm_operation_wait(operation, 30));
  OK(tutti_comm_operation_value(operation, &value));
  CHECK(value >= 0 && value < size);
  OK(tutti_comm_operation_release(operation));
}

/* The ranks of even numbers, as a process set. */
static void use_process_set(tutti_comm_session session) {
  int32_t set, same, sets[4], members[MOST], evens[MOST];
  size_t count;
  int i;
  for (i = 0; 2 * i < size; ++i) evens[i] = 2 * i;
  if (size == 1) return;
  OK(tutti_comm_process_set_add(session, evens, (size_t)i, 30, &set));
  CHECK(tutti_comm_process_set_add(session, evens, (size_t)i, 30, &same) ==
            TUTTI_COMM_ALREADY_EXISTS &&
        same == set);
  OK(tutti_comm_process_sets(session, sets, 4, &count));
  CHECK(count == 2 && sets[1] == set);
  OK(tutti_comm_process_set_ranks(session, set, members, MOST, &count));
  CHECK((int)count == i && members[0] == 0);
  OK(tutti_comm_process_set_remove(session, set, 30));
  CHECK(tutti_comm_process_set_ranks(session, set, members, MOST, &count) == TUTTI_COMM_NOT_FOUND);
}

static void submit_wrong_requests(tutti_comm_session session) {
  tutti_comm_request request;
  tutti_comm_operation operation;
  tutti_comm_request_init(&request, sizeof(request));
  request.kind = 99;
  CHECK(tutti_comm_submit(session, &request, &operation) == TUTTI_COMM_INVALID_ARGUMENT);
  CHECK(tutti_comm_submit(session, NULL, &operation) == TUTTI_COMM_INVALID_ARGUMENT);
  request.kind = TUTTI_COMM_ALL_REDUCE;
  CHECK(tutti_comm_submit(session, &request, &operation) == TUTTI_COMM_INVALID_ARGUMENT);
}

static void use_session(tutti_comm_session session) {
  uint64_t fusion_bytes = 0;
  double cycle_time = 0;
  sum_many(session);
  gather_rows(session);
  join_all(session);
  use_process_set(session);
  submit_wrong_requests(session);
  CHECK(tutti_comm_timeline_start(session, "/nowhere/at/all", 0) == TUTTI_COMM_NOT_FOUND);
  OK(tutti_comm_timeline_stop(session));
  OK(tutti_comm_session_tuning(session, &fusion_bytes, &cycle_time));
  CHECK(fusion_bytes == FUSION_BYTES && cycle_time == CYCLE_TIME);
}

/* A rank dies between two operations, of which the others wait for the second at the latest. */
static void lose(tutti_comm_session session, int victim) {
  const int64_t one = 1;
  float number = 1;
  tutti_comm_tensor tensor = {NULL, NULL, &one, 1, TUTTI_COMM_FLOAT32};
  tutti_comm_request request;
  tutti_comm_operation operation;
  tutti_comm_status status = TUTTI_COMM_OK;
  tensor.input = tensor.output = &number;
  tutti_comm_request_init(&request, sizeof(request));
  request.name = "orphan";
  request.tensors = &tensor;
  request.tensor_size = sizeof(tensor);
  request.tensor_count = 1;
  while (status == TUTTI_COMM_OK) {
    status = tutti_comm_submit(session, &request, &operation);
    if (status != TUTTI_COMM_OK) break; /* the loss is known already */
    status = tutti_comm_operation_wait(operation, 30);
    if (rank == victim) raise(SIGKILL);
    tutti_comm_operation_release(operation);
  }
  CHECK(status == TUTTI_COMM_UNAVAILABLE);
  CHECK(tutti_comm_last_lost_rank() == victim);
  tutti_comm_session_shutdown(session);
  printf("rank %d lost rank %d\n", rank, victim);
  exit(0);
}

static void live(const int* ports, int victim) {
  tutti_comm_group group;
  tutti_comm_session session;
  tutti_comm_session_options options;
  pid_t child;
  int round, status;
  for (round = 0; round < 2; ++round) { /* twice: what was left can be joined anew */
    group = join(ports[round]);
    misuse(group);
    use_group(group);
    use_encodings(group);
    tutti_comm_session_options_init(&options, sizeof(options));
    options.fusion_bytes = FUSION_BYTES;
    options.cycle_time = CYCLE_TIME;
    OK(tutti_comm_session_start(group, &options, &session));
    CHECK(tutti_comm_barrier(group, 1) == TUTTI_COMM_INVALID_ARGUMENT);
    if (victim >= 0) lose(session, victim);
    use_session(session);
    child = fork();
    if (child == 0) {
      tutti_comm_placement placement;
      _exit(tutti_comm_session_placement(session, &placement, sizeof(placement)) ==
                    TUTTI_COMM_FAILED_PRECONDITION
                ? 0
                : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    /* No rank shuts down before all are done: that would end the others' session. */
    OK(tutti_comm_operation_wait(submit(session, TUTTI_COMM_BARRIER, NULL, NULL), 30));
    if (round == 0) {
      OK(tutti_comm_session_end(session, &group));
      OK(tutti_comm_barrier(group, 30));
      CHECK(tutti_comm_session_start(group, NULL, &session) == TUTTI_COMM_FAILED_PRECONDITION);
      OK(tutti_comm_group_leave(group));
      continue;
    }
    OK(tutti_comm_session_shutdown(session));
    CHECK(tutti_comm_session_shutdown(session) == TUTTI_COMM_INVALID_ARGUMENT);
  }
  printf("rank %d ok\n", rank);
  exit(0);
}

int main(int argc, char** argv) {
  const int victim = argc > 2 ? atoi(argv[2]) : -1;
  int ports[2], failed = 0, status, i;
  pid_t pids[MOST];
  size = argc > 1 ? atoi(argv[1]) : 1;
  if (size < 1 || size > MOST || tutti_comm_version() != TUTTI_COMM_ABI_VERSION) return 2;
  ports[0] = free_port();
  ports[1] = free_port();
  for (rank = 0; rank < size; ++rank) {
    pids[rank] = fork();
    if (pids[rank] == 0) {
      alarm(60);
      live(ports, victim);
    }
  }
  for (i = 0; i < size; ++i) {
    waitpid(pids[i], &status, 0);
    if (status != 0 && i != victim) failed = 1;
  }
  return failed;
}

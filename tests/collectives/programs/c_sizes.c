/* Callers whose header is older or newer than the library: their structs are shorter or longer than
 * the library's. Nothing outside them may be written, and no field that they lack be read. Prints
 * "ok".
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tutti_comm.h"

enum { ROOM = 512, GUARD = 0x5a };

/* A caller's struct of some size; what lies behind it is another's. */
static union {
  double alignment;
  unsigned char bytes[ROOM];
  tutti_comm_group_options group;
  tutti_comm_session_options session;
  tutti_comm_request request;
  tutti_comm_placement placement;
  tutti_comm_output output;
} its;

static void fresh(void) { memset(&its, GUARD, sizeof(its)); }

static int all(size_t begin, size_t end, unsigned char value) {
  for (; begin < end; ++begin) {
    if (its.bytes[begin] != value) return 0;
  }
  return 1;
}

typedef void (*init_function)(void* options, size_t size);

/* An _init function: of every size it fills all of the caller's struct and no byte more. */
static void fills(init_function init, size_t known) {
  size_t size, said;
  for (size = sizeof(size_t); size <= known + 64; ++size) {
    fresh();
    init(&its, size);
    memcpy(&said, &its, sizeof(said));
    CHECK(said == size);
    CHECK(all(size, ROOM, GUARD));
    if (size > known) CHECK(all(known, size, 0));
  }
  fresh();
  init(&its, 0); /* not even room for struct_size */
  CHECK(all(0, ROOM, GUARD));
}

static void init_group(void* o, size_t size) { tutti_comm_group_options_init(o, size); }
static void init_session(void* o, size_t size) { tutti_comm_session_options_init(o, size); }
static void init_request(void* o, size_t size) { tutti_comm_request_init(o, size); }
static void init_from_environment(void* o, size_t size) {
  tutti_comm_group_options_init(o, size);
  if (size < sizeof(size_t)) return;
  OK(tutti_comm_group_options_from_environment(o));
}

/* Where the caller's struct ends in the middle, what follows would be an absurd group file. */
static tutti_comm_group joins_with_any_size(void) {
  tutti_comm_group group = 0;
  fresh();
  tutti_comm_group_options_init(&its.group, offsetof(tutti_comm_group_options, elastic));
  OK(tutti_comm_group_join(&its.group, &group));
  OK(tutti_comm_group_leave(group));
  fresh();
  tutti_comm_group_options_init(&its.group, sizeof(its.group) + 24);
  its.bytes[sizeof(its.group) + 8] = 1; /* a field of tomorrow */
  CHECK(tutti_comm_group_join(&its.group, &group) == TUTTI_COMM_UNIMPLEMENTED);
  CHECK(strstr(tutti_comm_last_error(), "older than the header") != NULL);
  CHECK(tutti_comm_group_options_from_environment(&its.group) == TUTTI_COMM_UNIMPLEMENTED);
  its.bytes[sizeof(its.group) + 8] = 0;
  OK(tutti_comm_group_join(&its.group, &group));
  return group;
}

static tutti_comm_session starts_with_any_size(tutti_comm_group group) {
  tutti_comm_session session = 0;
  const size_t known = sizeof(its.session);
  fresh();
  tutti_comm_session_options_init(&its.session, known + 8);
  its.bytes[known] = 1;
  CHECK(tutti_comm_session_start(group, &its.session, &session) == TUTTI_COMM_UNIMPLEMENTED);
  fresh(); /* on_stall is not the caller's: it would be called at a wild address */
  tutti_comm_session_options_init(&its.session, offsetof(tutti_comm_session_options, on_stall));
  its.session.fusion_bytes = 4242;
  OK(tutti_comm_session_start(group, &its.session, &session));
  return session;
}

static void fills_placements(tutti_comm_group group, tutti_comm_session session) {
  const size_t known = sizeof(its.placement);
  size_t size;
  for (size = 8; size <= known + 16; size += 4) {
    fresh();
    if (group != 0) OK(tutti_comm_group_placement(group, &its.placement, size));
    if (session != 0) OK(tutti_comm_session_placement(session, &its.placement, size));
    CHECK(its.placement.rank == 0 && its.placement.size == 1 && all(size, ROOM, GUARD));
    if (size > known) CHECK(all(known, size, 0));
  }
}

/* The tensors of a newer header lie further apart. */
static void takes_longer_tensors(tutti_comm_session session) {
  struct {
    tutti_comm_tensor known;
    double tomorrow;
  } tensors[2];
  const int64_t shapes[2] = {3, 5};
  float data[2][5] = {{1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}};
  tutti_comm_operation operation;
  tutti_comm_request request;
  size_t size;
  int i;
  memset(tensors, 0, sizeof(tensors));
  for (i = 0; i < 2; ++i) {
    tensors[i].known.input = data[i];
    tensors[i].known.shape = &shapes[i];
    tensors[i].known.dimensions = 1;
    tensors[i].known.type = TUTTI_COMM_FLOAT32;
  }
  tutti_comm_request_init(&request, sizeof(request));
  request.kind = TUTTI_COMM_ALL_GATHER;
  request.tensors = &tensors[0].known;
  request.tensor_count = 2;
  CHECK(tutti_comm_submit(session, &request, &operation) == TUTTI_COMM_INVALID_ARGUMENT);
  CHECK(strstr(tutti_comm_last_error(), "tensor_size") != NULL);
  request.tensor_size = sizeof(tensors[0]);
  tensors[1].tomorrow = 1;
  CHECK(tutti_comm_submit(session, &request, &operation) == TUTTI_COMM_UNIMPLEMENTED);
  tensors[1].tomorrow = 0;
  OK(tutti_comm_submit(session, &request, &operation));
  OK(tutti_comm_operation_wait(operation, 30));
  for (size = 2 * sizeof(size_t); size <= sizeof(its.output) + 16; size += 8) {
    fresh();
    OK(tutti_comm_operation_output(operation, 1, &its.output, size));
    CHECK(its.output.bytes == 5 * sizeof(float) && ((float*)its.output.data)[4] == 2);
    CHECK(all(size, ROOM, GUARD));
    if (size > sizeof(its.output)) CHECK(all(sizeof(its.output), size, 0));
  }
  CHECK(tutti_comm_operation_output(operation, 1, &its.output, 0) == TUTTI_COMM_INVALID_ARGUMENT);
  OK(tutti_comm_operation_release(operation));
}

static void submits_with_any_size(tutti_comm_session session) {
  tutti_comm_operation operation;
  fresh(); /* allocate and done are not the caller's */
  tutti_comm_request_init(&its.request, offsetof(tutti_comm_request, allocate));
  its.request.kind = TUTTI_COMM_BARRIER;
  OK(tutti_comm_submit(session, &its.request, &operation));
  OK(tutti_comm_operation_wait(operation, 30));
  OK(tutti_comm_operation_release(operation));
  fresh();
  tutti_comm_request_init(&its.request, sizeof(its.request) + 8);
  its.request.kind = TUTTI_COMM_BARRIER;
  its.bytes[sizeof(its.request)] = 1;
  CHECK(tutti_comm_submit(session, &its.request, &operation) == TUTTI_COMM_UNIMPLEMENTED);
  its.bytes[sizeof(its.request)] = 0;
  OK(tutti_comm_submit(session, &its.request, &operation));
  OK(tutti_comm_operation_release(operation));
}

int main(void) {
  tutti_comm_group group;
  tutti_comm_session session;
  uint64_t fusion_bytes = 0;
  fills(&init_group, sizeof(tutti_comm_group_options));
  fills(&init_from_environment, sizeof(tutti_comm_group_options));
  fills(&init_session, sizeof(tutti_comm_session_options));
  fills(&init_request, sizeof(tutti_comm_request));
  group = joins_with_any_size();
  fills_placements(group, 0);
  session = starts_with_any_size(group);
  OK(tutti_comm_session_tuning(session, &fusion_bytes, NULL));
  CHECK(fusion_bytes == 4242);
  fills_placements(0, session);
  takes_longer_tensors(session);
  submits_with_any_size(session);
  OK(tutti_comm_session_shutdown(session));
  puts("ok");
  return 0;
}

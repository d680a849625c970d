/* tutti_comm.h: tutti's collectives for any language. Link with -ltutti_comm.
 *
 * A GROUP is the plain layer: blocking collectives, called by all ranks in the same order. A
 * SESSION stands on a group: named tensors, submitted from any thread in any order, of which the
 * ranks agree on one; an OPERATION is the handle of what was submitted. docs/c-api.md has a
 * complete example.
 *
 * Handles are numbers, never 0 and never used twice: a handle that is closed, of another kind or
 * made up is TUTTI_COMM_INVALID_ARGUMENT, not a crash. They belong to the process that made them;
 * a forked child gets TUTTI_COMM_FAILED_PRECONDITION and may begin anew with handles of its own.
 *
 * Status: every function that can fail returns a tutti_comm_status, TUTTI_COMM_OK = 0. The text and
 * the lost rank of the last call that failed on the calling thread: tutti_comm_last_error(). Null
 * pointers where memory is needed are TUTTI_COMM_INVALID_ARGUMENT. No C++ exception comes out.
 *
 * Threads: every function is thread-safe, except that a group is called by one thread at a time
 * (another gets TUTTI_COMM_FAILED_PRECONDITION at once). Callbacks come from the library's threads;
 * only `done` may also come from the caller's, within tutti_comm_submit (the operation is over
 * already; its handle is written before). What ends a session returns when its callbacks have: hold
 * no lock there that they take. They must not wait for an operation, shut a session down or close
 * the handle they are about. One that takes long loses no rank: on_stall keeps only other callbacks
 * waiting, `done` and `allocate` also what is to run next.
 *
 * Memory is the caller's, unless a function says otherwise. Texts are UTF-8, end with 0, and are
 * copied; those that are returned live as long as the function says.
 *
 * Time limits are seconds; negative: as long as it takes.
 *
 * Compatibility: fields are only ever appended to structs, and the library goes by the size that
 * the caller's header has: option and request structs keep it in struct_size, which their _init
 * function is told (sizeof(*options)); structs that are written to are followed by their size; an
 * array of structs by that of one. A library that is newer takes fields that the caller does not
 * know as their defaults and never writes past the caller's struct. One that is older refuses
 * fields it does not know with TUTTI_COMM_UNIMPLEMENTED, unless they are zero, and gives zero for
 * them. Numbers of enums never change. TUTTI_COMM_ABI_VERSION changes if that must be broken.
 */
#ifndef TUTTI_COMM_H_
#define TUTTI_COMM_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUTTI_COMM_ABI_VERSION 1

/* The library's TUTTI_COMM_ABI_VERSION: compare it with the header's. */
uint32_t tutti_comm_version(void);
/* Whether the library can do this here: "shm", "tcp", "tls", "ucx", "nccl", "cuda" (both of which a
 * session on GPUs needs). Else, and for what it
 * does not know: 0. */
int tutti_comm_built_with(const char* what);

/* --- Status ----------------------------------------------------------------------------------- */

typedef int32_t tutti_comm_status;
enum {
  TUTTI_COMM_OK = 0,
  TUTTI_COMM_CANCELLED = 1, /* a rank has shut down */
  TUTTI_COMM_UNKNOWN = 2,
  TUTTI_COMM_INVALID_ARGUMENT = 3, /* the call makes no sense; or the ranks' requests differ */
  TUTTI_COMM_DEADLINE_EXCEEDED = 4,
  TUTTI_COMM_NOT_FOUND = 5,         /* no such process set */
  TUTTI_COMM_ALREADY_EXISTS = 6,    /* that name is outstanding; that process set is there */
  TUTTI_COMM_PERMISSION_DENIED = 7, /* the token is wrong */
  TUTTI_COMM_RESOURCE_EXHAUSTED = 8,
  TUTTI_COMM_FAILED_PRECONDITION = 9,
  TUTTI_COMM_ABORTED = 10,
  TUTTI_COMM_OUT_OF_RANGE = 11,
  TUTTI_COMM_UNIMPLEMENTED = 12,
  TUTTI_COMM_INTERNAL = 13,
  TUTTI_COMM_UNAVAILABLE = 14 /* a rank is lost */
};

/* Describe the last call that failed on this thread: its message ("" if none failed), and the rank
 * that the error is about (the one that was lost), by its number in the group or session that
 * failed; -1: none. The text is valid until the next call that fails on this thread. */
const char* tutti_comm_last_error(void);
int32_t tutti_comm_last_lost_rank(void);
/* "UNAVAILABLE". Never null; a constant. */
const char* tutti_comm_status_name(tutti_comm_status status);

/* --- Data ------------------------------------------------------------------------------------- */

typedef int32_t tutti_comm_type;
enum {
  TUTTI_COMM_FLOAT64 = 0,
  TUTTI_COMM_FLOAT32 = 1,
  TUTTI_COMM_FLOAT16 = 2,
  TUTTI_COMM_BFLOAT16 = 3,
  TUTTI_COMM_INT64 = 4,
  TUTTI_COMM_INT32 = 5,
  TUTTI_COMM_INT16 = 6,
  TUTTI_COMM_INT8 = 7,
  TUTTI_COMM_UINT8 = 8,
  TUTTI_COMM_BOOL = 9 /* one byte */
};
/* In bytes; 0 for no type. */
size_t tutti_comm_size_of(tutti_comm_type type);

/* Integers wrap around; their mean is the sum divided toward zero. Of bools sum and maximum are
 * "or", product and minimum are "and". Adasum is of floating point. */
typedef int32_t tutti_comm_op;
enum {
  TUTTI_COMM_SUM = 0,
  TUTTI_COMM_MEAN = 1,
  TUTTI_COMM_MIN = 2,
  TUTTI_COMM_MAX = 3,
  TUTTI_COMM_PRODUCT = 4,
  TUTTI_COMM_ADASUM = 5
};

/* Where a rank stands among the nodes. */
typedef struct {
  int32_t rank;
  int32_t size;
  int32_t local_rank; /* among the ranks of its node */
  int32_t local_size;
  int32_t cross_rank;  /* its node's number among the nodes */
  int32_t cross_size;  /* how many nodes there are */
  int32_t homogeneous; /* every node has as many ranks */
} tutti_comm_placement;

/* --- Groups ----------------------------------------------------------------------------------- */

typedef uint64_t tutti_comm_group;

enum {
  TUTTI_COMM_TRANSPORT_AUTO = 0, /* shared memory within a node, TCP between nodes */
  TUTTI_COMM_TRANSPORT_TCP = 1,
  TUTTI_COMM_TRANSPORT_SHM = 2,
  TUTTI_COMM_TRANSPORT_UCX = 3
};

typedef struct {
  size_t struct_size;
  int32_t rank;
  int32_t size;
  int32_t node;               /* ranks of one node share memory */
  int32_t master_port;        /* where rank 0 listens for the others */
  const char* master_address; /* null: "127.0.0.1" */
  const char* address;        /* this node's own; null: the one from which the master is reached */
  const char* token;          /* the job's secret, the same on all ranks; null: "" */
  double connect_timeout;     /* for all ranks to come */
  double peer_timeout;        /* a rank that is silent for so long is lost */
  int32_t transport;
  int32_t tcp_streams;    /* between two ranks; 0: measured */
  int32_t encrypt;        /* TLS between nodes */
  int32_t deterministic;  /* equal inputs give equal bits at every run */
  int32_t check_calls;    /* compare what ranks call, before every collective */
  int32_t elastic;        /* the group can re-form */
  const char* group_file; /* where newcomers find it (elastic); null: none */
  const char* members;    /* or at one of these "address:port", with commas between; null: none */
} tutti_comm_group_options;

/* The defaults: a group of one. `size` is sizeof(*options), here as in the other functions. */
void tutti_comm_group_options_init(tutti_comm_group_options* options, size_t size);
/* After _init: what RANK, WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT, TUTTI_NODE_ADDRESS,
 * TUTTI_JOB_TOKEN, TUTTI_TRANSPORT, TUTTI_COMM_*, TUTTI_ELASTIC, TUTTI_GROUP_FILE and
 * TUTTI_GROUP_MEMBERS say. Texts are valid until the next call of this function on the thread. */
tutti_comm_status tutti_comm_group_options_from_environment(tutti_comm_group_options* options);

/* Meets the other ranks; blocks. `options` null: from the environment. *group is closed with
 * tutti_comm_group_leave. */
tutti_comm_status tutti_comm_group_join(const tutti_comm_group_options* options,
                                        tutti_comm_group* group);
/* Leaves and closes the handle, also after an error. Then tutti_comm_group_join may form the next.
 */
tutti_comm_status tutti_comm_group_leave(tutti_comm_group group);

tutti_comm_status tutti_comm_group_placement(tutti_comm_group group,
                                             tutti_comm_placement* placement, size_t size);

/* Collectives: all ranks call them in the same order, with the same arguments where not said
 * otherwise. An error about a lost rank ends the group: later calls fail at once. */

/* In place. */
tutti_comm_status tutti_comm_all_reduce(tutti_comm_group group, void* data, size_t count,
                                        tutti_comm_type type, tutti_comm_op op, double timeout);

/* The sum or mean of fp32 in fewer bits between nodes, in place: half of the bytes in 16 bits,
 * about a quarter in int8, of which every 256 values share a scale. All ranks end with the same
 * bits. What rounding loses is kept in `feedback` and added at the next call (0: lost); one for
 * each buffer that is reduced again and again. */
typedef int32_t tutti_comm_encoding;
enum {
  TUTTI_COMM_ENCODING_FLOAT16 = 0,
  TUTTI_COMM_ENCODING_BFLOAT16 = 1,
  TUTTI_COMM_ENCODING_INT8 = 2
};
typedef uint64_t tutti_comm_feedback;
tutti_comm_status tutti_comm_feedback_open(tutti_comm_feedback* feedback);
tutti_comm_status tutti_comm_feedback_close(tutti_comm_feedback feedback);
tutti_comm_status tutti_comm_all_reduce_encoded(tutti_comm_group group, float* data, size_t count,
                                                tutti_comm_op op, tutti_comm_encoding encoding,
                                                tutti_comm_feedback feedback, double timeout);
/* counts[r] elements are rank r's (one count a rank); `output` gets this rank's. */
tutti_comm_status tutti_comm_reduce_scatter(tutti_comm_group group, const void* input,
                                            const size_t* counts, void* output,
                                            tutti_comm_type type, tutti_comm_op op, double timeout);
tutti_comm_status tutti_comm_broadcast(tutti_comm_group group, void* data, size_t bytes,
                                       int32_t root, double timeout);
/* `bytes` of every rank into size * bytes. */
tutti_comm_status tutti_comm_all_gather(tutti_comm_group group, const void* input, size_t bytes,
                                        void* output, double timeout);
/* bytes[r] of rank r, which all know. */
tutti_comm_status tutti_comm_all_gatherv(tutti_comm_group group, const void* input,
                                         const size_t* bytes, void* output, double timeout);
/* send_bytes[r] to and receive_bytes[r] from rank r. */
tutti_comm_status tutti_comm_all_to_allv(tutti_comm_group group, const void* input,
                                         const size_t* send_bytes, void* output,
                                         const size_t* receive_bytes, double timeout);
tutti_comm_status tutti_comm_barrier(tutti_comm_group group, double timeout);
/* Between two ranks alone, in order. */
tutti_comm_status tutti_comm_send(tutti_comm_group group, const void* data, size_t bytes,
                                  int32_t to, double timeout);
tutti_comm_status tutti_comm_receive(tutti_comm_group group, void* data, size_t bytes, int32_t from,
                                     double timeout);

/* The group of `count` ranks of this one, called by exactly them at the same place among their
 * calls; a group of its own, which another thread may call, and which is left by itself. */
tutti_comm_status tutti_comm_subgroup(tutti_comm_group group, const int32_t* ranks, size_t count,
                                      double timeout, tutti_comm_group* subgroup);

/* Elastic groups. After an error, or to let newcomers in: the survivors (and who came by
 * tutti_comm_group_join_running) become *next, at least `least` and at most `most` (0: any), after
 * waiting at most `patience` for newcomers. `group` is closed if that succeeds. */
tutti_comm_status tutti_comm_group_reform(tutti_comm_group group, int32_t least, int32_t most,
                                          double gather, double patience, tutti_comm_group* next);
/* How many newcomers wait. */
tutti_comm_status tutti_comm_group_waiting(tutti_comm_group group, int32_t* newcomers);
tutti_comm_status tutti_comm_group_join_running(const tutti_comm_group_options* options,
                                                double timeout, tutti_comm_group* group);

/* On GPUs, by NCCL, for CUDA memory: collectives of the group, which bring NCCL up at the first
 * (TUTTI_COMM_FAILED_PRECONDITION on all ranks if it is not there on one). They put work on
 * `stream`, a cudaStream_t, and return when NCCL has taken it. The device that is current at the
 * first call has to be at all. Not of int16; no Adasum. An error ends NCCL's part of the group. */
tutti_comm_status tutti_comm_device_all_reduce(tutti_comm_group group, const void* input,
                                               void* output, size_t count, tutti_comm_type type,
                                               tutti_comm_op op, void* stream, double timeout);
/* size * count elements into this rank's `count`. */
tutti_comm_status tutti_comm_device_reduce_scatter(tutti_comm_group group, const void* input,
                                                   void* output, size_t count, tutti_comm_type type,
                                                   tutti_comm_op op, void* stream, double timeout);
tutti_comm_status tutti_comm_device_broadcast(tutti_comm_group group, void* data, size_t bytes,
                                              int32_t root, void* stream, double timeout);
tutti_comm_status tutti_comm_device_all_gather(tutti_comm_group group, const void* input,
                                               size_t bytes, void* output, void* stream,
                                               double timeout);
tutti_comm_status tutti_comm_device_send(tutti_comm_group group, const void* data, size_t bytes,
                                         int32_t to, void* stream, double timeout);
tutti_comm_status tutti_comm_device_receive(tutti_comm_group group, void* data, size_t bytes,
                                            int32_t from, void* stream, double timeout);
/* Until done(context), called again and again on this thread, is not 0 (a cudaEventQuery is no
 * longer cudaErrorNotReady). To be preferred to cudaStreamSynchronize, which a lost rank leaves
 * waiting for ever: this ends NCCL's work then and names the rank. */
typedef int32_t (*tutti_comm_query_callback)(void* context);
tutti_comm_status tutti_comm_device_await(tutti_comm_group group, tutti_comm_query_callback done,
                                          void* context, double timeout);

/* Memory that the other ranks of the node reach, so that collectives on it copy less. Zero at
 * first. Valid until it is freed, also when the group is gone. */
typedef uint64_t tutti_comm_buffer;
tutti_comm_status tutti_comm_buffer_allocate(tutti_comm_group group, size_t bytes,
                                             tutti_comm_buffer* buffer, void** data);
tutti_comm_status tutti_comm_buffer_free(tutti_comm_buffer buffer);

/* --- Sessions --------------------------------------------------------------------------------- */

typedef uint64_t tutti_comm_session;
typedef uint64_t tutti_comm_operation;

/* A tensor that keeps others waiting, as a line of text; valid during the call. */
typedef void (*tutti_comm_stall_callback)(void* context, const char* text);

typedef struct {
  size_t struct_size;
  uint64_t fusion_bytes; /* how much small tensors are packed together at most; 0: none */
  double cycle_time;     /* how long a tensor waits for others to be packed with, at most, while the
                            link is busy */
  uint32_t cache_capacity;   /* requests that need not be said in full again */
  int32_t autotune;          /* find fusion_bytes and cycle_time by measuring (rank 0's counts) */
  const char* autotune_log;  /* a CSV file, written by rank 0; null: none */
  double stall_warning;      /* a tensor that some ranks lack for so long is reported; 0: never */
  double stall_shutdown;     /* ... ends the session; 0: never */
  double collective_timeout; /* for one, when all ranks have what it needs */
  int32_t log_stalls;        /* on rank 0, to standard error */
  int32_t reserved;
  tutti_comm_stall_callback on_stall; /* on every rank; may be null */
  void* on_stall_context;
} tutti_comm_session_options;

void tutti_comm_session_options_init(tutti_comm_session_options* options, size_t size);

/* All ranks of the group start one. The session takes the group over: its handle is closed.
 * `options` null: the defaults. */
tutti_comm_status tutti_comm_session_start(tutti_comm_group group,
                                           const tutti_comm_session_options* options,
                                           tutti_comm_session* session);
/* Cancels what the ranks have not agreed on, finishes the rest, leaves the group and closes the
 * handle. Other ranks' operations that need this rank fail; rank 0 shutting down ends all of them.
 */
tutti_comm_status tutti_comm_session_shutdown(tutti_comm_session session);
/* The same, but gives the group back instead of leaving it: for plain collectives, or for
 * tutti_comm_group_reform after a loss. No other session may start on it (but on what it re-forms
 * to). */
tutti_comm_status tutti_comm_session_end(tutti_comm_session session, tutti_comm_group* group);

tutti_comm_status tutti_comm_session_placement(tutti_comm_session session,
                                               tutti_comm_placement* placement, size_t size);
/* How many newcomers wait to join an elastic group; other ranks than 0 hear of it a little later,
 * so let rank 0's number count. Not beside a call that ends the session. */
tutti_comm_status tutti_comm_session_waiting(tutti_comm_session session, int32_t* newcomers);

typedef int32_t tutti_comm_kind;
enum {
  TUTTI_COMM_ALL_REDUCE = 0,
  TUTTI_COMM_ALL_GATHER = 1, /* first dimensions may differ between ranks */
  TUTTI_COMM_BROADCAST = 2,
  TUTTI_COMM_ALL_TO_ALL = 3,     /* of one tensor */
  TUTTI_COMM_REDUCE_SCATTER = 4, /* rows are dealt out evenly, the rest to the first ranks */
  TUTTI_COMM_BARRIER = 5,
  TUTTI_COMM_JOIN = 6 /* this rank has no more data: until all have joined, all-reduces go on
                         without it. The operation's value is the rank that joined last */
};

typedef struct {
  const void* input; /* not changed, if it is not the output */
  void* output;      /* where known beforehand, may be the input; null: see allocate */
  const int64_t* shape;
  int32_t dimensions;
  tutti_comm_type type;
} tutti_comm_tensor;

/* Gives the memory of output `index`, `bytes` long; null: there is none (the operation fails). */
typedef void* (*tutti_comm_allocate_callback)(void* context, size_t index, const int64_t* shape,
                                              int32_t dimensions, size_t bytes);
/* The operation is done: what it needs to be read may be read. Once for every operation, perhaps
 * before tutti_comm_submit returns (see Threads). */
typedef void (*tutti_comm_done_callback)(void* context, tutti_comm_operation operation);

typedef struct {
  size_t struct_size;
  tutti_comm_kind kind;
  int32_t process_set; /* 0: all ranks */
  const char* name;    /* the same on all ranks; null: numbered by the order of unnamed calls */
  tutti_comm_op op;    /* all-reduce, reduce-scatter */
  int32_t root;        /* broadcast: a rank of the session (also in a process set) */
  double prescale;     /* every element times this before ... */
  double postscale;    /* ... and after a reduction */
  const tutti_comm_tensor* tensors; /* several: a group, run all or none */
  size_t tensor_count;
  size_t tensor_size;    /* sizeof(tutti_comm_tensor), where there are tensors */
  const int64_t* splits; /* all-to-all: rows to every rank of the set; null: as many to each */
  size_t split_count;
  tutti_comm_allocate_callback allocate; /* null: such outputs belong to the operation */
  tutti_comm_done_callback done;         /* null: none */
  void* context;                         /* of both */
  /* All-reduce: 0, or 1 + a tutti_comm_encoding, in which the sum or mean of one tensor of fp32
   * goes between nodes. What rounding loses is kept in `feedback` (0: lost), which is of one
   * outstanding operation at a time. */
  tutti_comm_feedback feedback;
  int32_t encoded;
  /* 0: the tensors are in the host's memory. Else 1 + the number of the CUDA device in whose memory
   * they are, which is one for all of a rank's requests: all-reduces (not of int16, not encoded, no
   * Adasum) and broadcasts, on all ranks in such memory; of a join, the device on which this rank
   * takes part until all have joined. NCCL runs them on a stream of the library's. Factors are only
   * compared: the caller multiplies. */
  int32_t device;
  void* ready; /* with a device: a cudaEvent_t after which the inputs are there, which lives until
                  the operation is done; null: they are there */
} tutti_comm_request;

/* Zero but for factors of 1. */
void tutti_comm_request_init(tutti_comm_request* request, size_t size);

/* Returns at once. Inputs and outputs are the library's until the operation is done; the struct,
 * names, shapes and splits only during the call. Errors mean that nothing was submitted (`done` is
 * not called): TUTTI_COMM_ALREADY_EXISTS while that name is outstanding. The handle is to be
 * released. */
tutti_comm_status tutti_comm_submit(tutti_comm_session session, const tutti_comm_request* request,
                                    tutti_comm_operation* operation);

/* *done: 0 or 1. OK also for an operation that failed. */
tutti_comm_status tutti_comm_operation_poll(tutti_comm_operation operation, int32_t* done);
/* The operation's own status; TUTTI_COMM_DEADLINE_EXCEEDED (and it goes on) if it is not done by
 * then: poll tells them apart. */
tutti_comm_status tutti_comm_operation_wait(tutti_comm_operation operation, double timeout);
/* Waits, for an operation on a CUDA device, until its work is in its place on the GPU: what is put
 * on `stream` (a cudaStream_t) afterwards runs when the operation is done, so the host does not
 * wait for the GPU. An error that comes later is returned by tutti_comm_operation_wait and by what
 * is submitted later: ask before you keep what was computed. For any other operation this is
 * tutti_comm_operation_wait. */
tutti_comm_status tutti_comm_operation_wait_on_stream(tutti_comm_operation operation, void* stream,
                                                      double timeout);
/* Closes the handle. One that is not done goes on with the memory it was given; outputs that
 * belong to the operation are freed. */
tutti_comm_status tutti_comm_operation_release(tutti_comm_operation operation);

typedef struct {
  void* data;
  size_t bytes;
  const int64_t* shape;
  int32_t dimensions;
  int32_t reserved;
} tutti_comm_output;
/* These of an operation that is done and OK (else TUTTI_COMM_FAILED_PRECONDITION); pointers are
 * valid until it is released. */
tutti_comm_status tutti_comm_operation_output(tutti_comm_operation operation, size_t index,
                                              tutti_comm_output* output, size_t size);
/* Rows that came from every rank of the set: of an all-to-all; of an all-gather, tensor after
 * tensor. */
tutti_comm_status tutti_comm_operation_received(tutti_comm_operation operation,
                                                const int64_t** rows, size_t* count);
/* Join: who joined last. */
tutti_comm_status tutti_comm_operation_value(tutti_comm_operation operation, int64_t* value);

/* Process sets: called by all ranks of the session, in the same order; blocks. `ranks` in any
 * order. TUTTI_COMM_ALREADY_EXISTS: *process_set is the one that has these ranks. */
tutti_comm_status tutti_comm_process_set_add(tutti_comm_session session, const int32_t* ranks,
                                             size_t count, double timeout, int32_t* process_set);
tutti_comm_status tutti_comm_process_set_remove(tutti_comm_session session, int32_t process_set,
                                                double timeout);
/* How many there are is *count; at most `capacity` are written. */
tutti_comm_status tutti_comm_process_sets(tutti_comm_session session, int32_t* process_sets,
                                          size_t capacity, size_t* count);
tutti_comm_status tutti_comm_process_set_ranks(tutti_comm_session session, int32_t process_set,
                                               int32_t* ranks, size_t capacity, size_t* count);

/* Records what happens to every tensor as a Chrome trace, from now on, anew in `path`.
 * `mark_cycles`: with a tick for every message of rank 0. */
tutti_comm_status tutti_comm_timeline_start(tutti_comm_session session, const char* path,
                                            int32_t mark_cycles);
/* The file is complete when it returns. OK if none was recorded. */
tutti_comm_status tutti_comm_timeline_stop(tutti_comm_session session);

/* What is used now; with autotuning, on rank 0. Either may be null. */
tutti_comm_status tutti_comm_session_tuning(tutti_comm_session session, uint64_t* fusion_bytes,
                                            double* cycle_time);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_COMM_H_ */

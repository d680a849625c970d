// Declares the parts of NCCL's C interface that are used, written from its documentation: the
// library is loaded when the program runs, so neither its headers nor CUDA's are needed to build.
// Held against nccl.h by nccl_abi_test.cc where there is one. Values and layouts have not changed
// since version 2.14.
#pragma once

#include <cstddef>

namespace tutti::comm::nccl {

struct CommTag;
using Comm = CommTag*;
using CudaStream = void*;  // a cudaStream_t

enum Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum Type : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};

enum Op : int { kSum = 0, kProduct = 1, kMax = 2, kMin = 3, kAverage = 4 };

struct UniqueId {
  char internal[128];
};

// The settings of version 2.14, which later versions read by their `size` and `version`.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;  // calls return at once, kInProgress, so that none can hang
};

// The functions, by the names that they have in the library after "nccl".
struct Functions {
  Result (*GetVersion)(int* version);
  Result (*GetUniqueId)(UniqueId* id);
  Result (*CommInitRankConfig)(Comm* comm, int size, UniqueId id, int rank, Config* config);
  Result (*CommAbort)(Comm comm);
  Result (*CommDestroy)(Comm comm);
  Result (*CommFinalize)(Comm comm);
  Result (*CommGetAsyncError)(Comm comm, Result* error);
  const char* (*GetErrorString)(Result result);
  const char* (*GetLastError)(Comm comm);  // of any of the process; "" if there was none
  Result (*AllReduce)(const void* input, void* output, size_t count, Type type, Op op, Comm comm,
                      CudaStream stream);
  Result (*Broadcast)(const void* input, void* output, size_t count, Type type, int root, Comm comm,
                      CudaStream stream);
  Result (*AllGather)(const void* input, void* output, size_t count, Type type, Comm comm,
                      CudaStream stream);
  Result (*ReduceScatter)(const void* input, void* output, size_t count, Type type, Op op,
                          Comm comm, CudaStream stream);
  Result (*Send)(const void* data, size_t count, Type type, int peer, Comm comm, CudaStream stream);
  Result (*Recv)(void* data, size_t count, Type type, int peer, Comm comm, CudaStream stream);
  Result (*GroupStart)();  // this thread's calls until GroupEnd are one
  Result (*GroupEnd)();
};

}  // namespace tutti::comm::nccl

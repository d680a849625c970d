// A library with NCCL's C interface over plain memory, for tests without a GPU: ranks are threads
// of one process. fake_nccl_set makes it fail in the ways in which the real one does. (Its name
// keeps it out of the room's library: CMakeLists.txt builds it as a library of its own.)
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/comm/collective/nccl/nccl_abi.h"

namespace nccl = tutti::comm::nccl;

namespace {

enum Mode { kWorks, kHangs, kRemoteErrorLater, kConnectHangs, kRefuses };

struct Shared {
  int size = 0;
  int arrived = 0;
  uint64_t round = 0;
  std::vector<std::vector<char>> parts[2];  // this round, and the one before, which some still read
  std::condition_variable all_here;
};

std::mutex mutex;
std::map<std::string, std::shared_ptr<Shared>> groups;
int mode = kWorks, ids = 0, aborts = 0, destroyed = 0, last_type = -1, last_op = -1;

template <typename T>
void Combine(std::vector<char>& into, const std::vector<char>& part, nccl::Op op) {
  T* const a = reinterpret_cast<T*>(into.data());
  const T* const b = reinterpret_cast<const T*>(part.data());
  for (size_t i = 0; i < into.size() / sizeof(T); ++i) {
    if (op == nccl::kMax) {
      a[i] = a[i] < b[i] ? b[i] : a[i];
    } else if (op == nccl::kMin) {
      a[i] = b[i] < a[i] ? b[i] : a[i];
    } else if (op == nccl::kProduct) {
      a[i] = static_cast<T>(a[i] * b[i]);
    } else {
      a[i] = static_cast<T>(a[i] + b[i]);
    }
  }
}

size_t SizeOf(nccl::Type type) {
  return type == nccl::kFloat32 || type == nccl::kInt32 ? 4 : type == nccl::kInt64 ? 8 : 1;
}

}  // namespace

struct tutti::comm::nccl::CommTag {
  std::shared_ptr<Shared> shared;
  int rank = 0;
  nccl::Result error = nccl::kSuccess;
};

namespace {

// Every rank's bytes, when all have called.
nccl::Result Gather(nccl::Comm comm, const void* data, size_t bytes,
                    std::vector<std::vector<char>>& parts) {
  std::unique_lock lock(mutex);
  if (mode == kRefuses) return nccl::kInvalidUsage;
  if (mode == kHangs || mode == kRemoteErrorLater) {
    comm->error = mode == kHangs ? nccl::kInProgress : nccl::kRemoteError;
    return nccl::kInProgress;
  }
  Shared& shared = *comm->shared;
  const uint64_t round = shared.round;
  std::vector<std::vector<char>>& these = shared.parts[round % 2];
  if (shared.arrived == 0) these.assign(shared.size, {});
  const char* const begin = static_cast<const char*>(data);
  these[comm->rank].assign(begin, begin + bytes);
  if (++shared.arrived == shared.size) {
    shared.arrived = 0;
    ++shared.round;
    shared.all_here.notify_all();
  }
  shared.all_here.wait(lock, [&] { return shared.round != round; });
  parts = these;
  return nccl::kSuccess;
}

nccl::Result Reduce(nccl::Comm comm, const void* input, size_t count, nccl::Type type, nccl::Op op,
                    std::vector<char>& result) {
  std::vector<std::vector<char>> parts;
  {
    const std::lock_guard lock(mutex);
    last_type = type;
    last_op = op;
  }
  const nccl::Result gathered = Gather(comm, input, count * SizeOf(type), parts);
  if (gathered != nccl::kSuccess) return gathered;
  result = parts[0];
  for (size_t rank = 1; rank < parts.size(); ++rank) {
    if (type == nccl::kFloat32) Combine<float>(result, parts[rank], op);
    if (type == nccl::kInt32) Combine<int32_t>(result, parts[rank], op);
    if (type == nccl::kUint8) Combine<uint8_t>(result, parts[rank], op);
  }
  float* const values = reinterpret_cast<float*>(result.data());
  for (size_t i = 0; op == nccl::kAverage && i < count; ++i) values[i] /= comm->shared->size;
  return nccl::kSuccess;
}

}  // namespace

extern "C" {

void fake_nccl_set(int new_mode) {
  const std::lock_guard lock(mutex);
  mode = new_mode;
}
int fake_nccl_aborts() { return aborts; }
int fake_nccl_destroyed() { return destroyed; }
int fake_nccl_last_type() { return last_type; }
int fake_nccl_last_op() { return last_op; }

nccl::Result ncclGetVersion(int* version) {
  *version = 22304;
  return nccl::kSuccess;
}
nccl::Result ncclGetUniqueId(nccl::UniqueId* id) {
  const std::lock_guard lock(mutex);
  const std::string text = "id " + std::to_string(++ids);
  std::memcpy(id->internal, text.c_str(), text.size() + 1);
  return nccl::kSuccess;
}
nccl::Result ncclCommInitRankConfig(nccl::Comm* comm, int size, nccl::UniqueId id, int rank,
                                    nccl::Config* config) {
  if (config->size != 24 || config->magic != 0xcafebeef || config->blocking != 0) {
    return nccl::kInvalidArgument;
  }
  const std::lock_guard lock(mutex);
  std::shared_ptr<Shared>& shared = groups[id.internal];
  if (shared == nullptr) shared = std::make_shared<Shared>();
  shared->size = size;
  *comm = new nccl::CommTag{shared, rank};
  if (mode == kConnectHangs) (*comm)->error = nccl::kInProgress;
  return nccl::kInProgress;
}
nccl::Result ncclCommAbort(nccl::Comm comm) {
  const std::lock_guard lock(mutex);
  ++aborts;
  delete comm;
  return nccl::kSuccess;
}
nccl::Result ncclCommFinalize(nccl::Comm) { return nccl::kSuccess; }
nccl::Result ncclCommDestroy(nccl::Comm comm) {
  const std::lock_guard lock(mutex);
  ++destroyed;
  delete comm;
  return nccl::kSuccess;
}
nccl::Result ncclCommGetAsyncError(nccl::Comm comm, nccl::Result* error) {
  const std::lock_guard lock(mutex);
  *error = comm->error;
  return nccl::kSuccess;
}
const char* ncclGetErrorString(nccl::Result result) {
  return result == nccl::kRemoteError ? "remote process exited or there was a network error"
                                      : "an error";
}
const char* ncclGetLastError(nccl::Comm) {
  const std::lock_guard lock(mutex);
  return mode == kRefuses ? "Duplicate GPU detected : rank 0 and rank 1\n" : "";
}
// What is called within a group is done at once: all ranks call in the same order here.
nccl::Result ncclGroupStart() { return nccl::kSuccess; }
nccl::Result ncclGroupEnd() { return nccl::kSuccess; }
nccl::Result ncclAllReduce(const void* input, void* output, size_t count, nccl::Type type,
                           nccl::Op op, nccl::Comm comm, nccl::CudaStream) {
  std::vector<char> result;
  const nccl::Result status = Reduce(comm, input, count, type, op, result);
  if (status == nccl::kSuccess) std::memcpy(output, result.data(), result.size());
  return status;
}
nccl::Result ncclReduceScatter(const void* input, void* output, size_t count, nccl::Type type,
                               nccl::Op op, nccl::Comm comm, nccl::CudaStream) {
  std::vector<char> result;
  const nccl::Result status = Reduce(comm, input, count * comm->shared->size, type, op, result);
  const size_t bytes = count * SizeOf(type);
  if (status == nccl::kSuccess) std::memcpy(output, result.data() + comm->rank * bytes, bytes);
  return status;
}
nccl::Result ncclBroadcast(const void* input, void* output, size_t count, nccl::Type, int root,
                           nccl::Comm comm, nccl::CudaStream) {
  std::vector<std::vector<char>> parts;
  const nccl::Result status = Gather(comm, input, count, parts);
  if (status == nccl::kSuccess) std::memcpy(output, parts[root].data(), count);
  return status;
}
nccl::Result ncclAllGather(const void* input, void* output, size_t count, nccl::Type,
                           nccl::Comm comm, nccl::CudaStream) {
  std::vector<std::vector<char>> parts;
  const nccl::Result status = Gather(comm, input, count, parts);
  char* out = static_cast<char*>(output);
  for (const std::vector<char>& part : parts) {
    std::memcpy(out, part.data(), count);
    out += count;
  }
  return status;
}
// All ranks take part in an exchange here, which is enough for groups of two.
nccl::Result ncclSend(const void* data, size_t count, nccl::Type, int, nccl::Comm comm,
                      nccl::CudaStream) {
  std::vector<std::vector<char>> parts;
  return Gather(comm, data, count, parts);
}
nccl::Result ncclRecv(void* data, size_t count, nccl::Type, int peer, nccl::Comm comm,
                      nccl::CudaStream) {
  std::vector<std::vector<char>> parts;
  const nccl::Result status = Gather(comm, nullptr, 0, parts);
  if (status == nccl::kSuccess) std::memcpy(data, parts[peer].data(), count);
  return status;
}

}  // extern "C"

// What every function of the C ABI does at its edge: no exception leaves, an error becomes a code
// and is kept with its text for the calling thread; and what the sources of the ABI share.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "base/status.h"
#include "runtime/comm/capi/handles.h"
#include "runtime/comm/capi/tutti_comm.h"
#include "runtime/comm/communicator.h"

namespace tutti::comm::capi {

// Keeps an error for this thread; the code. OK keeps nothing.
tutti_comm_status Keep(const absl::Status& status) noexcept;

template <typename Body>
tutti_comm_status Guard(const Body& body) noexcept {
  try {
    return Keep(body());
  } catch (const std::bad_alloc&) {
    return Keep(absl::ResourceExhaustedError("out of memory"));
  } catch (const std::exception& error) {
    return Keep(absl::InternalError(error.what()));
  } catch (...) {
    return Keep(absl::InternalError("an unknown exception"));
  }
}

absl::Status NotNull(const void* pointer, const char* what);
// Seconds; negative: as long as it takes (a century).
base::Deadline After(double seconds);
absl::Duration Seconds(double seconds);
absl::StatusOr<DataType> TypeOf(tutti_comm_type type);
absl::StatusOr<ReduceOp> OpOf(tutti_comm_op op);
tutti_comm_placement ToC(const Placement& placement, int rank, int size);

// A struct of the caller's, whose header may be older (shorter) or newer (longer) than this one.
template <typename Struct>
absl::StatusOr<Struct> Whole(const Struct* given, void (*init)(Struct*)) {
  TUTTI_RETURN_IF_ERROR(NotNull(given, "the struct"));
  if (given->struct_size < sizeof(size_t) || given->struct_size > 4096) {
    return absl::InvalidArgumentError("struct_size is not set: call the struct's _init function");
  }
  Struct whole;
  init(&whole);
  std::memcpy(&whole, given, std::min(sizeof(Struct), given->struct_size));
  return whole;
}

// A plain group. Called by one thread at a time.
struct GroupHandle {
  std::mutex busy;
  std::shared_ptr<Communicator> group;
  bool had_session = false;
};

// What a handle stands for, as its type.
template <typename T>
absl::StatusOr<std::shared_ptr<T>> Get(HandleKind kind, uint64_t handle) {
  TUTTI_ASSIGN_OR_RETURN(std::shared_ptr<void> object, Handles::Global().Get(kind, handle));
  return std::static_pointer_cast<T>(object);
}
template <typename T>
absl::StatusOr<std::shared_ptr<T>> Take(HandleKind kind, uint64_t handle) {
  TUTTI_ASSIGN_OR_RETURN(std::shared_ptr<void> object, Handles::Global().Take(kind, handle));
  return std::static_pointer_cast<T>(object);
}

// Runs `body` on a group that no other thread is calling.
template <typename Body>
tutti_comm_status OnGroup(tutti_comm_group handle, const Body& body) noexcept {
  return Guard([&]() -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const std::shared_ptr<GroupHandle> held,
                           Get<GroupHandle>(HandleKind::kGroup, handle));
    const std::unique_lock<std::mutex> lock(held->busy, std::try_to_lock);
    if (!lock.owns_lock()) {
      return absl::FailedPreconditionError("another thread is calling this group");
    }
    if (held->group == nullptr) return absl::InvalidArgumentError("the group was left");
    return body(*held->group);
  });
}

}  // namespace tutti::comm::capi

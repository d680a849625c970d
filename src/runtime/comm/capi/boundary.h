// Guards the edge of the C ABI for every function of it: no exception leaves, an error becomes a
// code and is kept with its text for the calling thread. Also declares what the sources of the ABI
// share.
#pragma once

#include <algorithm>
#include <array>
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
#include "runtime/comm/collective/compression/compression.h"
#include "runtime/comm/communicator.h"

namespace tutti::comm {
class NcclGroup;
}  // namespace tutti::comm

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
// Returns the deadline after so many seconds; negative: as long as it takes (a century).
base::Deadline After(double seconds);
absl::Duration Seconds(double seconds);
absl::StatusOr<DataType> TypeOf(tutti_comm_type type);
absl::StatusOr<ReduceOp> OpOf(tutti_comm_op op);
tutti_comm_placement ToC(const Placement& placement, int rank, int size);

// Structs of the caller's, whose header may be older (theirs are shorter) or newer (longer) than
// this one. No byte beyond the caller's `size` is read or written; what the caller has and the
// library does not know must be zero, and is given as zero.

// Checks a size; InvalidArgument if that cannot be the size of a struct which has at least `least`
// bytes.
absl::Status CheckSize(size_t size, size_t least, const char* what);
// Copies the fields that were given into `known` bytes, over what is there. Unimplemented if more
// is asked than the library knows.
absl::Status TakeFields(const void* given, size_t size, void* whole, size_t known);
void GiveFields(const void* whole, size_t known, void* to, size_t size);

template <typename Struct>
absl::StatusOr<Struct> Whole(const Struct* given, void (*init)(Struct*, size_t)) {
  TUTTI_RETURN_IF_ERROR(NotNull(given, "the struct"));
  TUTTI_RETURN_IF_ERROR(CheckSize(given->struct_size, sizeof(size_t), "struct_size"));
  Struct whole;
  init(&whole, sizeof(whole));
  TUTTI_RETURN_IF_ERROR(TakeFields(given, given->struct_size, &whole, sizeof(whole)));
  whole.struct_size = sizeof(whole);
  return whole;
}

// Does what an _init function does with its defaults. Nothing, if there is no room for the size.
template <typename Struct>
void GiveDefaults(const Struct& whole, Struct* to, size_t size) {
  if (to == nullptr || size < sizeof(size_t)) return;
  GiveFields(&whole, sizeof(whole), to, size);
  to->struct_size = size;
}

template <typename Struct>
absl::Status Give(const Struct& whole, Struct* to, size_t size, const char* what) {
  TUTTI_RETURN_IF_ERROR(NotNull(to, what));
  TUTTI_RETURN_IF_ERROR(CheckSize(size, 1, "the struct's size"));
  GiveFields(&whole, sizeof(whole), to, size);
  return absl::OkStatus();
}

// A plain group. Called by one thread at a time.
struct GroupHandle {
  std::mutex busy;
  std::shared_ptr<Communicator> group;
  bool had_session = false;
  // What stands on the group, and goes before it. Made when first called for.
  struct OnTop {
    std::array<std::shared_ptr<CompressedAllReduce>, 3> encoded;  // by encoding
    std::shared_ptr<NcclGroup> device;
  } on_top;
};

// What a handle of feedback stands for. Lent to one call, or one operation, at a time.
struct Feedback {
  std::mutex busy;
  ErrorFeedback kept;
};

// Returns what a handle stands for, as its type.
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
tutti_comm_status OnGroupHandle(tutti_comm_group handle, const Body& body) noexcept {
  return Guard([&]() -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const std::shared_ptr<GroupHandle> held,
                           Get<GroupHandle>(HandleKind::kGroup, handle));
    const std::unique_lock<std::mutex> lock(held->busy, std::try_to_lock);
    if (!lock.owns_lock()) {
      return absl::FailedPreconditionError("another thread is calling this group");
    }
    if (held->group == nullptr) return absl::InvalidArgumentError("the group was left");
    return body(*held);
  });
}
template <typename Body>
tutti_comm_status OnGroup(tutti_comm_group handle, const Body& body) noexcept {
  return OnGroupHandle(handle, [&](GroupHandle& held) { return body(*held.group); });
}

}  // namespace tutti::comm::capi

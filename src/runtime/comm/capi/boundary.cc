#include "runtime/comm/capi/boundary.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace tutti::comm::capi {
namespace {

struct LastError {
  std::string text;
  int lost_rank = -1;
};
thread_local LastError last_error;

constexpr size_t kLargestStruct = 4096;

// A field that is appended must not lie in what was padding: the sizes would not tell it.
template <typename Struct, typename Last>
constexpr bool EndsWith(Last Struct::*, size_t offset) {
  return sizeof(Struct) == offset + sizeof(Last);
}
static_assert(EndsWith(&tutti_comm_group_options::members,
                       offsetof(tutti_comm_group_options, members)));
static_assert(EndsWith(&tutti_comm_session_options::on_stall_context,
                       offsetof(tutti_comm_session_options, on_stall_context)));
static_assert(EndsWith(&tutti_comm_request::ready, offsetof(tutti_comm_request, ready)));
static_assert(EndsWith(&tutti_comm_tensor::type, offsetof(tutti_comm_tensor, type)));
static_assert(EndsWith(&tutti_comm_output::reserved, offsetof(tutti_comm_output, reserved)));
static_assert(EndsWith(&tutti_comm_placement::homogeneous,
                       offsetof(tutti_comm_placement, homogeneous)));

}  // namespace

tutti_comm_status Keep(const absl::Status& status) noexcept {
  if (status.ok()) return TUTTI_COMM_OK;
  try {
    last_error.lost_rank = LostRank(status).value_or(-1);
    last_error.text = std::string(status.message());
  } catch (...) {
    last_error.text.clear();
  }
  return static_cast<tutti_comm_status>(status.code());
}

absl::Status NotNull(const void* pointer, const char* what) {
  if (pointer != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " is null"));
}

absl::Status CheckSize(size_t size, size_t least, const char* what) {
  if (size >= least && size <= kLargestStruct) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " is ", size, ", which no such struct has: give sizeof, to its _init if it has one"));
}

absl::Status TakeFields(const void* given, size_t size, void* whole, size_t known) {
  std::memcpy(whole, given, std::min(size, known));
  const char* const bytes = static_cast<const char*>(given);
  if (std::all_of(bytes + std::min(size, known), bytes + size, [](char c) { return c == 0; })) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      "a field is set that this version of the library does not know: it is older than the header");
}

void GiveFields(const void* whole, size_t known, void* to, size_t size) {
  std::memcpy(to, whole, std::min(size, known));
  if (size > known) std::memset(static_cast<char*>(to) + known, 0, size - known);
}

absl::Duration Seconds(double seconds) {
  constexpr double kCentury = 100 * 365 * 86400.0;
  return absl::Seconds(seconds >= 0 && seconds < kCentury ? seconds : kCentury);
}

base::Deadline After(double seconds) { return base::Deadline::After(Seconds(seconds)); }

absl::StatusOr<DataType> TypeOf(tutti_comm_type type) {
  static_assert(static_cast<int>(DataType::kBool) == TUTTI_COMM_BOOL &&
                static_cast<int>(DataType::kFloat16) == TUTTI_COMM_FLOAT16 &&
                static_cast<int>(DataType::kInt16) == TUTTI_COMM_INT16);
  if (type >= 0 && type <= TUTTI_COMM_BOOL) return static_cast<DataType>(type);
  return absl::InvalidArgumentError(absl::StrCat("there is no type ", type));
}

absl::StatusOr<ReduceOp> OpOf(tutti_comm_op op) {
  static_assert(static_cast<int>(ReduceOp::kAdasum) == TUTTI_COMM_ADASUM &&
                static_cast<int>(ReduceOp::kProduct) == TUTTI_COMM_PRODUCT);
  if (op >= 0 && op <= TUTTI_COMM_ADASUM) return static_cast<ReduceOp>(op);
  return absl::InvalidArgumentError(absl::StrCat("there is no operation ", op));
}

tutti_comm_placement ToC(const Placement& placement, int rank, int size) {
  return {rank,
          size,
          placement.local_rank,
          placement.local_size,
          placement.node_rank,
          placement.node_count,
          placement.homogeneous ? 1 : 0};
}

}  // namespace tutti::comm::capi

using namespace tutti::comm::capi;  // NOLINT(google-build-using-namespace)

uint32_t tutti_comm_version(void) { return TUTTI_COMM_ABI_VERSION; }

const char* tutti_comm_last_error(void) { return last_error.text.c_str(); }
int32_t tutti_comm_last_lost_rank(void) { return last_error.lost_rank; }

const char* tutti_comm_status_name(tutti_comm_status status) {
  static const char* const kNames[] = {"OK",
                                       "CANCELLED",
                                       "UNKNOWN",
                                       "INVALID_ARGUMENT",
                                       "DEADLINE_EXCEEDED",
                                       "NOT_FOUND",
                                       "ALREADY_EXISTS",
                                       "PERMISSION_DENIED",
                                       "RESOURCE_EXHAUSTED",
                                       "FAILED_PRECONDITION",
                                       "ABORTED",
                                       "OUT_OF_RANGE",
                                       "UNIMPLEMENTED",
                                       "INTERNAL",
                                       "UNAVAILABLE"};
  const bool known = status >= 0 && status < static_cast<int>(std::size(kNames));
  return known ? kNames[status] : "UNKNOWN";
}

size_t tutti_comm_size_of(tutti_comm_type type) {
  const auto known = TypeOf(type);
  return known.ok() ? tutti::comm::SizeOf(*known) : 0;
}

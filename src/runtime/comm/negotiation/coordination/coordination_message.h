// Defines the messages of the negotiation between the ranks and rank 0: payloads of the group's
// Control. A rank sends Reports, rank 0 answers with Orders; both as the codec's bytes. Reading is
// pure and takes hostile bytes: it is fuzzed by negotiation_fuzz.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/comm/negotiation/coordination/request.h"

namespace tutti::comm {

inline constexpr size_t kLongestError = 4 * kLongestName;

struct Report {
  uint64_t executed = 0;  // responses that this rank has finished
  bool leaves = false;    // it will announce nothing more
  std::vector<Announcement> announcements;
};

// One tensor (or group) whose turn has come.
struct Unit {
  uint32_t id = 0;    // what it may be called next time; 0: nothing
  bool full = false;  // `request` is said in full, since not everybody announced it by its number
  Request request;
  std::vector<int64_t> rows;  // kAllGather: of every rank of the set, its announced rows
  // If it is not OK, the unit fails with this on all that have announced it, and nothing is run.
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string error;
  int blamed = -1;  // the rank of the world that the error is about, if one
};

// What is run next: units of one set that are fused, in this order.
struct Response {
  int set = kWorldSet;
  int64_t value = 0;          // kJoin: who joined last; kAddSet: the new set's number
  uint64_t fusion_bytes = 0;  // how much is packed at most
  std::vector<Unit> units;
};

// Who keeps a tensor waiting.
struct Stall {
  std::string tensor;
  int set = kWorldSet;
  absl::Duration waited;
  std::vector<int> missing;  // ranks of the world that have not announced it; or ...
  int silent = -1;           // ... the one that it waits for, of which nothing is heard (-1: none)
  absl::Duration silence;

  std::string ToString() const;
};

// The end of the negotiation.
struct End {
  absl::StatusCode code = absl::StatusCode::kCancelled;
  std::string text;
  int blamed = -1;
};

struct Orders {
  std::vector<Response> responses;  // run in this order, after those of earlier Orders
  std::vector<uint32_t> unknown;    // announce these again, in full
  std::vector<Stall> stalls;
  std::optional<End> end;
  bool leave_ack = false;  // the answer to `leaves`: nothing more comes
};

std::string Write(const Report& report);
std::string Write(const Orders& orders);
// Parses a report; InvalidArgument if `bytes` is not exactly one well-formed message.
absl::StatusOr<Report> ReadReport(absl::string_view bytes);
absl::StatusOr<Orders> ReadOrders(absl::string_view bytes);

}  // namespace tutti::comm

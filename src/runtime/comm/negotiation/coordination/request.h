// Request is what a rank asks for under a name: one collective on one tensor or on a group of
// tensors that are reduced all or none. A Request holds what every rank of the process set must say
// alike; what may differ (an all-gather's first dimensions) stands beside it, in an Announcement.
// Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/data_type.h"

namespace tutti::comm {

enum class Kind : uint8_t {
  kAllReduce,
  kAllGather,
  kBroadcast,
  kAllToAll,
  kReduceScatter,
  kBarrier,
  kJoin,
  kAddSet,
  kRemoveSet,
};
const char* NameOf(Kind kind);  // "all-reduce"

// How the values of an all-reduce go between nodes: as they are, or encoded
// (collective/compression/encoding.h).
enum class Wire : uint8_t { kPlain, kFloat16, kBFloat16, kInt8 };

inline constexpr size_t kLongestName = 4096;
inline constexpr size_t kMostDimensions = 64;
inline constexpr size_t kMostParts = 1 << 14;
inline constexpr int kWorldSet = 0;  // the process set of all ranks

struct Part {
  DataType type = DataType::kFloat32;
  // The rows come first. For an all-gather and an all-to-all the first dimension is 0 here: see
  // rows.
  std::vector<int64_t> shape;
  bool operator==(const Part&) const = default;
};

struct Request {
  Kind kind = Kind::kBarrier;
  int set = kWorldSet;  // the process set; kAddSet and kRemoveSet: the world
  std::string name;     // unique among what a rank has outstanding in the set
  ReduceOp op = ReduceOp::kSum;
  int root = 0;  // kBroadcast: a rank of the world; kRemoveSet: the set to be removed
  double prescale = 1;
  double postscale = 1;
  Wire wire = Wire::kPlain;  // else kAllReduce, the sum or mean of one part of fp32
  bool device = false;       // its tensors are in memory of GPUs, on all ranks
  std::vector<Part> parts;
  std::vector<int> ranks;  // kAddSet: of the world, ascending
  bool operator==(const Request&) const = default;

  std::string Key() const;       // of name and set
  std::string Describe() const;  // "an all-reduce (sum) of float32[3,4]"
};

// One rank has what `request` needs (or, if it knows the number, `id`).
struct Announcement {
  uint32_t id = 0;  // 0: `request` is said in full
  Request request;
  std::vector<int64_t> rows;  // kAllGather: the first dimension of every part
};

int64_t Elements(const Part& part);
size_t Bytes(const Part& part);
size_t Bytes(const Request& request);
size_t MessageBytes(const Request& request);  // what it takes to be said in full, at most

// Returns whether an all-gather or all-to-all can be of so many rows of this part from one rank.
bool AreRows(const Part& part, int64_t rows);

// Returns whether such a collective goes on beside a rank that has joined.
bool IsRunBesideJoined(Kind kind);
// Returns whether the parts of several such requests may be reduced or sent as one.
bool IsFusable(const Request& request);
bool FuseTogether(const Request& a, const Request& b);

// Returns what makes no sense by itself: names that are too long, negative dimensions, more bytes
// than there are, a mean of bools, Adasum of integers, nothing to gather, process sets that are
// changed from within one, a join by another name than every join's, what cannot be encoded or is
// not done on GPUs.
absl::Status Check(const Request& request);

}  // namespace tutti::comm

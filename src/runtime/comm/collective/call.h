// Call describes a call of a collective as data: it is checked before anything is sent, and its
// hash lets ranks find that they call different things (GroupOptions::check_calls).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "runtime/comm/collective/links.h"
#include "runtime/comm/data_type.h"

namespace tutti::comm {

// Travels as it lies in memory, between builds of one version (authenticate.h): no padding.
struct Call {
  enum class Kind : uint32_t {
    kAllReduce,
    kReduceScatter,
    kBroadcast,
    kAllGather,
    kAllToAll,
    kBarrier,
    kSend,
    kReceive,
  };
  Kind kind = Kind::kBarrier;
  DataType type = DataType::kUint8;
  ReduceOp op = ReduceOp::kSum;
  int32_t peer = 0;     // the root, or the other rank of a pair
  uint64_t count = 0;   // elements of a reduction, else bytes
  uint64_t parts = 0;   // a hash of the sizes by rank, where there are such
  uint64_t number = 0;  // of the collectives that this rank has called before

  friend bool operator==(const Call&, const Call&) = default;
};
static_assert(std::has_unique_object_representations_v<Call>);

uint64_t HashOf(std::span<const size_t> parts);
const char* NameOf(Call::Kind kind);
// Returns "all-reduce of 4 float32 (sum)".
std::string Describe(const Call& call);

// Returns what is wrong with arguments by themselves, as InvalidArgument.
absl::Status CheckReduction(DataType type, ReduceOp op);
absl::Status CheckRank(const char* what, int rank, int size);
absl::Status CheckOther(const char* what, int other, int rank,
                        int size);  // a rank and not this one
absl::Status CheckParts(const char* what, std::span<const size_t> parts, int size);
absl::Status CheckAllToAll(std::span<const size_t> sent, std::span<const size_t> received, int rank,
                           int size);
absl::Status CheckBuffer(const char* what, const void* buffer, size_t bytes);

// Lets all ranks of the group tell each other what they call. FailedPrecondition, the same on all
// of them, when somebody's differs from rank 0's.
absl::Status CompareCalls(Links& links, const Call& call, base::Deadline deadline);
// Lets the two ranks of a Send and its Receive do so.
absl::Status ComparePair(Links& links, const Call& call, base::Deadline deadline);
// Checks that what each rank of an all-to-all sends to each is what that one wants from it.
absl::Status CompareParts(Links& links, std::span<const size_t> sent,
                          std::span<const size_t> received, base::Deadline deadline);

// Return what these three find in what has come; it may be any bytes. By rank; this rank's call and
// the other side's; of each rank the bytes that it sends to each, and those that it receives.
absl::Status JudgeCalls(std::span<const Call> calls);
absl::Status JudgePair(int rank, const Call& call, const Call& other);
absl::Status JudgeParts(std::span<const uint64_t> rows, size_t ranks);

}  // namespace tutti::comm

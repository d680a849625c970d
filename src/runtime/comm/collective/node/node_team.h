// NodeTeam is the ranks of one node within a group, and the memory that they share: for each of
// them its mark in the phases (phases.h, which has the proofs) and two slots of a cache-sized block
// each.
//
// A collective here is a sequence of phases. It ends in the middle of one: what a rank still reads
// of the others' slots it reads in the phase in which the next collective begins, and the rule of
// the slots (write those of this phase, read those of the last one) holds across collectives.
//
// Waiting: looking again while that pays (or letting others run, where ranks share cores), then
// asleep at this rank's notifier, which lies in the same memory, until the deadline; the group's
// end notifies it too. A rank that is lost or late ends the group (Membership), and the error names
// it.
//
// A team keeps one descriptor for each of its ranks, which leads to its letters (shared_buffers.h).
//
// Ranks are numbered within the team; `members` gives their numbers in the group. Not thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "runtime/comm/collective/links.h"
#include "runtime/comm/collective/node/phases.h"
#include "runtime/comm/collective/node/segment.h"
#include "runtime/comm/collective/node/shared_buffers.h"

namespace tutti::comm {

class NodeTeam {
 public:
  static constexpr size_t kSlotBytes = 256 << 10;

  // Called by all members, which are at least two, in ascending order, with this rank among them,
  // and share memory with one another. Their links carry the descriptors; nothing else may be under
  // way on them.
  static absl::StatusOr<std::unique_ptr<NodeTeam>> Form(Links& links, std::vector<int> members,
                                                        int spins, base::Deadline deadline);

  ~NodeTeam();

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  std::span<const int> members() const { return members_; }
  SharedBuffers& buffers() { return buffers_; }

  // Returns this rank's slot, to be written in this phase, and what a rank wrote in the last one.
  std::byte* slot() const { return Slot(rank_, phases_.phase()) + kSlotHeader; }
  const std::byte* SlotOf(int rank) const { return Slot(rank, phases_.phase() + 1) + kSlotHeader; }
  // Ends this phase and waits until all have.
  absl::Status NextPhase(base::Deadline deadline);

  // Returns where every rank's `bytes[r]` at its own `data` lie in this process; null for one whose
  // memory cannot be reached, of which all ranks know alike. Takes a phase, and another when a
  // buffer is new. Valid until the next call.
  absl::StatusOr<std::span<std::byte* const>> Locate(const std::byte* data,
                                                     std::span<const size_t> bytes,
                                                     base::Deadline deadline);

 private:
  using Look = Phases<std::atomic>::Look;
  static constexpr size_t kSlotHeader = 4096;

  struct Shared;
  struct Notice;  // at the beginning of a slot
  NodeTeam(Membership& membership, std::vector<int> members, int rank, Shared shared, int spins);

  Notifier& NotifierOf(int rank) const;
  std::byte* Slot(int rank, uint64_t phase) const;
  Notice ReadNotice(int rank) const;
  void WriteNotice(const Notice& notice);
  absl::Status Await(base::Deadline deadline);
  absl::Status Sleep(base::Deadline deadline);
  absl::Status ReportFailure(int rank, Reason reason);
  // Fills in reached_; whether every new buffer could be mapped.
  absl::StatusOr<bool> MapAll(const std::byte* data, std::span<const size_t> bytes);
  absl::Status AgreeOnNew(bool mapped, base::Deadline deadline);

  Membership& membership_;
  const std::vector<int> members_;
  const int rank_;
  const Segment memory_;
  Phases<std::atomic> phases_;
  SpinLimit patience_;
  SharedBuffers buffers_;
  std::vector<BufferLocation> locations_;
  std::vector<std::byte*> reached_;
};

}  // namespace tutti::comm

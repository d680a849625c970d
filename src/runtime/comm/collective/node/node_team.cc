#include "runtime/comm/collective/node/node_team.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/comm/rendezvous/membership/shared_notifier.h"
#include "runtime/comm/rendezvous/wire/descriptors.h"
#include "runtime/comm/transport/sealed_file.h"

namespace tutti::comm {
namespace {

using base::ErrnoStatus;
using base::UniqueFd;

// What lies before the slots: the marks of the phases, and a notifier for each rank.
size_t NotifiersAt(size_t ranks) { return ranks * sizeof(PhaseMark<std::atomic>); }
size_t SlotsAt(size_t ranks) {
  const size_t bytes = NotifiersAt(ranks) + ranks * sizeof(Notifier);
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

// ---- Forming ----

struct NodeTeam::Shared {
  Segment memory;
  std::vector<UniqueFd> letterboxes;
  UniqueFd letters;

  explicit Shared(size_t ranks) : letterboxes(ranks) {}

  absl::Status MakeLetterbox(int rank) {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
      return ErrnoStatus("socketpair");
    }
    letters.reset(ends[0]);
    letterboxes[rank].reset(ends[1]);
    return absl::OkStatus();
  }

  // The first member makes the memory. The others give it what leads to them, and when all have, it
  // gives them the memory and what leads to all.
  absl::StatusOr<UniqueFd> Collect(Links& links, std::span<const int> members, size_t bytes,
                                   const Patience& patience) {
    for (size_t other = 1; other < members.size(); ++other) {
      TUTTI_RETURN_IF_ERROR(links.Connect(members[other], patience.deadline));
      TUTTI_ASSIGN_OR_RETURN(letterboxes[other],
                             ReceiveDescriptor(links.SocketOf(members[other]), patience));
    }
    TUTTI_ASSIGN_OR_RETURN(UniqueFd file, MakeSealedFile("tutti-node", bytes));
    std::vector<int> all = {file.get()};
    for (const UniqueFd& letterbox : letterboxes) all.push_back(letterbox.get());
    for (const int other : members.subspan(1)) {
      TUTTI_RETURN_IF_ERROR(SendDescriptors(links.SocketOf(other), all, patience));
    }
    return file;
  }
  absl::StatusOr<UniqueFd> Get(Links& links, int first, int rank, const Patience& patience) {
    TUTTI_RETURN_IF_ERROR(links.Connect(first, patience.deadline));
    const int socket = links.SocketOf(first);
    TUTTI_RETURN_IF_ERROR(SendDescriptor(socket, letterboxes[rank].get(), patience));
    TUTTI_ASSIGN_OR_RETURN(std::vector<UniqueFd> all,
                           ReceiveDescriptors(socket, 1 + letterboxes.size(), patience));
    std::move(all.begin() + 1, all.end(), letterboxes.begin());
    return std::move(all.front());
  }
};

absl::StatusOr<std::unique_ptr<NodeTeam>> NodeTeam::Form(Links& links, std::vector<int> members,
                                                         int spins, base::Deadline deadline) {
  const size_t size = members.size();
  const int rank =
      static_cast<int>(std::find(members.begin(), members.end(), links.rank()) - members.begin());
  const size_t bytes = SlotsAt(size) + 2 * size * (kSlotHeader + kSlotBytes);
  const Patience patience{deadline, links.membership().ended_fd()};
  Shared shared(size);
  TUTTI_RETURN_IF_ERROR(shared.MakeLetterbox(rank));
  TUTTI_ASSIGN_OR_RETURN(const UniqueFd file, rank == 0
                                                  ? shared.Collect(links, members, bytes, patience)
                                                  : shared.Get(links, members[0], rank, patience));
  TUTTI_ASSIGN_OR_RETURN(shared.memory, Segment::Map(file.get(), bytes));
  return std::unique_ptr<NodeTeam>(
      new NodeTeam(links.membership(), std::move(members), rank, std::move(shared), spins));
}

NodeTeam::NodeTeam(Membership& membership, std::vector<int> members, int rank, Shared shared,
                   int spins)
    : membership_(membership),
      members_(std::move(members)),
      rank_(rank),
      memory_(std::move(shared.memory)),
      phases_(reinterpret_cast<PhaseMark<std::atomic>*>(memory_.data()), size(), rank),
      patience_(spins),
      buffers_(rank, std::move(shared.letterboxes), std::move(shared.letters)),
      reached_(members_.size()) {
  membership_.NotifyAtEnd(&NotifierOf(rank_));
}

NodeTeam::~NodeTeam() { membership_.NotifyAtEnd(nullptr); }

Notifier& NodeTeam::NotifierOf(int rank) const {
  return reinterpret_cast<Notifier*>(memory_.data() + NotifiersAt(members_.size()))[rank];
}

std::byte* NodeTeam::Slot(int rank, uint64_t phase) const {
  const size_t index = 2 * static_cast<size_t>(rank) + phase % 2;
  return memory_.data() + SlotsAt(members_.size()) + index * (kSlotHeader + kSlotBytes);
}

// ---- Waiting ----

absl::Status NodeTeam::NextPhase(base::Deadline deadline) {
  const Look look = phases_.End([this](int rank) { NotifierOf(rank).Notify(); });
  return look == Look::kAllEnded ? absl::OkStatus() : Await(deadline);
}

absl::Status NodeTeam::Await(base::Deadline deadline) {
  for (int idle = 0;; ++idle) {
    const Look look = phases_.Again();
    if (look == Look::kNonsense) return ReportFailure(phases_.missing(), Reason::kClosed);
    if (look == Look::kAllEnded) {
      if (idle > 0) patience_.Succeeded(idle);
      return absl::OkStatus();
    }
    if (idle < patience_.limit()) {
      patience_.Pause(idle + 1);
      continue;
    }
    patience_.Failed();
    TUTTI_RETURN_IF_ERROR(Sleep(deadline));
    idle = 0;
  }
}

absl::Status NodeTeam::Sleep(base::Deadline deadline) {
  const Look look = phases_.SleepOnce([&] { NotifierOf(rank_).Await(deadline); });
  // That all have come is seen first: a rank that has done its part may have left since.
  if (look != Look::kMissing) return absl::OkStatus();
  if (membership_.ended()) return membership_.Check();
  if (deadline.Expired()) return ReportFailure(phases_.missing(), Reason::kLate);
  return absl::OkStatus();
}

absl::Status NodeTeam::ReportFailure(int rank, Reason reason) {
  return membership_.ReportFailure(members_[rank], reason);
}

}  // namespace tutti::comm

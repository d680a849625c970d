#include "runtime/comm/collective/node/node_team.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "runtime/comm/transport/sealed_file.h"

namespace tutti::comm {
namespace {

using base::ErrnoStatus;
using base::UniqueFd;

void Ring(const UniqueFd& doorbell) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(doorbell.get(), &one, sizeof(one));
}

size_t MarkBytes(size_t ranks) {
  const size_t bytes = ranks * sizeof(PhaseMark<std::atomic>);
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

// ---- Forming ----

struct NodeTeam::Handles {
  Segment memory;
  std::vector<UniqueFd> doorbells;
  std::vector<UniqueFd> letterboxes;
  UniqueFd letters;

  explicit Handles(size_t ranks) : doorbells(ranks), letterboxes(ranks) {}

  absl::Status MakeOwn(int rank) {
    doorbells[rank].reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!doorbells[rank].valid()) return ErrnoStatus("eventfd");
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
      return ErrnoStatus("socketpair");
    }
    letters.reset(ends[0]);
    letterboxes[rank].reset(ends[1]);
    return absl::OkStatus();
  }
  absl::Status Send(int socket, int rank) const {
    TUTTI_RETURN_IF_ERROR(SendDescriptor(socket, doorbells[rank].get()));
    return SendDescriptor(socket, letterboxes[rank].get());
  }
  absl::Status Receive(int socket, int rank, const Patience& patience) {
    TUTTI_ASSIGN_OR_RETURN(doorbells[rank], ReceiveDescriptor(socket, patience));
    TUTTI_ASSIGN_OR_RETURN(letterboxes[rank], ReceiveDescriptor(socket, patience));
    return absl::OkStatus();
  }
};

// The first member makes the memory. The others give it what leads to them, and when all have, it
// gives them the memory and what leads to all.
absl::StatusOr<std::unique_ptr<NodeTeam>> NodeTeam::Form(Links& links, std::vector<int> members,
                                                         int spins, base::Deadline deadline) {
  const int size = static_cast<int>(members.size());
  const int rank =
      static_cast<int>(std::find(members.begin(), members.end(), links.rank()) - members.begin());
  const size_t bytes = MarkBytes(size) + 2 * size * (kSlotHeader + kSlotBytes);
  const Patience patience{deadline, links.membership().ended_fd()};
  Handles handles(size);
  TUTTI_RETURN_IF_ERROR(handles.MakeOwn(rank));
  UniqueFd file;
  if (rank == 0) {
    TUTTI_ASSIGN_OR_RETURN(file, MakeSealedFile("tutti-node", bytes));
    for (int other = 1; other < size; ++other) {
      TUTTI_RETURN_IF_ERROR(links.Reach(members[other], deadline));
      TUTTI_RETURN_IF_ERROR(handles.Receive(links.SocketOf(members[other]), other, patience));
    }
    for (int other = 1; other < size; ++other) {
      const int socket = links.SocketOf(members[other]);
      TUTTI_RETURN_IF_ERROR(SendDescriptor(socket, file.get()));
      for (int any = 0; any < size; ++any) TUTTI_RETURN_IF_ERROR(handles.Send(socket, any));
    }
  } else {
    TUTTI_RETURN_IF_ERROR(links.Reach(members[0], deadline));
    const int socket = links.SocketOf(members[0]);
    TUTTI_RETURN_IF_ERROR(handles.Send(socket, rank));
    TUTTI_ASSIGN_OR_RETURN(file, ReceiveDescriptor(socket, patience));
    for (int any = 0; any < size; ++any) {
      TUTTI_RETURN_IF_ERROR(handles.Receive(socket, any, patience));
    }
  }
  TUTTI_ASSIGN_OR_RETURN(handles.memory, Segment::Map(file.get(), bytes));
  return std::unique_ptr<NodeTeam>(
      new NodeTeam(links.membership(), std::move(members), rank, std::move(handles), spins));
}

NodeTeam::NodeTeam(Membership& membership, std::vector<int> members, int rank, Handles handles,
                   int spins)
    : membership_(membership),
      members_(std::move(members)),
      rank_(rank),
      memory_(std::move(handles.memory)),
      doorbells_(std::move(handles.doorbells)),
      phases_(reinterpret_cast<PhaseMark<std::atomic>*>(memory_.data()), size(), rank),
      patience_(spins),
      buffers_(rank, std::move(handles.letterboxes), std::move(handles.letters)),
      reached_(members_.size()) {}

std::byte* NodeTeam::Slot(int rank, uint64_t phase) const {
  const size_t index = 2 * static_cast<size_t>(rank) + phase % 2;
  return memory_.data() + MarkBytes(members_.size()) + index * (kSlotHeader + kSlotBytes);
}

// ---- Waiting ----

absl::Status NodeTeam::NextPhase(base::Deadline deadline) {
  const Look look = phases_.End([this](int rank) { Ring(doorbells_[rank]); });
  return look == Look::kAllEnded ? absl::OkStatus() : Await(deadline);
}

absl::Status NodeTeam::Await(base::Deadline deadline) {
  for (int idle = 0;; ++idle) {
    const Look look = phases_.Again();
    if (look == Look::kNonsense) return Accuse(phases_.missing(), Reason::kClosed);
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
  const int bell = doorbells_[rank_].get();
  int error = 0;
  const Look look = phases_.SleepOnce([&] {
    pollfd polled[2] = {{bell, POLLIN, 0}, {membership_.ended_fd(), POLLIN, 0}};
    if (::poll(polled, 2, deadline.RemainingMillis()) < 0) error = errno;
    uint64_t rung;
    while (::read(bell, &rung, sizeof(rung)) < 0 && errno == EINTR) {
    }
  });
  // That all have come is seen first: a rank that has done its part may have left since.
  if (look != Look::kMissing) return absl::OkStatus();
  if (error != 0 && error != EINTR) return ErrnoStatus("poll", error);
  if (membership_.ended()) return membership_.Check();
  if (deadline.Expired()) return Accuse(phases_.missing(), Reason::kLate);
  return absl::OkStatus();
}

absl::Status NodeTeam::Accuse(int rank, Reason reason) {
  return membership_.Accuse(members_[rank], reason);
}

}  // namespace tutti::comm

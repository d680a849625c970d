#include "runtime/comm/collective/links.h"

#include <poll.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/status.h"

namespace tutti::comm {
namespace {

// What is sent or taken at once: small enough to alternate and to stay in the cache, large enough
// that a system call does not count.
constexpr size_t kPiece = 128 << 10;

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class BufferFlow final : public Flow {
 public:
  BufferFlow(std::span<const std::byte> outgoing, std::span<std::byte> incoming)
      : outgoing_(outgoing), incoming_(incoming) {}
  std::span<const std::byte> Outgoing() override { return outgoing_; }
  void Sent(size_t bytes) override { outgoing_ = outgoing_.subspan(bytes); }
  size_t Wanted() override { return incoming_.empty() ? 0 : 1; }
  absl::StatusOr<size_t> Take(Channel& from) override {
    TUTTI_ASSIGN_OR_RETURN(const size_t n, from.TryReceive(incoming_));
    incoming_ = incoming_.subspan(n);
    return n;
  }
  bool Done() const override { return outgoing_.empty() && incoming_.empty(); }

 private:
  std::span<const std::byte> outgoing_;
  std::span<std::byte> incoming_;
};

}  // namespace

Links::Links(int rank, int size, std::vector<std::unique_ptr<Channel>> channels,
             std::unique_ptr<Membership> membership, int spins)
    : rank_(rank),
      size_(size),
      patience_(spins),
      channels_(std::move(channels)),
      membership_(std::move(membership)) {}

// Sends and takes once; whether anything moved.
absl::StatusOr<bool> Links::Step(Flow& flow, int to, int from) {
  size_t moved = 0;
  const std::span<const std::byte> outgoing = flow.Outgoing();
  if (!outgoing.empty()) {
    const auto sent = channel(to)->TrySend(outgoing.first(std::min(outgoing.size(), kPiece)));
    if (!sent.ok()) return membership_->Accuse(to, Reason::kClosed);
    flow.Sent(*sent);
    moved += *sent;
  }
  if (flow.Wanted() > 0) {
    const auto taken = flow.Take(*channel(from));
    if (!taken.ok()) return membership_->Accuse(from, Reason::kClosed);
    moved += *taken;
  }
  return moved > 0;
}

bool Links::IsCheapToWatch(int to, int from) const {
  const Channel* const out = channel(to);
  const Channel* const in = channel(from);
  return (out == nullptr || out->IsCheapToWatch()) && (in == nullptr || in->IsCheapToWatch());
}

absl::Status Links::Move(Flow& flow, int to, int from, base::Deadline deadline) {
  const bool may_spin = IsCheapToWatch(to, from);
  int idle = 0;
  for (unsigned steps = 1; !flow.Done(); ++steps) {
    TUTTI_ASSIGN_OR_RETURN(const bool moved, Step(flow, to, from));
    if (steps % 64 == 0) TUTTI_RETURN_IF_ERROR(CheckStillGoing(flow, to, from, deadline));
    if (moved) {
      if (idle > 0) patience_.Succeeded(idle);
      idle = 0;
    } else if (may_spin && idle < patience_.limit()) {
      ++idle;
      Relax();
    } else {
      patience_.Failed();
      TUTTI_RETURN_IF_ERROR(Sleep(flow, to, from, deadline));
      idle = 0;
    }
  }
  return absl::OkStatus();
}

absl::Status Links::CheckStillGoing(Flow& flow, int to, int from, base::Deadline deadline) {
  if (membership_->ended()) return membership_->Check();
  if (!deadline.Expired() || flow.Done()) return absl::OkStatus();
  return membership_->Accuse(flow.Wanted() > 0 ? from : to, Reason::kLate);
}

absl::Status Links::Sleep(Flow& flow, int to, int from, base::Deadline deadline) {
  const bool sends = !flow.Outgoing().empty();
  const size_t wanted = flow.Wanted();
  Channel* const out = sends ? channel(to) : nullptr;
  Channel* const in = wanted > 0 ? channel(from) : nullptr;
  pollfd polled[3] = {{membership_->ended_fd(), POLLIN, 0}, {-1, 0, 0}, {-1, 0, 0}};
  bool ready = false;
  const auto prepare = [&](pollfd& entry, Channel* channel, bool to_send, size_t to_receive) {
    entry = {channel->fd(), channel->PrepareToSleep(to_send, to_receive), 0};
    ready = ready || entry.events == 0;
  };
  if (out != nullptr) prepare(polled[1], out, true, out == in ? wanted : 0);
  if (in != nullptr && in != out) prepare(polled[2], in, false, wanted);
  const int result = ready ? 0 : ::poll(polled, 3, deadline.RemainingMillis());
  const int error = errno;
  if (out != nullptr) out->Wake();
  if (in != nullptr && in != out) in->Wake();
  if (result < 0 && error != EINTR) return base::ErrnoStatus("poll", error);
  return CheckStillGoing(flow, to, from, deadline);
}

absl::Status Links::Exchange(int to, std::span<const std::byte> outgoing, int from,
                             std::span<std::byte> incoming, base::Deadline deadline) {
  BufferFlow flow(outgoing, incoming);
  return Move(flow, to, from, deadline);
}

bool NeedsLink(int a, int b, int size) {
  const unsigned distance = static_cast<unsigned>((b - a + size) % size);
  const unsigned back = static_cast<unsigned>(size) - distance;
  return a != b && (std::has_single_bit(distance) || std::has_single_bit(back));
}

}  // namespace tutti::comm

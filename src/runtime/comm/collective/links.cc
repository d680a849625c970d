#include "runtime/comm/collective/links.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/status.h"

namespace tutti::comm {
namespace {

// What is sent at once: small enough to alternate with taking and to stay in the cache, large
// enough that a system call does not count, and not more than is taken at once, so that queues
// drain. And two of the largest packets that the kernel cuts (64 KiB less headers), not two and a
// bit: 128 KiB are slower by half (measured, docs/decisions/012).
constexpr size_t kPiece = 120 << 10;
constexpr int kLooksPerSystemCall = 10;

class BufferFlow final : public Flow {
 public:
  BufferFlow(std::span<const std::byte> outgoing, std::span<std::byte> incoming)
      : outgoing_(outgoing), incoming_(incoming) {}
  std::span<const std::byte> Outgoing() override { return outgoing_; }
  void Sent(size_t bytes) override { outgoing_ = outgoing_.subspan(bytes); }
  size_t MinIncoming() override { return incoming_.empty() ? 0 : 1; }
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

Links::Links(int rank, std::vector<std::unique_ptr<Channel>> channels,
             std::unique_ptr<Connector> connector, std::unique_ptr<Membership> membership,
             int spins)
    : core_(new Core{std::move(channels), std::move(connector), std::move(membership),
                     SpinLimit(spins), SpinLimit(spins / kLooksPerSystemCall)}),
      rank_(rank),
      size_(static_cast<int>(core_->channels.size())) {}

Links::Links(std::shared_ptr<Core> core, int rank, std::vector<int> numbers)
    : core_(std::move(core)),
      rank_(rank),
      size_(static_cast<int>(numbers.size())),
      numbers_(std::move(numbers)) {}

Links Links::Subset(std::vector<int> members) const {
  const auto self = std::find(members.begin(), members.end(), rank_);
  const int rank = static_cast<int>(self - members.begin());
  for (int& member : members) member = Number(member);
  return Links(core_, rank, std::move(members));
}

absl::Status Links::Connect(int peer, base::Deadline deadline) {
  if (channel(peer) != nullptr) return absl::OkStatus();
  Membership& group = *core_->membership;
  auto channel = core_->connector->Connect(Number(peer), {deadline, group.ended_fd()});
  if (channel.ok()) {
    core_->channels[Number(peer)] = *std::move(channel);
    return absl::OkStatus();
  }
  if (group.ended()) return group.Check();
  const bool late = absl::IsDeadlineExceeded(channel.status());
  return ReportFailure(peer, late ? Reason::kLate : Reason::kClosed);
}

// In the order of the ranks: see Connector.
absl::Status Links::ConnectAll(base::Deadline deadline) {
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_) TUTTI_RETURN_IF_ERROR(Connect(peer, deadline));
  }
  return absl::OkStatus();
}

// What is ready, up to kPiece, in one call.
absl::StatusOr<size_t> Links::SendSome(Flow& flow, int to) {
  std::array<std::span<const std::byte>, Channel::kMostPartsAtOnce> parts;
  const size_t ready = flow.OutgoingParts(parts);
  size_t used = 0;
  for (size_t room = kPiece; used < ready && room > 0; ++used) {
    parts[used] = parts[used].first(std::min(parts[used].size(), room));
    room -= parts[used].size();
  }
  if (used == 0) return 0;
  const auto sent = channel(to)->TrySendParts({parts.data(), used});
  if (!sent.ok()) return ReportFailure(to, Reason::kClosed);
  flow.Sent(*sent);
  return *sent;
}

// Whether nothing that was sent waits in this process.
absl::StatusOr<bool> Links::FlushTo(int to) {
  if (to < 0) return true;
  const auto flushed = channel(to)->Flush();
  if (!flushed.ok()) return ReportFailure(to, Reason::kClosed);
  return *flushed;
}

// Sends and takes once; whether anything moved.
absl::StatusOr<bool> Links::Step(Flow& flow, int to, int from) {
  TUTTI_ASSIGN_OR_RETURN(size_t moved, SendSome(flow, to));
  if (flow.MinIncoming() > 0) {
    const auto taken = flow.Take(*channel(from));
    if (!taken.ok()) return ReportFailure(from, Reason::kClosed);
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
  SpinLimit& patience = IsCheapToWatch(to, from) ? core_->patience : core_->socket_patience;
  int idle = 0;
  for (unsigned steps = 1;; ++steps) {
    TUTTI_ASSIGN_OR_RETURN(const bool moved, Step(flow, to, from));
    bool flushed = true;
    if (!moved || flow.Done()) {
      TUTTI_ASSIGN_OR_RETURN(flushed, FlushTo(to));
      if (flushed && flow.Done()) return absl::OkStatus();
    }
    if (steps % 64 == 0) TUTTI_RETURN_IF_ERROR(CheckStillGoing(flow, to, from, deadline));
    if (moved) {
      if (idle > 0) patience.Succeeded(idle);
      idle = 0;
    } else if (idle < patience.limit()) {
      ++idle;
      patience.Pause(idle);
    } else {
      patience.Failed();
      TUTTI_RETURN_IF_ERROR(Sleep(flow, flushed, to, from, deadline));
      idle = 0;
    }
  }
}

absl::Status Links::CheckStillGoing(Flow& flow, int to, int from, base::Deadline deadline) {
  if (membership().ended()) return membership().Check();
  if (!deadline.Expired()) return absl::OkStatus();
  return ReportFailure(flow.MinIncoming() > 0 ? from : to, Reason::kLate);
}

absl::Status Links::Sleep(Flow& flow, bool flushed, int to, int from, base::Deadline deadline) {
  const bool sends = !flow.Outgoing().empty();
  const size_t wanted = flow.MinIncoming();
  Channel* const out = sends || !flushed ? channel(to) : nullptr;
  Channel* const in = wanted > 0 ? channel(from) : nullptr;
  pollfd polled[3] = {{membership().ended_fd(), POLLIN, 0}, {-1, 0, 0}, {-1, 0, 0}};
  bool ready = false;
  const auto prepare = [&](pollfd& entry, Channel* channel, bool to_send, size_t to_receive) {
    entry = {channel->fd(), channel->PrepareToSleep(to_send, to_receive), 0};
    ready = ready || entry.events == 0;
  };
  if (out != nullptr) prepare(polled[1], out, sends, out == in ? wanted : 0);
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

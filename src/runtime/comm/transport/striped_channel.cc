#include "runtime/comm/transport/striped_channel.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace tutti::comm {

static_assert(POLLIN == EPOLLIN && POLLOUT == EPOLLOUT);

absl::StatusOr<std::unique_ptr<StripedChannel>> StripedChannel::Make(
    std::vector<std::unique_ptr<Channel>> streams) {
  base::UniqueFd watch(::epoll_create1(EPOLL_CLOEXEC));
  if (!watch.valid()) return base::ErrnoStatus("epoll_create1");
  std::unique_ptr<StripedChannel> striped(new StripedChannel(std::move(watch)));
  for (auto& stream : streams) {
    epoll_event nothing = {};
    if (::epoll_ctl(striped->fd(), EPOLL_CTL_ADD, stream->fd(), &nothing) != 0) {
      return base::ErrnoStatus("epoll_ctl");
    }
    striped->streams_.push_back({std::move(stream)});
  }
  striped->UseFirst(static_cast<int>(striped->streams_.size()));
  return striped;
}

void StripedChannel::UseFirst(int streams) {
  used_ = static_cast<size_t>(streams);
  sending_ = receiving_ = Place();
}

void StripedChannel::Advance(Place& place, size_t bytes) const {
  place.left -= bytes;
  if (place.left > 0) return;
  place = {(place.stream + 1) % used_, kStripe};
}

absl::StatusOr<size_t> StripedChannel::TrySend(std::span<const std::byte> bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const size_t part = std::min(bytes.size() - sent, sending_.left);
    TUTTI_ASSIGN_OR_RETURN(const size_t n,
                           streams_[sending_.stream].channel->TrySend(bytes.subspan(sent, part)));
    Advance(sending_, n);
    sent += n;
    if (n < part) break;
  }
  return sent;
}

absl::StatusOr<size_t> StripedChannel::ReceiveInto(std::span<std::byte> bytes) {
  size_t received = 0;
  while (received < bytes.size()) {
    const size_t part = std::min(bytes.size() - received, receiving_.left);
    const auto n = streams_[receiving_.stream].channel->TryReceive(bytes.subspan(received, part));
    if (!n.ok() && received > 0) break;  // found again by the next call
    TUTTI_RETURN_IF_ERROR(n.status());
    Advance(receiving_, *n);
    received += *n;
    if (*n < part) break;
  }
  return received;
}

absl::StatusOr<bool> StripedChannel::Flush() {
  bool all = true;
  for (TcpStream& stream : streams_) {
    TUTTI_ASSIGN_OR_RETURN(const bool flushed, stream.channel->Flush());
    all = all && flushed;
  }
  return all;
}

void StripedChannel::Watch(TcpStream& stream, short events) {
  if (stream.watched == events) return;
  epoll_event event = {};
  event.events = static_cast<uint32_t>(events);
  ::epoll_ctl(fd(), EPOLL_CTL_MOD, stream.channel->fd(), &event);
  stream.watched = events;
}

short StripedChannel::PrepareTransportToSleep(bool to_send, bool to_receive) {
  bool ready = false;
  for (size_t i = 0; i < streams_.size(); ++i) {
    const bool sends = to_send && i == sending_.stream;
    const bool receives = to_receive && i == receiving_.stream;
    const short events = streams_[i].channel->PrepareToSleep(sends, receives ? 1 : 0);
    ready = ready || ((sends || receives) && events == 0);
    Watch(streams_[i], events);
  }
  return ready ? 0 : POLLIN;
}

void StripedChannel::Wake() {
  for (TcpStream& stream : streams_) stream.channel->Wake();
}

}  // namespace tutti::comm

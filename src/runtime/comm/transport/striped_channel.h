// StripedChannel is one Channel over several others of equal kind (TCP streams, encrypted or not),
// for links that one stream does not fill: a network card spreads streams over its queues and a
// fabric over its paths.
//
// The bytes are cut into stripes of one size, which go to the streams in turn. So their order is
// implied, and nothing but the bytes themselves travels. A side sends to one stream at a time and
// receives from one; what makes the streams work at once is that each holds several stripes on
// their way (socket buffers are larger than a stripe).
//
// No deadlock comes of it: a byte that cannot be sent waits for room in its own stream, and room
// comes when the other side takes the bytes before it, all of which have been handed to their
// streams already and arrive. So a side that takes whatever comes, as every collective does, always
// reaches the stripe that is waited for.
#pragma once

#include <vector>

#include "base/unique_fd.h"
#include "runtime/comm/transport/staged_channel.h"

namespace tutti::comm {

class StripedChannel final : public StagedChannel {
 public:
  static constexpr size_t kStripe = 128 << 10;

  // Makes a channel of streams; both sides give their streams in the same order.
  static absl::StatusOr<std::unique_ptr<StripedChannel>> Make(
      std::vector<std::unique_ptr<Channel>> streams);

  size_t streams() const { return streams_.size(); }
  // Lets the first `streams` alone carry bytes from here on. Both sides do it at the same place of
  // either direction, by having received all that the other had sent before (and nothing is
  // staged).
  void UseFirst(int streams);

  absl::StatusOr<size_t> TrySend(std::span<const std::byte> bytes) override;
  absl::StatusOr<bool> Flush() override;
  int fd() const override { return watch_.get(); }
  void Wake() override;
  bool IsCheapToWatch() const override { return false; }

 protected:
  absl::StatusOr<size_t> ReceiveInto(std::span<std::byte> bytes) override;
  short PrepareTransportToSleep(bool to_send, bool to_receive) override;

 private:
  struct TcpStream {
    std::unique_ptr<Channel> channel;
    short watched = 0;  // the events that watch_ reports now
  };
  // Where one direction is: the stream of the next byte, and how much of its stripe is left.
  struct Place {
    size_t stream = 0;
    size_t left = kStripe;
  };

  explicit StripedChannel(base::UniqueFd watch) : watch_(std::move(watch)) {}
  void Advance(Place& place, size_t bytes) const;
  void Watch(TcpStream& stream, short events);

  base::UniqueFd watch_;  // an epoll over the streams
  std::vector<TcpStream> streams_;
  size_t used_ = 0;  // of them
  Place sending_;
  Place receiving_;
};

}  // namespace tutti::comm

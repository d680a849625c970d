#include "runtime/comm/collective/chain.h"

#include "base/status.h"

namespace tutti::comm {
namespace {

class ChainFlow final : public Flow {
 public:
  ChainFlow(std::span<std::byte> data, bool receives, bool sends)
      : data_(data), sent_(sends ? 0 : data.size()), taken_(receives ? 0 : data.size()) {}

  std::span<const std::byte> Outgoing() override {
    if (sent_ >= taken_) return {};
    return data_.subspan(sent_, taken_ - sent_);
  }
  void Sent(size_t bytes) override { sent_ += bytes; }
  size_t MinIncoming() override { return taken_ < data_.size() ? 1 : 0; }
  absl::StatusOr<size_t> Take(Channel& from) override {
    TUTTI_ASSIGN_OR_RETURN(const size_t n, from.TryReceive(data_.subspan(taken_)));
    taken_ += n;
    return n;
  }
  bool Done() const override { return sent_ == data_.size() && taken_ == data_.size(); }

 private:
  std::span<std::byte> data_;
  size_t sent_;
  size_t taken_;
};

}  // namespace

absl::Status ChainBroadcast(Links& links, std::span<std::byte> data, int root,
                            base::Deadline deadline) {
  const int size = links.size();
  const int place = (links.rank() - root + size) % size;
  const bool receives = place != 0;
  const bool sends = place + 1 < size;
  ChainFlow flow(data, receives, sends);
  return links.Move(flow, sends ? links.Right() : -1, receives ? links.Left() : -1, deadline);
}

}  // namespace tutti::comm

#include "runtime/comm/transport/ucx_channel.h"

#ifndef TUTTI_HAS_UCX

namespace tutti::comm {

absl::Status CheckUcx() {
  return absl::FailedPreconditionError(
      "TUTTI_TRANSPORT=ucx, but this tutti was built without UCX (install libucx-dev and build "
      "again)");
}

absl::Status ProbeUcx(const std::string&) {
  return absl::FailedPreconditionError(
      "this tutti was built without UCX (install libucx-dev and build again)");
}

absl::StatusOr<std::unique_ptr<Channel>> MakeUcxChannel(base::UniqueFd, const std::string&,
                                                        const Patience&) {
  return CheckUcx();
}

}  // namespace tutti::comm

#else

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"
#include "runtime/comm/transport/staged_channel.h"
#include "runtime/comm/transport/ucx_endpoint.h"

namespace tutti::comm {
namespace {

constexpr size_t kUcxBlockBytes = 64 << 10;
constexpr size_t kBlocks = 8;
constexpr int kArmTries = 32;  // UCX refuses while it has something to do
constexpr long kLookAgainNanoseconds = 200000;
constexpr absl::Duration kCloseTimeout = absl::Milliseconds(200);

class UcxChannel final : public StagedChannel {
 public:
  UcxChannel(base::UniqueFd socket, std::unique_ptr<UcxEndpoint> endpoint)
      : socket_(std::move(socket)), endpoint_(std::move(endpoint)) {}
  ~UcxChannel() override { Close(); }

  absl::Status Prepare(const Patience& patience);

  absl::StatusOr<size_t> TrySend(std::span<const std::byte> bytes) override;
  absl::StatusOr<bool> Flush() override;
  int fd() const override { return watch_.get(); }
  void Wake() override;
  bool IsCheapToWatch() const override { return true; }

 protected:
  absl::StatusOr<size_t> ReceiveInto(std::span<std::byte> bytes) override;
  short PrepareTransportToSleep(bool to_send, bool to_receive) override;

 private:
  struct Block {
    std::vector<std::byte> bytes;
    ucp_dt_iov_t part = {};  // which of the bytes are being sent
    UcxRequest request;
  };

  absl::Status Watch(int fd);
  absl::Status Greet(const Patience& patience);
  bool IsUnsent();
  bool HasRoom();
  void ReadLifeline();
  void SayLastWords();
  void Close();

  base::UniqueFd socket_;  // the lifeline
  std::unique_ptr<UcxEndpoint> endpoint_;
  base::UniqueFd watch_;  // an epoll over the worker, the lifeline and the timer
  base::UniqueFd timer_;
  std::array<Block, kBlocks> blocks_;
  size_t next_block_ = 0;
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
  bool closed_ = false;     // the lifeline has ended
  uint64_t will_come_ = 0;  // in good order, after so many bytes
  std::string last_words_;  // the other side's
  bool said_last_words_ = false;
  unsigned looks_ = 0;
};

absl::Status UcxChannel::Watch(int fd) {
  epoll_event event = {};
  event.events = EPOLLIN;
  if (::epoll_ctl(watch_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
  return base::ErrnoStatus("epoll_ctl");
}

absl::Status UcxChannel::Prepare(const Patience& patience) {
  watch_.reset(::epoll_create1(EPOLL_CLOEXEC));
  timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!watch_.valid() || !timer_.valid()) return base::ErrnoStatus("epoll_create1");
  TUTTI_RETURN_IF_ERROR(Greet(patience));
  TUTTI_RETURN_IF_ERROR(Watch(endpoint_->event_fd()));
  TUTTI_RETURN_IF_ERROR(Watch(timer_.get()));
  return Watch(socket_.get());
}

// A byte each way through UCX, and then one each way over the socket, which says that the former
// has come and that nothing is left to do here. Until both have both, both make progress: TCP's two
// sides may have opened a connection each, and the one that has heard all may still be asked which
// of them stays.
absl::Status UcxChannel::Greet(const Patience& patience) {
  std::byte greeting{1};
  TUTTI_RETURN_IF_ERROR(TrySend({&greeting, 1}).status());
  bool heard = false, told = false, answered = false;
  while (!answered || !told) {
    endpoint_->Progress();
    if (!heard && !endpoint_->Peek().empty()) {  // not by ReceiveInto, which reads the socket too
      endpoint_->Release(1);
      heard = true;
    }
    TUTTI_ASSIGN_OR_RETURN(const bool flushed, Flush());
    char byte = 0;
    if (heard && flushed && !told) {
      TUTTI_RETURN_IF_ERROR(comm::Send(socket_.get(), absl::string_view(&byte, 1), patience));
      told = true;
    }
    const ssize_t n = answered ? -1 : ::recv(socket_.get(), &byte, 1, MSG_DONTWAIT);
    if (n == 0) return ConnectionClosed();
    answered = answered || n == 1;
    if (patience.deadline.Expired()) return absl::DeadlineExceededError("UCX does not connect");
    pollfd interrupted = {patience.interrupt, POLLIN, 0};
    if (::poll(&interrupted, 1, 0) > 0) return absl::CancelledError("interrupted");
  }
  sent_ = received_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<size_t> UcxChannel::TrySend(std::span<const std::byte> bytes) {
  if (closed_) return ConnectionClosed();
  endpoint_->Progress();
  size_t sent = 0;
  while (sent < bytes.size() && HasRoom()) {
    Block& block = blocks_[next_block_];
    next_block_ = (next_block_ + 1) % kBlocks;
    const size_t part = std::min(bytes.size() - sent, kUcxBlockBytes);
    block.bytes.resize(kUcxBlockBytes);
    std::memcpy(block.bytes.data(), bytes.data() + sent, part);
    block.part = {block.bytes.data(), part};
    TUTTI_ASSIGN_OR_RETURN(block.request, endpoint_->Send(block.part));
    sent += part;
  }
  sent_ += sent;
  return sent;
}

// Blocks are used in turn, and UCX finishes them in that order.
bool UcxChannel::HasRoom() { return blocks_[next_block_].request.IsDone(); }

bool UcxChannel::IsUnsent() {
  return std::any_of(blocks_.begin(), blocks_.end(),
                     [](Block& block) { return !block.request.IsDone(); });
}

absl::StatusOr<bool> UcxChannel::Flush() {
  if (!IsUnsent()) return true;
  if (closed_ || endpoint_->failed()) return ConnectionClosed();
  endpoint_->Progress();
  return !IsUnsent();
}

// What the other side says as its last: eight bytes, then the end.
void UcxChannel::ReadLifeline() {
  if (closed_) return;
  char bytes[8];
  const ssize_t n = ::recv(socket_.get(), bytes, sizeof(bytes) - last_words_.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) last_words_.append(bytes, static_cast<size_t>(n));
  if (n > 0 && last_words_.size() < sizeof(will_come_)) return;
  if (last_words_.size() == sizeof(will_come_)) {
    std::memcpy(&will_come_, last_words_.data(), sizeof(will_come_));
  }
  closed_ = true;
  if (received_ >= will_come_) SayLastWords();
  ::epoll_ctl(watch_.get(), EPOLL_CTL_DEL, socket_.get(), nullptr);
}

absl::StatusOr<size_t> UcxChannel::ReceiveInto(std::span<std::byte> bytes) {
  const bool closed = closed_;  // before UCX is asked: what was sent before the end is then seen
  endpoint_->Progress();
  size_t n = 0;
  while (n < bytes.size()) {
    const std::span<const std::byte> come = endpoint_->Peek();
    if (come.empty()) break;
    const size_t part = std::min(come.size(), bytes.size() - n);
    std::memcpy(bytes.data() + n, come.data(), part);
    endpoint_->Release(part);
    n += part;
  }
  received_ += n;
  if (closed_ && received_ >= will_come_) SayLastWords();  // it waits to hear that all has come
  if (n == 0 && ++looks_ % 64 == 0) ReadLifeline();
  if (n == 0 && closed && received_ >= will_come_) return ConnectionClosed();
  if (n == 0 && endpoint_->failed()) return ConnectionClosed();
  return n;
}

short UcxChannel::PrepareTransportToSleep(bool to_send, bool to_receive) {
  const bool unsent = IsUnsent();
  if (to_send && HasRoom()) return 0;
  bool armed = false;
  for (int tries = 0; tries < kArmTries && !armed; ++tries) {
    const bool quiet = endpoint_->Progress() == 0;
    // Looked for after all progress: bytes that have come already give no event.
    if (to_receive && (!endpoint_->Peek().empty() || closed_)) return 0;
    armed = quiet && endpoint_->Arm();
  }
  if (to_send || unsent || !armed) {
    const itimerspec soon = {{0, 0}, {0, kLookAgainNanoseconds}};
    ::timerfd_settime(timer_.get(), 0, &soon, nullptr);
  }
  return POLLIN;
}

void UcxChannel::Wake() {
  uint64_t times = 0;
  [[maybe_unused]] const ssize_t n = ::read(timer_.get(), &times, sizeof(times));
  ReadLifeline();
}

void UcxChannel::SayLastWords() {
  if (std::exchange(said_last_words_, true)) return;
  char words[sizeof(sent_)];
  std::memcpy(words, &sent_, sizeof(sent_));
  [[maybe_unused]] const ssize_t n =
      ::send(socket_.get(), words, sizeof(words), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(socket_.get(), SHUT_WR);
}

// UCX takes what is still on its way with it, so the other side is waited for, briefly.
void UcxChannel::Close() {
  const base::Deadline deadline = base::Deadline::After(kCloseTimeout);
  const auto more = [&] { return !closed_ && !deadline.Expired(); };
  for (; more() && !Flush().value_or(true); ReadLifeline()) {
  }
  SayLastWords();
  for (; more(); ReadLifeline()) endpoint_->Progress();
}

}  // namespace

absl::Status CheckUcx() { return LoadUcx().status(); }

absl::Status ProbeUcx(const std::string& transports) {
  if (!CheckUcx().ok()) {
    return absl::FailedPreconditionError("UCX cannot be loaded (install libucx0)");
  }
  return UcxEndpoint::Probe(transports);
}

absl::StatusOr<std::unique_ptr<Channel>> MakeUcxChannel(base::UniqueFd socket,
                                                        const std::string& transports,
                                                        const Patience& patience) {
  TUTTI_ASSIGN_OR_RETURN(auto endpoint, UcxEndpoint::Make(socket.get(), transports, patience));
  auto channel = std::make_unique<UcxChannel>(std::move(socket), std::move(endpoint));
  TUTTI_RETURN_IF_ERROR(channel->Prepare(patience));
  return std::unique_ptr<Channel>(std::move(channel));
}

}  // namespace tutti::comm
#endif

#include "platform/storage/peers/peer_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/threads/start_thread.h"
#include "platform/storage/objects/guarded.h"

namespace tutti::storage {
namespace {

constexpr size_t kMostAskers = 1024;  // at the same time
constexpr absl::Duration kAfterFailure = absl::Milliseconds(10);
constexpr absl::Duration kBetweenWaits = absl::Seconds(2);  // less than PeerStream::kPatience
constexpr absl::Duration kStandstill = absl::Seconds(30);   // of this node's own fetch

}  // namespace

absl::StatusOr<std::unique_ptr<PeerServer>> PeerServer::Start(const std::string& address, int port,
                                                              const PieceMap& map,
                                                              PeerSecret secret, ReadPiece read) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &name.sin_addr) != 1) {
    return absl::InvalidArgumentError(absl::StrCat(address, " is no numeric address"));
  }
  base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.valid()) return base::ErrnoStatus("socket");
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 ||
      ::listen(listener.get(), 1024) != 0) {
    return base::ErrnoStatus(absl::StrCat("listen at ", address, ":", port));
  }
  return std::unique_ptr<PeerServer>(
      new PeerServer(std::move(listener), map, std::move(secret), std::move(read)));
}

PeerServer::PeerServer(base::UniqueFd listener, const PieceMap& map, PeerSecret secret,
                       ReadPiece read)
    : listener_(std::move(listener)),
      map_(map),
      secret_(std::move(secret)),
      read_(std::move(read)),
      last_word_(base::SteadyNow()),
      last_piece_(base::SteadyNow()) {
  accepts_ = base::StartThread([this] { Accept(); });
}

PeerServer::~PeerServer() {
  {
    absl::MutexLock lock(&mutex_);
    ends_ = true;
    for (const auto& [stream, thread] : open_) stream->Shutdown();
  }
  ::shutdown(listener_.get(), SHUT_RDWR);  // accept returns
  if (accepts_.joinable()) accepts_.join();
  {
    absl::MutexLock lock(&mutex_);
    const auto all_ended = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return open_.empty(); };
    mutex_.Await(absl::Condition(&all_ended));
  }
  JoinEnded();
}

// They have nothing left to do, so that this takes no time.
void PeerServer::JoinEnded() {
  std::vector<std::thread> ended;
  {
    absl::MutexLock lock(&mutex_);
    ended.swap(ended_);
  }
  for (std::thread& thread : ended) thread.join();
}

void PeerServer::Accept() {
  while (true) {
    base::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) absl::SleepFor(kAfterFailure);  // as where no descriptor is left
    JoinEnded();
    absl::MutexLock lock(&mutex_);
    if (ends_) return;
    if (!fd.valid() || open_.size() >= kMostAskers) continue;
    auto stream = std::make_shared<PeerStream>(std::move(fd));
    std::thread thread = base::StartThread([this, stream] { Serve(*stream); });
    if (!thread.joinable()) continue;
    open_[stream.get()] = std::move(thread);
  }
}

void PeerServer::Serve(PeerStream& stream) {
  const absl::StatusOr<int> node = stream.IntroduceAsOwner(secret_);
  std::vector<char> buffer;
  while (node.ok()) {
    const auto line = stream.ReceiveLine();
    if (absl::IsDeadlineExceeded(line.status())) continue;  // it asks for others meanwhile
    if (!line.ok()) break;
    {
      absl::MutexLock lock(&mutex_);
      last_word_ = base::SteadyNow();
      if (*line == "done") done_.insert(*node);
      if (ends_) break;
    }
    if (*line == "done") continue;
    const absl::Status answered = Guarded([&] { return Answer(stream, *line, buffer); });
    if (!answered.ok()) break;
  }
  absl::MutexLock lock(&mutex_);
  const auto here = open_.find(&stream);
  ended_.push_back(std::move(here->second));
  open_.erase(here);
}

// Returns the piece once it is there; NotFound once this node does not get on.
absl::StatusOr<PeerServer::There> PeerServer::AwaitPiece(PeerStream& stream, int64_t piece) {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      const auto is_there = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return ends_ || there_.contains(piece);
      };
      mutex_.AwaitWithTimeout(absl::Condition(&is_there), kBetweenWaits);
      if (const auto found = there_.find(piece); found != there_.end()) return found->second;
      if (ends_ || base::SteadyNow() - last_piece_ > kStandstill) {
        return absl::NotFoundError("it does not come");
      }
    }
    TUTTI_RETURN_IF_ERROR(stream.SendLine("wait"));
  }
}

absl::Status PeerServer::Answer(PeerStream& stream, absl::string_view request,
                                std::vector<char>& buffer) {
  const std::vector<std::string> words = absl::StrSplit(request, ' ');
  int64_t piece = 0;
  const bool is_get = words.size() == 3 && words[0] == "get" &&
                      absl::SimpleAtoi(words[1], &piece) && piece >= 0 && piece < map_.count();
  if (!is_get) return absl::InvalidArgumentError("no request for a piece");
  absl::StatusOr<There> there = AwaitPiece(stream, piece);
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  if (!there.ok() || there->version != words[2]) return stream.SendLine("no");
  const PieceMap::Place place = map_.PlaceOf(piece);
  buffer.resize(std::max(buffer.size(), static_cast<size_t>(place.bytes)));
  const std::span<char> bytes(buffer.data(), static_cast<size_t>(place.bytes));
  if (!read_(piece, bytes).ok()) return stream.SendLine("no");
  if (there->sha256.empty()) {
    there->sha256 = base::Hex(base::Sha256Of({bytes.data(), bytes.size()}));
  }
  TUTTI_RETURN_IF_ERROR(stream.SendLine(absl::StrCat("piece ", there->sha256, " ", bytes.size())));
  bytes_sent_ += place.bytes;
  TUTTI_RETURN_IF_ERROR(stream.Send(bytes));
  absl::MutexLock lock(&mutex_);
  last_word_ = base::SteadyNow();
  return absl::OkStatus();
}

void PeerServer::Publish(int64_t piece, const std::string& version, const std::string& sha256) {
  absl::MutexLock lock(&mutex_);
  there_[piece] = {version, sha256};
  last_piece_ = base::SteadyNow();
}

void PeerServer::AwaitDone(std::set<int> nodes, absl::Duration patience) {
  absl::MutexLock lock(&mutex_);
  const auto are_done = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return std::includes(done_.begin(), done_.end(), nodes.begin(), nodes.end());
  };
  last_word_ = base::SteadyNow();
  while (!are_done()) {
    const absl::Duration left = last_word_ + patience - base::SteadyNow();
    if (left <= absl::ZeroDuration()) return;
    mutex_.AwaitWithTimeout(absl::Condition(&are_done), left);
  }
}

}  // namespace tutti::storage

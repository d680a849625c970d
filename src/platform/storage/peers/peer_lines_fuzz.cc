// Any bytes at the port by which nodes give each other what they have fetched, which is open to
// strangers: as one who has no token, as a node that asks, and as one that is asked. Who has no
// token gets nothing; no piece is taken whose hash is not the one that was told with it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/unique_fd.h"
#include "platform/storage/peers/peer_client.h"
#include "platform/storage/peers/peer_server.h"
#include "platform/storage/peers/peer_stream.h"
#include "platform/storage/peers/peers_for_tests.h"

namespace tutti::storage {
namespace {

constexpr char kHere[] = "127.0.0.1";
constexpr int64_t kPiece = 100;  // bytes

void Check(bool holds) {
  if (!holds) std::abort();
}

PeerSecret Secret() { return {"the job's", "the list's"}; }

sockaddr_in NameOf(int port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, kHere, &name.sin_addr);
  return name;
}

base::UniqueFd ConnectTo(int port) {
  base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in name = NameOf(port);
  Check(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
  return fd;
}

void SendAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;  // it has had enough
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

// Reads until the far end has closed.
void Drain(int fd) {
  std::array<char, 4096> block;
  while (::recv(fd, block.data(), block.size(), 0) > 0) {
  }
}

// Owner is one server for all inputs, as a node has it for as long as it fetches.
struct Owner {
  Owner() {
    auto started = PeerServer::Start(kHere, port, map, Secret(), [](int64_t, std::span<char> out) {
      std::fill(out.begin(), out.end(), 'x');
      return absl::OkStatus();
    });
    Check(started.ok());
    server = *std::move(started);
    for (int64_t piece = 0; piece < map.count(); ++piece) server->Publish(piece, "v1", "");
  }
  const int port = FreePort();
  const std::vector<StoredObject> objects = {{"large", 2 * kPiece}, {"none", 0}};
  const PieceMap map{objects, kPiece, 0, 2};
  std::unique_ptr<PeerServer> server;
};

// The last line is no request, at which the server closes.
void AskAsStranger(Owner& owner, absl::string_view bytes) {
  const base::UniqueFd fd = ConnectTo(owner.port);
  SendAll(fd.get(), absl::StrCat(bytes, "\nx\nx\n"));
  Drain(fd.get());
  Check(owner.server->bytes_sent() == 0);
}

void AskAsNode(int port, absl::string_view bytes) {
  const base::UniqueFd fd = ConnectTo(port);
  PeerStream stream(base::UniqueFd(::dup(fd.get())));
  Check(stream.IntroduceAsAsker(1, Secret()).ok());
  SendAll(fd.get(), absl::StrCat(bytes, "\nx\n"));
  Drain(fd.get());
}

// Answers the next connection by these bytes.
void AnswerOnce(int listener, bool introduces, absl::string_view bytes) {
  const base::UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  PeerStream stream(base::UniqueFd(::dup(fd.get())));
  if (introduces) Check(stream.IntroduceAsOwner(Secret()).ok());
  SendAll(fd.get(), bytes);
  ::shutdown(fd.get(), SHUT_WR);
  Drain(fd.get());
}

void BeAnswered(bool introduces, absl::string_view bytes) {
  const base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name = NameOf(0);
  socklen_t size = sizeof name;
  Check(::bind(listener.get(), reinterpret_cast<sockaddr*>(&name), size) == 0);
  Check(::listen(listener.get(), 1) == 0);
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&name), &size);
  std::thread answers([&] { AnswerOnce(listener.get(), introduces, bytes); });
  {
    PeerClient client({.node = 1,
                       .addresses = {kHere, "127.0.0.2"},
                       .port = ntohs(name.sin_port),
                       .token = Secret().token,
                       .first_contact = -absl::Seconds(1)},
                      Secret());
    std::vector<char> out(4);
    if (client.Fetch(0, 0, "v1", out).ok()) {
      const std::string hash = base::Hex(base::Sha256Of({out.data(), out.size()}));
      Check(introduces && absl::StrContains(bytes, hash));
    }
  }
  answers.join();
}

}  // namespace
}  // namespace tutti::storage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti::storage;  // NOLINT(google-build-using-namespace)
  static Owner strangers, nodes;
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      AskAsStranger(strangers, bytes);
      break;
    case 1:
      AskAsNode(nodes.port, bytes);
      break;
    default:
      BeAnswered(data[0] % 4 == 2, bytes);
  }
  return 0;
}

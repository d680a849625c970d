#include "platform/launch/mpi/rank_listener.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::launch {
namespace {

using nlohmann::json;

constexpr char kStarterEnded[] = "the process that was to start it ended first";

absl::StatusOr<sockaddr_un> SocketAddress(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is too long for a socket"));
  }
  std::memcpy(name.sun_path, path.data(), path.size());
  return name;
}

bool IsOfThisUser(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::getuid();
}

template <class T>
T FieldOr(const json& message, const char* name, T otherwise) {
  try {
    return message.value(name, otherwise);
  } catch (const json::exception&) {
    return otherwise;
  }
}

// A file in memory that the far end reads by its descriptor.
absl::StatusOr<base::UniqueFd> InMemory(const std::string& text) {
  base::UniqueFd fd(::memfd_create("start", MFD_CLOEXEC));
  if (!fd.valid()) return base::ErrnoStatus("memfd_create");
  TUTTI_RETURN_IF_ERROR(base::WriteAll(fd.get(), text, "memfd"));
  return fd;
}

}  // namespace

absl::StatusOr<RankListener> RankListener::Open(const std::filesystem::path& socket) {
  TUTTI_ASSIGN_OR_RETURN(const sockaddr_un name, SocketAddress(socket.string()));
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::ErrnoStatus("socket");
  ::unlink(socket.c_str());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 ||
      ::chmod(socket.c_str(), 0600) != 0 || ::listen(fd.get(), 4096) != 0) {
    return base::ErrnoStatus(absl::StrCat("listen at ", socket.string()));
  }
  return RankListener(std::move(fd));
}

absl::StatusOr<base::UniqueFd> ConnectToLauncher(const std::string& socket) {
  TUTTI_ASSIGN_OR_RETURN(const sockaddr_un name, SocketAddress(socket));
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return base::ErrnoStatus("socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    return base::ErrnoStatus(absl::StrCat("the launcher at ", socket));
  }
  return fd;
}

void RankListener::AddTo(std::vector<pollfd>& waiting) const {
  waiting.push_back({listener_.get(), POLLIN, 0});
  for (const Client& client : clients_) waiting.push_back({client.socket.fd(), POLLIN, 0});
}

void RankListener::AcceptAll() {
  while (true) {
    base::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) return;
    if (IsOfThisUser(fd.get())) clients_.push_back({next_number_++, LineSocket(std::move(fd))});
  }
}

std::vector<RankMessage> RankListener::Take() {
  AcceptAll();
  std::vector<RankMessage> messages;
  for (Client& client : clients_) {
    while (!client.over) {
      const absl::StatusOr<std::optional<json>> text = client.socket.Take();
      if (text.ok() && !*text) break;
      if (text.ok()) {
        if (auto message = Parse(client, **text)) messages.push_back(*message);
        continue;
      }
      client.over = true;
      if (client.rank < 0) continue;
      messages.push_back(OfDisconnected(client));
    }
  }
  std::erase_if(clients_, [](const Client& client) { return client.over; });
  return messages;
}

// For a rank that has gone without saying why.
RankMessage RankListener::OfDisconnected(const Client& client) {
  RankMessage message{RankMessage::Kind::kEnded, client.number, client.rank};
  message.status.signal = SIGKILL;
  if (client.is_pmix_task) {
    message.kind = RankMessage::Kind::kTerminating;
  } else if (!client.begun) {
    message.kind = RankMessage::Kind::kFailed;
    message.reason = kStarterEnded;
  }
  return message;
}

std::optional<RankMessage> RankListener::Parse(Client& client, const json& text) {
  const std::string kind = FieldOr<std::string>(text, "kind", "");
  RankMessage message{RankMessage::Kind::kRank, client.number, client.rank};
  if (kind == "rank" && client.rank < 0) {
    message.rank = FieldOr(text, "rank", -1);
    message.pid = FieldOr(text, "pid", 0);
    return message;
  }
  if (kind == "pmix-task") {
    message.kind = RankMessage::Kind::kPmixTask;
    message.rank = client.rank = FieldOr(text, "rank", -1);
    client.is_pmix_task = true;
    message.variables = FieldOr(text, "variables", message.variables);
    return message;
  }
  if (kind == "begun") {
    client.begun = true;
    return std::nullopt;
  }
  if (kind == "stop-requested") {
    message.kind = RankMessage::Kind::kTerminating;
    return message;
  }
  if (kind == "ended") {
    message.kind = RankMessage::Kind::kEnded;
    message.status = {.code = FieldOr(text, "code", 0), .signal = FieldOr(text, "signal", 0)};
    client.socket.Send({{"kind", "taken"}}).IgnoreError();
    client.over = true;
    return message;
  }
  if (kind == "failed") {
    message.kind = RankMessage::Kind::kFailed;
    message.reason = FieldOr<std::string>(text, "reason", "");
    client.over = true;
    return message;
  }
  if (kind == "agent") {
    message.kind = RankMessage::Kind::kAgent;
    message.host = FieldOr<std::string>(text, "host", "");
    message.command = FieldOr<std::string>(text, "command", "");
    return message;
  }
  client.over = true;
  return std::nullopt;
}

RankListener::Client* RankListener::Find(int number) {
  for (Client& client : clients_) {
    if (client.number == number) return &client;
  }
  return nullptr;
}

absl::Status RankListener::SendStart(int number, int stdout_fd, int stderr_fd,
                                     const std::vector<int>& view, const json& start) {
  Client* const client = Find(number);
  if (client == nullptr) return absl::UnavailableError(kStarterEnded);
  client->rank = FieldOr(start, "rank", -1);
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd text,
                         InMemory(start.dump(-1, ' ', false, json::error_handler_t::replace)));
  std::vector<int> fds = {stdout_fd, stderr_fd, text.get()};
  fds.insert(fds.end(), view.begin(), view.end());
  return SendFds(client->socket.fd(), fds);
}

void RankListener::SendEnd(int rank, base::ExitStatus status) {
  for (Client& client : clients_) {
    if (!client.is_pmix_task || client.rank != rank) continue;
    client.socket.Send({{"code", status.code}, {"signal", status.signal}}).IgnoreError();
    client.over = true;
  }
}

void RankListener::AnswerAgent(int number, const std::string& error) {
  Client* const client = Find(number);
  if (client != nullptr) client->socket.Send({{"error", error}}).IgnoreError();
}

}  // namespace tutti::launch

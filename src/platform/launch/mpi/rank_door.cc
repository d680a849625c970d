#include "platform/launch/mpi/rank_door.h"

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

absl::StatusOr<sockaddr_un> DoorAddress(const std::string& path) {
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
T Said(const json& message, const char* name, T otherwise) {
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

absl::StatusOr<RankDoor> RankDoor::Open(const std::filesystem::path& socket) {
  TUTTI_ASSIGN_OR_RETURN(const sockaddr_un name, DoorAddress(socket.string()));
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::ErrnoStatus("socket");
  ::unlink(socket.c_str());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 ||
      ::chmod(socket.c_str(), 0600) != 0 || ::listen(fd.get(), 4096) != 0) {
    return base::ErrnoStatus(absl::StrCat("listen at ", socket.string()));
  }
  return RankDoor(std::move(fd));
}

absl::StatusOr<base::UniqueFd> KnockAt(const std::string& socket) {
  TUTTI_ASSIGN_OR_RETURN(const sockaddr_un name, DoorAddress(socket));
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return base::ErrnoStatus("socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    return base::ErrnoStatus(absl::StrCat("the launcher at ", socket));
  }
  return fd;
}

void RankDoor::AddTo(std::vector<pollfd>& waiting) const {
  waiting.push_back({listener_.get(), POLLIN, 0});
  for (const Visitor& visitor : visitors_) waiting.push_back({visitor.socket.fd(), POLLIN, 0});
}

void RankDoor::LetIn() {
  while (true) {
    base::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) return;
    if (IsOfThisUser(fd.get())) visitors_.push_back({next_number_++, LineSocket(std::move(fd))});
  }
}

std::vector<DoorNews> RankDoor::Take() {
  LetIn();
  std::vector<DoorNews> news;
  for (Visitor& visitor : visitors_) {
    while (!visitor.over) {
      const absl::StatusOr<std::optional<json>> message = visitor.socket.Take();
      if (message.ok() && !*message) break;
      if (message.ok()) {
        if (auto understood = Understand(visitor, **message)) news.push_back(*understood);
        continue;
      }
      visitor.over = true;
      if (visitor.rank < 0) continue;
      news.push_back(Gone(visitor));
    }
  }
  std::erase_if(visitors_, [](const Visitor& visitor) { return visitor.over; });
  return news;
}

// One of a rank that left without saying how that came.
DoorNews RankDoor::Gone(const Visitor& visitor) {
  DoorNews news{DoorNews::Kind::kEnded, visitor.number, visitor.rank};
  news.status.signal = SIGKILL;
  if (visitor.is_place) {
    news.kind = DoorNews::Kind::kTold;
  } else if (!visitor.begun) {
    news.kind = DoorNews::Kind::kFailed;
    news.reason = "the process that was to start it ended first";
  }
  return news;
}

std::optional<DoorNews> RankDoor::Understand(Visitor& visitor, const json& message) {
  const std::string kind = Said<std::string>(message, "kind", "");
  DoorNews news{DoorNews::Kind::kRank, visitor.number, visitor.rank};
  if (kind == "rank" && visitor.rank < 0) {
    news.rank = Said(message, "rank", -1);
    news.pid = Said(message, "pid", 0);
    return news;
  }
  if (kind == "place") {
    news.kind = DoorNews::Kind::kPlace;
    news.rank = visitor.rank = Said(message, "rank", -1);
    visitor.is_place = true;
    news.variables = Said(message, "variables", news.variables);
    return news;
  }
  if (kind == "begun") {
    visitor.begun = true;
    return std::nullopt;
  }
  if (kind == "told") {
    news.kind = DoorNews::Kind::kTold;
    return news;
  }
  if (kind == "ended") {
    news.kind = DoorNews::Kind::kEnded;
    news.status = {.code = Said(message, "code", 0), .signal = Said(message, "signal", 0)};
    visitor.socket.Send({{"kind", "taken"}}).IgnoreError();
    visitor.over = true;
    return news;
  }
  if (kind == "failed") {
    news.kind = DoorNews::Kind::kFailed;
    news.reason = Said<std::string>(message, "reason", "");
    visitor.over = true;
    return news;
  }
  if (kind == "agent") {
    news.kind = DoorNews::Kind::kAgent;
    news.host = Said<std::string>(message, "host", "");
    news.command = Said<std::string>(message, "command", "");
    return news;
  }
  visitor.over = true;
  return std::nullopt;
}

RankDoor::Visitor* RankDoor::Find(int number) {
  for (Visitor& visitor : visitors_) {
    if (visitor.number == number) return &visitor;
  }
  return nullptr;
}

absl::Status RankDoor::Welcome(int number, int stdout_fd, int stderr_fd, const json& start) {
  Visitor* const visitor = Find(number);
  if (visitor == nullptr) return absl::UnavailableError("the rank has gone");
  visitor->rank = Said(start, "rank", -1);
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd text,
                         InMemory(start.dump(-1, ' ', false, json::error_handler_t::replace)));
  return SendFds(visitor->socket.fd(), {stdout_fd, stderr_fd, text.get()});
}

void RankDoor::TellEnd(int rank, base::ExitStatus status) {
  for (Visitor& visitor : visitors_) {
    if (!visitor.is_place || visitor.rank != rank) continue;
    visitor.socket.Send({{"code", status.code}, {"signal", status.signal}}).IgnoreError();
    visitor.over = true;
  }
}

void RankDoor::Answer(int number, const std::string& error) {
  Visitor* const visitor = Find(number);
  if (visitor != nullptr) visitor->socket.Send({{"error", error}}).IgnoreError();
}

}  // namespace tutti::launch

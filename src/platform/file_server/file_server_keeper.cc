#include "platform/file_server/file_server_keeper.h"

#include <set>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/threads/start_thread.h"
#include "spdlog/spdlog.h"

namespace tutti::file_server {
namespace fs = std::filesystem;

FileServerKeeper::FileServerKeeper(KeeperOptions options) : options_(std::move(options)) {}

FileServerKeeper::~FileServerKeeper() {
  {
    absl::MutexLock lock(&mutex_);
    is_ending_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void FileServerKeeper::Run() {
  work_.Start();
  thread_ = base::StartThread([this] {
    while (true) {
      Look();
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&is_ending_), options_.between_looks)) return;
    }
  });
}

void FileServerKeeper::Dispatch(const std::string& name, const std::function<void(Served&)>& task) {
  std::shared_ptr<Served>& served = served_[name];
  if (served == nullptr) {
    served = std::make_shared<Served>(
        ServedFolder(ServerFolder(options_.home, name), options_.program, options_.clock));
  }
  if (served->is_busy.exchange(true)) return;
  work_.Do(name, [served, task] {
    const absl::Cleanup done = [&] { served->is_busy = false; };
    if (!served->is_gone) task(*served);  // else the next look begins anew
  });
}

// Removes servers that are not in the list any more, also those that a service before this one has
// left.
void FileServerKeeper::RemoveOthers(const spec::FileServers& servers) {
  std::set<std::string> names;
  for (const auto& entry : served_) names.insert(entry.first);
  std::error_code error;
  for (fs::directory_iterator at(ServersFolder(options_.home), error), end; !error && at != end;
       at.increment(error)) {
    names.insert(at->path().filename().native());
  }
  for (const std::string& name : names) {
    if (servers.contains(name)) continue;
    Dispatch(name, [name](Served& served) {
      if (const absl::Status removed = served.folder.Remove(); !removed.ok()) {
        spdlog::warn("file server {}: {}", name, removed.ToString());
        return;
      }
      served.is_gone = true;
      spdlog::info("file server {} is no more", name);
    });
  }
}

// A list that cannot be read leaves the servers as they are.
void FileServerKeeper::Look() {
  const auto servers = spec::ReadFileServers(options_.home);
  const std::string trouble(servers.status().message());
  if (trouble != trouble_ && !trouble.empty()) spdlog::warn("{}", trouble);
  trouble_ = trouble;
  if (!servers.ok()) return;
  std::erase_if(served_, [](const auto& entry) { return entry.second->is_gone.load(); });
  RemoveOthers(*servers);
  for (const auto& [name, server] : *servers) {
    Dispatch(name, [server = server](Served& served) { served.folder.Look(server); });
  }
}

}  // namespace tutti::file_server

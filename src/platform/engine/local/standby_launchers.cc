#include "platform/engine/local/standby_launchers.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/status.h"

namespace tutti::engine {
namespace {

constexpr int kMostNodes = 16;  // an idle launcher costs some megabytes
constexpr absl::Duration kAfterTaking = absl::Milliseconds(20);
constexpr absl::Duration kAfterFailure = absl::Seconds(10);
constexpr absl::Duration kToEnd = absl::Seconds(2);

}  // namespace

Standby::~Standby() {
  if (!input_.valid()) return;  // the plan was sent, or it is another object's now
  input_.reset();
  process.Wait(base::Deadline::After(kToEnd)).IgnoreError();
}

bool Standby::SendPlan(const std::filesystem::path& plan) {
  const std::string line = absl::StrCat(plan.string(), "\n");
  const ssize_t sent = ::send(input_.get(), line.data(), line.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(line.size())) return false;  // it has died
  input_.reset();
  return true;
}

StandbyLaunchers::StandbyLaunchers(int nodes, Starter start) : start_(std::move(start)) {
  for (int node = 0; node < std::min(nodes, kMostNodes); ++node) missing_[node] = base::SteadyNow();
  thread_ = std::thread([this] { Run(); });
}

StandbyLaunchers::~StandbyLaunchers() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
  absl::MutexLock lock(&mutex_);
  for (auto& [node, waiting] : waiting_) waiting.EndInput();
  for (Standby& old : old_) old.EndInput();
}

int StandbyLaunchers::Due(absl::Duration& wait) const {
  const absl::Duration now = base::SteadyNow();
  wait = absl::Hours(1);
  for (const auto& [node, when] : missing_) {
    if (when <= now) return node;
    wait = std::min(wait, when - now);
  }
  return -1;
}

void StandbyLaunchers::Run() {
  while (true) {
    int node = -1;
    std::vector<Standby> old;  // end outside of the lock
    {
      absl::MutexLock lock(&mutex_);
      std::swap(old, old_);
      absl::Duration wait;
      node = Due(wait);
      const size_t missing = missing_.size();
      const auto changed = [this, missing]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return ending_ || missing_.size() != missing;
      };
      if (node < 0) mutex_.AwaitWithTimeout(absl::Condition(&changed), wait);
      if (ending_) return;
    }
    if (node >= 0) Make(node);
  }
}

void StandbyLaunchers::Make(int node) {
  int64_t given_up = 0;
  {
    absl::MutexLock lock(&mutex_);
    given_up = given_up_;
  }
  int ends[2];
  absl::StatusOr<base::ChildProcess> process = absl::UnknownError("");
  base::UniqueFd input;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0) {
    input.reset(ends[0]);
    const base::UniqueFd theirs(ends[1]);
    process = start_(node, theirs.get());
  } else {
    process = base::ErrnoStatus("socketpair");
  }
  absl::MutexLock lock(&mutex_);
  if (process.ok() && given_up != given_up_) {
    old_.emplace_back(*std::move(process), std::move(input));  // it may be as blind as they were
  } else if (process.ok()) {
    missing_.erase(node);
    waiting_.emplace(node, Standby(*std::move(process), std::move(input)));
  } else {
    spdlog::warn("no launcher waits on node {}: {}", node + 1, process.status().ToString());
    missing_[node] = base::SteadyNow() + kAfterFailure;
  }
}

void StandbyLaunchers::EndStandbysWithOldMounts() {
  if (!new_mounts_.Any()) return;
  ++given_up_;
  for (auto& [node, waiting] : waiting_) {
    waiting.EndInput();
    old_.push_back(std::move(waiting));
    missing_[node] = base::SteadyNow();
  }
  waiting_.clear();
}

std::optional<Standby> StandbyLaunchers::Take(int node) {
  absl::MutexLock lock(&mutex_);
  EndStandbysWithOldMounts();
  const auto found = waiting_.find(node);
  if (found == waiting_.end()) return std::nullopt;
  Standby taken = std::move(found->second);
  waiting_.erase(found);
  missing_[node] = base::SteadyNow() + kAfterTaking;
  return taken;
}

}  // namespace tutti::engine

#include "platform/service/health/machine_checker.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/process/command.h"
#include "base/status.h"
#include "platform/health/check_program.h"
#include "platform/health/disk_check.h"
#include "platform/health/gpu_watch.h"
#include "platform/health/kernel_checks.h"
#include "spec/site/site.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;
using Outcome = health::NodeCheck::Outcome;

constexpr absl::Duration kDiskLimit = absl::Seconds(30);
constexpr absl::Duration kBetweenGlances = absl::Seconds(5);
// A glance writes to a disk no more often: an idle machine's may rest.
constexpr absl::Duration kBetweenWrites = absl::Seconds(30);

class MachineChecker final : public NodeChecker {
 public:
  explicit MachineChecker(const MachineCheckerOptions& options) : options_(options) {
    if (!options_.kernel_log) options_.kernel_log = health::ReadKernelLog;
  }

  std::vector<health::NodeCheck> Check(const engine::Node& node, absl::Duration age) override {
    std::vector<health::NodeCheck> checks = {DiskOf("disk", node.directory, age)};
    const Machine machine = MachineWithin(age);
    checks.insert(checks.end(), machine.checks.begin(), machine.checks.end());
    if (!node.gpus.empty() && machine.gpus) {
      checks.push_back(machine.gpus->ok() ? health::CheckGpus(**machine.gpus, node.gpus)
                                          : health::CheckOfUnseenGpus(machine.gpus->status()));
    }
    return checks;
  }

  // Without the GPUs' program and the site's.
  std::vector<health::NodeCheck> Glance(const engine::Node& node) override {
    std::vector<health::NodeCheck> checks = {DiskOf("disk", node.directory, kBetweenWrites)};
    const Machine machine = GlanceAtMachine();
    checks.insert(checks.end(), machine.checks.begin(), machine.checks.end());
    if (!node.gpus.empty() && machine.gpus && machine.gpus->ok()) {
      checks.push_back(health::CheckGpus(**machine.gpus, node.gpus));
    }
    return checks;
  }
  absl::Duration glance_interval() const override { return kBetweenGlances; }

  void Accept() override { accept_ = true; }
  void Abandon() override { abandoned_ = true; }

  absl::Duration interval() const override { return absl::Seconds(interval_.load()); }
  absl::Duration patience() const override {
    return kDiskLimit + health::kGpuLimit + absl::Seconds(program_limit_.load());
  }

 private:
  struct Machine {
    absl::Duration at;                      // SteadyNow
    std::vector<health::NodeCheck> checks;  // of all nodes
    // The faults of its GPUs, or why they cannot be seen; none: it has none.
    std::optional<absl::StatusOr<std::vector<health::GpuFault>>> gpus;
  };

  // Folders of one file system share a probe that went well.
  health::NodeCheck DiskOf(const std::string& name, const fs::path& folder, absl::Duration age) {
    struct stat status = {};
    const bool is_there = ::stat(folder.c_str(), &status) == 0;
    if (is_there) {
      absl::MutexLock lock(&disk_mutex_);
      const auto known = disks_.find(status.st_dev);
      if (known != disks_.end() && base::SteadyNow() - known->second.first < age) {
        return {name, Outcome::kWell, known->second.second};
      }
    }
    health::NodeCheck check = health::CheckDisk(name, folder);
    absl::MutexLock lock(&disk_mutex_);
    if (is_there && !check.ill()) disks_[status.st_dev] = {base::SteadyNow(), check.detail};
    return check;
  }

  // Holds what a look has seen last, for the glances that follow it.
  struct Seen {
    std::vector<std::string> links;
    std::vector<health::Gpu> gpus;
    absl::Duration log_after = -absl::InfiniteDuration();  // since boot; what counts in the log
  };

  Machine GlanceAtMachine() {
    absl::MutexLock lock(&glance_mutex_);
    if (glance_ && base::SteadyNow() - glance_->at < kBetweenGlances) return *glance_;
    Machine machine;
    machine.checks = {DiskOf("home", options_.home, kBetweenWrites),
                      health::CheckMemory(options_.root)};
    if (!seen_.links.empty()) {
      machine.checks.push_back(health::CheckLinks(seen_.links, options_.root));
    }
    if (!seen_.gpus.empty()) {
      machine.gpus = health::FaultsOf({}, seen_.gpus,
                                      health::DeviceXids(options_.kernel_log(), seen_.log_after));
    }
    machine.at = base::SteadyNow();
    glance_ = machine;
    return machine;
  }

  void NoteSeen(Seen seen) {
    absl::MutexLock lock(&glance_mutex_);
    seen_ = std::move(seen);
    glance_.reset();
  }

  Machine MachineWithin(absl::Duration age) {
    absl::MutexLock lock(&mutex_);
    if (machine_ && base::SteadyNow() - machine_->at < age) return *machine_;
    Machine machine;
    Seen seen;
    machine.checks = {DiskOf("home", options_.home, age), health::CheckMemory(options_.root)};
    const auto site = spec::ReadSite(options_.home);
    if (site.ok()) {
      const spec::HealthCheck& check = site->health_check;
      interval_ = check.interval_seconds;
      program_limit_ = check.command.empty() ? 0 : check.timeout_seconds;
      seen.links = check.links;
      if (!check.links.empty())
        machine.checks.push_back(health::CheckLinks(check.links, options_.root));
      if (!check.command.empty())
        machine.checks.push_back(health::CheckByProgram(check, abandoned_));
    } else {
      machine.checks.push_back(
          {"site", Outcome::kUnknown, health::FirstWords(site.status().message())});
    }
    if (abandoned_) return {};
    LookAtGpus(machine, seen);
    NoteSeen(std::move(seen));
    machine.at = base::SteadyNow();
    machine_ = machine;
    return machine;
  }

  fs::path GpuFile() const { return options_.home / "gpus"; }

  void LookAtGpus(Machine& machine, Seen& seen) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::vector<health::Gpu> before =
        health::GpusFromText(base::ReadFile(GpuFile()).value_or(""));
    std::error_code error;
    const bool is_awaited = !before.empty() || fs::exists(options_.root / "dev/nvidia0", error);
    const auto now = health::FindGpus(options_.nvidia_smi, abandoned_);
    if (!now.ok()) {
      if (!is_awaited) return;
      machine.gpus = now.status();
      return;
    }
    if (before.empty() && now->empty()) return;
    const bool accepts = accept_.exchange(false);
    const std::string log = options_.kernel_log();
    if (accepts) accepted_log_ = health::LastTimeOf(log);
    seen.gpus = *now;
    seen.log_after = std::max(accepted_log_, base::SteadyNow() - health::kXidCounts);
    machine.gpus =
        health::FaultsOf(accepts ? *now : before, *now, health::DeviceXids(log, seen.log_after));
    Remember(accepts ? std::vector<health::Gpu>() : before, *now);
  }

  // Those that were seen stay until they are accepted to be gone.
  void Remember(std::vector<health::Gpu> known, const std::vector<health::Gpu>& now) const {
    const std::string old = health::ToText(known);
    for (const health::Gpu& gpu : now) {
      const auto same = [&](const health::Gpu& other) { return other.uuid == gpu.uuid; };
      if (std::none_of(known.begin(), known.end(), same)) known.push_back(gpu);
    }
    const std::string text = health::ToText(known);
    if (text == old) return;
    const absl::Status written = base::WriteFileAtomic(GpuFile(), text);
    if (!written.ok()) spdlog::warn("{}", written.ToString());
  }

  MachineCheckerOptions options_;
  std::atomic<bool> accept_ = false, abandoned_ = false;
  std::atomic<int> interval_ = spec::HealthCheck().interval_seconds;
  std::atomic<int> program_limit_ = 0;  // seconds; of the site's program, if there is one
  absl::Mutex disk_mutex_;
  // It says of each device when its last probe went well, and what was told of it.
  std::map<dev_t, std::pair<absl::Duration, std::string>> disks_ ABSL_GUARDED_BY(disk_mutex_);
  absl::Mutex glance_mutex_;  // taken after the other
  Seen seen_ ABSL_GUARDED_BY(glance_mutex_);
  std::optional<Machine> glance_ ABSL_GUARDED_BY(glance_mutex_);
  absl::Mutex mutex_;  // held while the machine is looked at, so that its nodes share that
  std::optional<Machine> machine_ ABSL_GUARDED_BY(mutex_);
  // What the kernel had logged up to then, since boot, is accepted.
  absl::Duration accepted_log_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
};

}  // namespace

std::unique_ptr<NodeChecker> MakeMachineChecker(const MachineCheckerOptions& options) {
  return std::make_unique<MachineChecker>(options);
}

}  // namespace tutti::service

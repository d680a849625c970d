// StarterFixture gives tests of starters a node with its folders, spool, event log and table of
// ranks, and a supervisor that notes what it is asked for.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "platform/launch/environment/pmi_id.h"
#include "platform/launch/mpi/pmi_server.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/node/tcp.h"
#include "platform/launch/ranks/rank_starter.h"

namespace tutti::launch {

class DeliveryFake : public Delivery {
 public:
  DeliveryFake(EventLog* events, Spool* spool, Wakeup* news) : Delivery(events, spool, news) {}
  void Begin() override {}
  void Serve(bool served) { served_ = served; }
  // Has all events that there are or will be, or none.
  void Answer(bool answers) {
    absl::MutexLock lock(&mutex_);
    events_acknowledged_ = answers ? std::numeric_limits<int64_t>::max() : 0;
  }
  absl::StatusOr<std::filesystem::path> FetchCode(const std::filesystem::path& file) override {
    return file;
  }
  absl::Status FetchProgram(const std::string&, const std::filesystem::path&) override {
    return absl::OkStatus();
  }
  void AbandonCode() override {}
  absl::StatusOr<SecretValues> FetchSecrets() override { return SecretValues(); }
  absl::StatusOr<TrackedRun> FetchRun(base::Deadline) override {
    return absl::NotFoundError("none");
  }
  absl::Status SendResults(const std::vector<Result>&, Patience) override {
    return absl::OkStatus();
  }

 private:
  absl::Duration put_off(Stream) const override { return kNeverPutOff; }
};

class SupervisorFake : public RankSupervisor {
 public:
  void Stop(absl::Status reason) override {
    if (!stopped_) reason_ = std::move(reason);
    stopped_ = true;
  }
  void StopUnlaunched(absl::string_view reason) override {
    Stop(absl::UnavailableError(reason));
    unlaunched_ = true;
  }
  bool StopIfRequested(absl::Duration) override { return false; }
  void AwaitCluster() override { stopped_ = stopped_ || cluster_ends_it; }
  void ReapChildren() override {}
  bool ending() const override { return stopped_; }
  bool stopped() const override { return stopped_; }
  bool requested() const override { return is_requested; }

  std::string reason() const { return std::string(reason_.message()); }
  bool told() const { return absl::IsCancelled(reason_); }
  bool unlaunched() const { return unlaunched_; }

  bool is_requested = false;     // somebody has told the launcher to end
  bool cluster_ends_it = false;  // it tells the launcher as soon as a rank has failed

 private:
  absl::Status reason_;
  bool stopped_ = false;
  bool unlaunched_ = false;
};

class StarterFixture : public ::testing::Test {
 protected:
  StarterFixture() {
    // AwaitChild is to see none that an earlier test has left.
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
    plan.allocation_id = "job.1";
    plan.nodes = {{"n1", "127.0.0.1", 0, 2}};
    plan.directory = (folder.path() / "allocation/0").string();
    const NodeFolders folders(plan.directory);
    for (const auto& each : {folders.work(), folders.scratch(), folders.spool()}) {
      EXPECT_TRUE(base::MakeDirectories(each).ok());
    }
    events = *EventLog::Open(folders.events());
    spool = *Spool::Open(folders.spool(), 0, 2);
    delivery = std::make_unique<DeliveryFake>(events.get(), spool.get(), &news);
    ranks = std::make_unique<RankTable>(plan, events.get(), delivery.get());
    facts.own = {{"PATH", "/usr/bin:/bin"}};
  }

  StartContext Context() {
    limit.emplace(plan, 0);
    return {plan, options, command, facts, *limit, spool.get(), ranks.get(), &supervisor};
  }

  // Returns what has been agreed on by the only node of a gang, where `script` is mpirun or srun.
  MpiAgreement AgreeOn(MpiWay way, const std::string& script) {
    MpiAgreement agreement;
    agreement.way = way;
    agreement.program = (folder.path() / "program").string();
    EXPECT_TRUE(base::WriteFileAtomic(agreement.program, "#!/bin/sh\n" + script, 0755).ok());
    const std::atomic<bool> cancelled = false;
    agreement.link = *GangLink::Meet(plan, way, 0, cancelled, Soon());
    agreement.listener = *RankListener::Open(Socket());
    return agreement;
  }
  std::filesystem::path Socket() const { return folder.path() / "socket"; }
  LineSocket Connect() const { return LineSocket(*ConnectToLauncher(Socket().string())); }
  static base::Deadline Soon() { return base::Deadline::After(base::Patient(absl::Seconds(20))); }

  // Returns what a rank says first to the server of its plan's PMI.
  std::string InitOf(int rank) const {
    return absl::StrCat("cmd=initack pmiid=", PmiId(plan, rank), "\n");
  }

  // Returns a rank of MPI that has come to `server` and said `lines`.
  static base::UniqueFd ComeTo(const PmiServer& server, const std::string& lines) {
    base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in name = *AddressOf("127.0.0.1", server.port());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
    EXPECT_EQ(::send(fd.get(), lines.data(), lines.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(lines.size()));
    return fd;
  }

  // Waits until `done`, and handles what is sent meanwhile.
  template <class Done>
  void HandleUntil(RankStarter& starter, Done done) {
    const base::Deadline deadline = Soon();
    bool is_done = false;
    while (!(is_done = done()) && !deadline.Expired()) {
      std::vector<pollfd> waiting;
      starter.AddTo(waiting);
      ::poll(waiting.data(), waiting.size(), 100);
      starter.HandleMessages();
    }
    EXPECT_TRUE(is_done);
  }
  // Waits until a child has ended; does not reap it.
  static pid_t AwaitChild() {
    siginfo_t info{};
    EXPECT_EQ(::waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    return info.si_pid;
  }
  // Returns the events of that kind, in order.
  std::vector<nlohmann::json> Events(const std::string& kind) const {
    std::vector<nlohmann::json> found;
    for (const auto line : absl::StrSplit(events->From(1), '\n', absl::SkipEmpty())) {
      const auto event = nlohmann::json::parse(line.begin(), line.end());
      if (event["kind"] == kind) found.push_back(event);
    }
    return found;
  }

  const base::TemporaryDirectory folder;
  spec::LaunchPlan plan;
  LauncherOptions options;
  std::string command = "true";
  NodeFacts facts;
  std::optional<ProcessLimit> limit;
  Wakeup news = *Wakeup::Make();
  std::unique_ptr<EventLog> events;
  std::unique_ptr<Spool> spool;
  std::unique_ptr<Delivery> delivery;
  std::unique_ptr<RankTable> ranks;
  SupervisorFake supervisor;
};

}  // namespace tutti::launch

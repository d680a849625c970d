// World is a cluster small enough for tests: a service over a disk engine and launchers that are
// played.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/file.h"
#include "platform/engine/engine.h"
#include "platform/service/disk_engine_for_tests.h"
#include "platform/service/played_launchers_for_tests.h"
#include "platform/service/service.h"
#include "platform/store/store.h"

namespace tutti::service {

inline constexpr char kJobFile[] = R"(type: command
name: j
command: echo hi
resources:
  instance_count: 2
distribution:
  type: mpi
  process_count_per_instance: 1
limits:
  timeout: 60
)";

// All of it in one folder, so that another process can go on with it.
class World {
 public:
  // `cluster`, if there is one, is the engine of the compute "hpc"; listeners outlive it.
  explicit World(const std::filesystem::path& folder, Script script = {}, int nodes = 2,
                 engine::Engine* cluster = nullptr, std::vector<EventListener*> listeners = {},
                 NodeChecker* checker = nullptr)
      : folder_(folder),
        cluster_(cluster),
        listeners_(std::move(listeners)),
        checker_(checker),
        engine_(folder / "engine", nodes),
        launchers_(&engine_, std::move(script)) {
    Open();
  }

  // Has the service begin anew, with MLflow's tracking.
  void OpenWithTracking(tracking::TrackingStore* tracking) {
    tracking_ = tracking;
    Open();
  }

  void Open(store::StoreOptions with = {}) {
    service_.reset();
    store_.reset();
    auto store = store::Store::Open(folder_ / "tutti.db", std::move(with));
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    ServiceOptions options{.directory = folder_,
                           .launcher_file = folder_ / "launcher.json",
                           .launcher_key = "key-0123456789abcdef",
                           .observe_interval = absl::ZeroDuration(),
                           .measures_usage = measures_usage,
                           .folder_questions = folder_questions,
                           .tracking = tracking_,
                           .node_checker = checker_,
                           .listeners = listeners_};
    options.find_port = [](const std::string&, int preferred) { return FreePort{preferred}; };
    Engines engines(&engine_);
    if (cluster_ != nullptr) engines.clusters["hpc"] = cluster_;
    auto service = Service::Open(options, store_.get(), engines, &clock_);
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
  }

  bool measures_usage = true;        // of the next service
  FolderQuestions folder_questions;  // likewise

  absl::StatusOr<JobStatus> Submit(const std::string& text = kJobFile) {
    return service_->Submit({.text = text, .base_directory = "/"});
  }
  // Does one round of everything.
  bool Step() {
    service_->Tick();
    clock_.Advance(absl::Milliseconds(200));
    return launchers_.Step(*service_, clock_.Now());
  }
  // Steps until the condition holds; false after 500 rounds.
  template <typename Condition>
  bool StepUntil(const Condition& condition) {
    for (int i = 0; i < 500; ++i) {
      if (condition()) return true;
      Step();
    }
    return condition();
  }
  bool StepUntilState(const std::string& id, store::JobState state) {
    return StepUntil([&] { return State(id) == state; });
  }
  // Steps until the job has ended and the engine has forgotten it.
  bool StepUntilOver(const std::string& id) {
    return StepUntil([&] { return IsEnd(State(id)) && engine_.Allocations().empty(); });
  }
  store::JobState State(const std::string& id) {
    const auto job = service_->GetJob(id);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->record.last.state : store::JobState::kQueued;
  }
  std::string Reason(const std::string& id) { return service_->GetJob(id).value().reason; }
  // Returns all that the job has gone through.
  std::vector<store::Event> Events(const std::string& id) {
    auto page = service_->EventsBefore(id, /*before=*/0, /*limit=*/1000);
    EXPECT_TRUE(page.ok()) << page.status();
    return page.ok() ? std::move(page->events) : std::vector<store::Event>();
  }
  // Returns the job's children, of a sweep the first.
  std::vector<ChildStatus> Children(const std::string& id) {
    auto children = service_->ChildrenOf(id);
    EXPECT_TRUE(children.ok()) << children.status();
    return children.ok() ? std::move(children->list) : std::vector<ChildStatus>();
  }
  // Returns "Queued Provisioning …".
  std::string History(const std::string& id) {
    std::string history;
    for (const store::Event& event : Events(id)) {
      absl::StrAppend(&history, history.empty() ? "" : " ", Name(event.state));
    }
    return history;
  }
  // Returns everything that a follower is told from the beginning, states as "=Queued", lines as
  // "0:text".
  std::vector<std::string> FollowerOutput(const std::string& id, std::string cursor = "") {
    std::vector<std::string> told;
    while (true) {
      auto result = service_->Follow(id, cursor, base::Deadline::After(absl::ZeroDuration()), {});
      EXPECT_TRUE(result.ok()) << result.status();
      if (!result.ok()) return told;
      for (const FollowItem& item : result->items) {
        told.push_back(item.event ? absl::StrCat("=", Name(item.event->state))
                                  : absl::StrCat(item.rank, ":", item.text));
        cursor = item.cursor;
      }
      if (result->ended || result->items.empty()) return told;
    }
  }

  Service& service() { return *service_; }
  DiskEngine& engine() { return engine_; }
  Launchers& launchers() { return launchers_; }
  base::ManualClock& clock() { return clock_; }
  store::Store& store() { return *store_; }

 private:
  const std::filesystem::path folder_;
  engine::Engine* const cluster_;
  const std::vector<EventListener*> listeners_;
  NodeChecker* const checker_;
  tracking::TrackingStore* tracking_ = nullptr;
  base::ManualClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  DiskEngine engine_;
  Launchers launchers_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Service> service_;
};

// A service of two nodes that stands still until the test moves it.
class ServiceTest : public ::testing::Test {
 protected:
  base::TemporaryDirectory folder_;
  World world_{folder_.path()};
  Service& service() { return world_.service(); }
  static base::Deadline Now() { return base::Deadline::After(absl::ZeroDuration()); }
};

}  // namespace tutti::service

// A cluster small enough for tests: an engine whose whole state is on disk, as launchers and their
// processes are there when the service dies, and launchers that are played step by step. Every
// call of a launcher repeats all that it has ever said, as after a lost acknowledgement.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
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
#include "platform/service/service.h"
#include "platform/store/store.h"

namespace tutti::service {

// One folder per allocation: ran-I (a launcher has taken the plan), alive-I, spool-I, stop, plan-I.
// `starts` in the root has one line per launcher that began to run processes, for good.
class DiskEngine final : public engine::Engine {
 public:
  explicit DiskEngine(std::filesystem::path root, int nodes = 2)
      : root_(std::move(root)), node_count_(nodes) {
    std::filesystem::create_directories(root_);
  }
  engine::EngineTraits traits() const override { return {}; }
  absl::StatusOr<std::vector<engine::Node>> ListNodes() override {
    std::vector<engine::Node> nodes;
    for (int i = 1; i <= node_count_; ++i) {
      nodes.push_back({.name = absl::StrCat("n", i),
                       .address = absl::StrCat("127.0.0.", i + 1),
                       .memory_bytes = int64_t{1} << 30,
                       .directory = (root_ / "scratch").native()});
    }
    return nodes;
  }
  absl::Status Start(const engine::Allocation& allocation) override {
    ++start_calls;
    if (!fail_start.ok()) return fail_start;
    const std::filesystem::path folder = root_ / allocation.id;
    std::filesystem::create_directories(folder);
    for (size_t i = 0; i < allocation.plans.size(); ++i) {
      const std::string node = absl::StrCat(i);
      if (std::filesystem::exists(folder / ("alive-" + node))) continue;
      if (!std::filesystem::exists(folder / ("ran-" + node))) {
        Put(folder / ("plan-" + node), spec::ToJson(allocation.plans[i]));
        AppendLine(root_ / "starts", absl::StrCat(allocation.id, " ", node));
        Put(folder / ("ran-" + node), "");
      } else {
        Put(folder / ("second-" + node), "");
      }
      Put(folder / ("alive-" + node), "");
    }
    return absl::OkStatus();
  }
  absl::Status Stop(const std::string& id, absl::Duration) override {
    ++stop_calls;
    if (!fail_stop.ok()) return fail_stop;
    if (std::filesystem::exists(root_ / id)) Put(root_ / id / "stop", "");
    return absl::OkStatus();
  }
  absl::Status Kill(const std::string& id, int node) override {
    ++kill_calls;
    if (!fail_stop.ok()) return fail_stop;
    if (!unkillable) std::filesystem::remove(root_ / id / absl::StrCat("alive-", node));
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<engine::AllocationState>> Observe() override {
    if (!fail_observe.ok()) return fail_observe;
    std::vector<engine::AllocationState> states;
    for (const std::string& id : Allocations()) {
      engine::AllocationState state{.id = id};
      for (int i = 0; std::filesystem::exists(root_ / id / absl::StrCat("ran-", i)); ++i) {
        state.launcher_alive.push_back(
            std::filesystem::exists(root_ / id / absl::StrCat("alive-", i)));
      }
      states.push_back(std::move(state));
    }
    return states;
  }
  absl::Status Release(const std::string& id) override { return base::RemoveTree(root_ / id); }

  std::vector<std::string> Allocations() const {
    std::vector<std::string> ids;
    for (const auto& entry : std::filesystem::directory_iterator(root_)) {
      if (entry.is_directory() && entry.path().filename() != "scratch") {
        ids.push_back(entry.path().filename());
      }
    }
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  // "ALLOCATION NODE", one per launcher that ran processes.
  std::vector<std::string> Starts() const { return Lines(root_ / "starts"); }
  const std::filesystem::path& root() const { return root_; }

  static void Put(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  static void AppendLine(const std::filesystem::path& path, const std::string& line) {
    std::ofstream(path, std::ios::app) << line << "\n";
  }
  static std::vector<std::string> Lines(const std::filesystem::path& path) {
    std::vector<std::string> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  int start_calls = 0, stop_calls = 0, kill_calls = 0;
  bool unkillable = false;
  absl::Status fail_start, fail_stop, fail_observe;

 private:
  const std::filesystem::path root_;
  const int node_count_;
};

// What a rank does: an `exited` event without rank and time ({} is code 0), or null: it runs until
// it is stopped.
using Script = std::map<int, nlohmann::json>;

// Plays every launcher of the engine one step further. Returns whether anything happened.
class Launchers {
 public:
  Launchers(DiskEngine* engine, Script script) : engine_(engine), script_(std::move(script)) {}

  bool Step(Service& service, absl::Time now) {
    bool any = false;
    for (const std::string& id : engine_->Allocations()) {
      for (int node = 0; node < 8; ++node) {
        const std::filesystem::path folder = engine_->root() / id;
        if (!std::filesystem::exists(folder / absl::StrCat("alive-", node))) continue;
        any |= StepOne(service, id, node, now);
      }
    }
    return any;
  }

  // As kill -9 of a launcher.
  void Kill(const std::string& id, int node) {
    std::filesystem::remove(engine_->root() / id / absl::StrCat("alive-", node));
  }

  Script& script() { return script_; }
  bool silent = false;  // launchers do not answer, and do not end

 private:
  static std::string Output(int rank) {
    return absl::StrCat("rank ", rank, " begins\nrank ", rank, " ends\nrank ", rank, " last");
  }

  bool StepOne(Service& service, const std::string& id, int node, absl::Time now) {
    if (silent) return false;
    const std::filesystem::path folder = engine_->root() / id;
    const std::filesystem::path spool = folder / absl::StrCat("spool-", node);
    const auto plan =
        *spec::LaunchPlanFromJson(base::ReadFile(folder / absl::StrCat("plan-", node)).value());
    std::vector<std::string> lines = DiskEngine::Lines(spool);
    const auto say = [&](nlohmann::json event) {
      event["time"] = absl::ToDoubleSeconds(now - absl::UnixEpoch());
      DiskEngine::AppendLine(spool, event.dump());
    };
    const bool second = std::filesystem::exists(folder / absl::StrCat("second-", node));
    const auto has = [&](const char* kind) {
      return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
        return nlohmann::json::parse(line)["kind"] == kind;
      });
    };
    if (has("exited")) SendOutput(service, plan, node);
    const auto answer = service.ReportEvents(id, node, 1, lines);
    if (absl::IsAborted(answer.status())) {
      Kill(id, node);
      return true;
    }
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return false;
    EXPECT_EQ(answer->acknowledged, static_cast<int64_t>(lines.size()));
    const bool stop = std::filesystem::exists(folder / "stop");
    if (has("finished")) {
      Kill(id, node);  // also a second launcher: the first had done its work
    } else if (second) {
      if (!has("lost"))
        say({{"kind", "lost"}, {"reason", "it was killed"}});
      else
        say({{"kind", "finished"}, {"ok", false}, {"reason", "lost"}});
    } else if (lines.empty()) {
      say({{"kind", "preparing"}});
    } else if (has("exited") || (stop && !has("started"))) {
      Finish(service, plan, node, say, lines);
    } else if (!has("prepared")) {
      say({{"kind", "prepared"}});
    } else if (has("started")) {
      return Exit(plan, stop, say);
    } else if (answer->go) {
      for (int i = 0; i < plan.node().process_count; ++i) {
        say({{"kind", "started"}, {"rank", plan.node().first_rank + i}, {"pid", 1}});
      }
    } else {
      return false;
    }
    return true;
  }

  template <typename Say>
  bool Exit(const spec::LaunchPlan& plan, bool stop, const Say& say) {
    bool any = false;
    for (int i = 0; i < plan.node().process_count; ++i) {
      const int rank = plan.node().first_rank + i;
      nlohmann::json event = script_.contains(rank) ? script_[rank] : nlohmann::json::object();
      if (event.is_null()) {
        if (!stop) continue;
        event = {{"signal", 15}, {"stopped", true}};
      }
      event["kind"] = "exited";
      event["rank"] = rank;
      say(event);
      any = true;
    }
    return any;
  }

  template <typename Say>
  void Finish(Service& service, const spec::LaunchPlan& plan, int node, const Say& say,
              const std::vector<std::string>& lines) {
    const int exits = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return nlohmann::json::parse(line)["kind"] == "exited";
    });
    if (exits > 0 && exits < plan.node().process_count) return;
    auto file = service.ReceiveFile(plan.allocation_id, node,
                                    absl::StrCat("outputs/from-", plan.node().name));
    if (file.ok()) {
      EXPECT_TRUE((*file)->Write("result").ok());
      EXPECT_TRUE((*file)->Commit().ok());
    }
    say({{"kind", "finished"}, {"ok", true}});
  }

  // From the beginning, in uneven pieces.
  static void SendOutput(Service& service, const spec::LaunchPlan& plan, int node) {
    for (int i = 0; i < plan.node().process_count; ++i) {
      const int rank = plan.node().first_rank + i;
      const std::string text = Output(rank);
      for (uint64_t at = 0; at < text.size();) {
        const auto kept = service.AppendOutput(plan.allocation_id, node, rank, Stream::kStdout, at,
                                               absl::string_view(text).substr(at, 9));
        if (!kept.ok()) return;
        EXPECT_GT(*kept, at);
        at = *kept;
      }
    }
  }

  DiskEngine* const engine_;
  Script script_;
};

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
                 engine::Engine* cluster = nullptr, std::vector<EventListener*> listeners = {})
      : folder_(folder),
        cluster_(cluster),
        listeners_(std::move(listeners)),
        engine_(folder / "engine", nodes),
        launchers_(&engine_, std::move(script)) {
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
                           .observe_interval = absl::ZeroDuration(),
                           .listeners = listeners_};
    options.find_port = [](const std::string&, int preferred) { return FreePort{preferred}; };
    Engines engines(&engine_);
    if (cluster_ != nullptr) engines.clusters["hpc"] = cluster_;
    auto service = Service::Open(options, store_.get(), engines, &clock_);
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
  }

  absl::StatusOr<JobStatus> Submit(const std::string& text = kJobFile) {
    return service_->Submit({.text = text, .base_directory = "/"});
  }
  // One round of everything.
  bool Step() {
    service_->Tick();
    clock_.Advance(absl::Milliseconds(200));
    return launchers_.Step(*service_, clock_.Now());
  }
  // Until the condition holds; false after 500 rounds.
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
  // The job has ended and the engine has forgotten it.
  bool StepUntilOver(const std::string& id) {
    return StepUntil([&] { return IsEnd(State(id)) && engine_.Allocations().empty(); });
  }
  store::JobState State(const std::string& id) {
    const auto job = service_->GetJob(id);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->record.last.state : store::JobState::kQueued;
  }
  std::string Reason(const std::string& id) { return service_->GetJob(id).value().reason; }
  // "Queued Provisioning …".
  std::string History(const std::string& id) {
    std::string history;
    const auto events = service_->EventsOf(id);
    for (const store::Event& event : *events) {
      absl::StrAppend(&history, history.empty() ? "" : " ", Name(event.state));
    }
    return history;
  }
  // Everything that a follower is told from the beginning, states as "=Queued", lines as "0:text".
  std::vector<std::string> Told(const std::string& id, std::string cursor = "") {
    std::vector<std::string> told;
    while (true) {
      auto result = service_->Follow(id, cursor, base::Deadline::After(absl::ZeroDuration()));
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

// Launchers plays launchers step by step over a DiskEngine, for tests. Every call of a launcher
// repeats all that it has ever said, as after a lost acknowledgement.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "platform/service/disk_engine_for_tests.h"
#include "platform/service/service.h"

namespace tutti::service {

// Says what a rank does: an `exited` event without rank and time ({} is code 0), or null: it runs
// until it is stopped.
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

  // Acts as kill -9 of a launcher.
  void Kill(const std::string& id, int node) {
    std::filesystem::remove(engine_->root() / id / absl::StrCat("alive-", node));
  }

  Script& script() { return script_; }
  std::map<std::string, std::string> cannot_prepare;  // by node, the reason
  bool silent = false;                                // launchers do not answer, and do not end
  std::string metrics;                                // what each rank writes to its metrics file

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
    } else if (const auto why = cannot_prepare.find(plan.node().name);
               why != cannot_prepare.end() && !has("prepared")) {
      say({{"kind", "finished"}, {"ok", false}, {"reason", why->second}});
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
                                    absl::StrCat("outputs/from-", plan.node().name), 0, "");
    if (file.ok()) {
      EXPECT_TRUE((*file)->Write("result").ok());
      EXPECT_TRUE((*file)->Commit().ok());
    }
    say({{"kind", "finished"}, {"ok", true}});
  }

  // Sends the output from the beginning, in uneven pieces.
  void SendOutput(Service& service, const spec::LaunchPlan& plan, int node) const {
    for (int i = 0; i < plan.node().process_count; ++i) {
      const int rank = plan.node().first_rank + i;
      const std::string text = Output(rank);
      for (uint64_t at = 0; at < text.size();) {
        const auto kept = service.AppendOutput(plan.allocation_id, node, rank, LogStream::kStdout,
                                               at, absl::string_view(text).substr(at, 9));
        if (!kept.ok()) return;
        EXPECT_GT(*kept, at);
        at = *kept;
      }
      if (metrics.empty()) continue;
      service.AppendOutput(plan.allocation_id, node, rank, LogStream::kMetrics, 0, metrics)
          .status()
          .IgnoreError();
    }
  }

  DiskEngine* const engine_;
  Script script_;
};

}  // namespace tutti::service

// ServiceDouble plays the service's side of docs/formats/launch-plan.md over real HTTP, for tests:
// it can go away, come back on another port, lose its answers, and forget an allocation.
// Thread-safe.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"
#include "base/file.h"
#include "http/file_batch.h"
#include "http/server/server.h"
#include "spec/json/question.h"
#include "spec/json/rank_stacks.h"
#include "spec/types/service_endpoint.h"

namespace tutti::launch {

// Returns the allocation of the launchers that this process starts: what other tests on this
// machine start has another one, and is neither seen nor ended.
inline std::string AllocationOfTests() { return absl::StrCat("job-", ::getpid(), ".1"); }

class ServiceDouble {
 public:
  // `file` is rewritten with the address at every Start.
  explicit ServiceDouble(std::filesystem::path file) : file_(std::move(file)) { Start(); }
  ~ServiceDouble() { Stop(); }

  // Starts it; with `identity` it speaks TLS, at the port that it had.
  void Start(std::shared_ptr<const http::Identity> identity = nullptr) {
    http::ServerOptions options;
    if (identity != nullptr) options.port = port_;
    options.identity = identity;
    server_ = *http::Server::Start(
        options, [this](const http::Request& r, http::Connection& c) { return Handle(r, c); });
    port_ = server_->port();
    const spec::Endpoint service{server_->url(), "",
                                 identity == nullptr ? "" : identity->certificate()};
    base::WriteFileAtomic(file_, spec::ToJson(service)).IgnoreError();
  }
  void Stop() { server_.reset(); }

  // Loses every n-th answer after the request has been acted on; 0: none.
  void LoseEvery(int n) {
    Set([&] { lose_every_ = n; });
  }
  void Forget() {
    Set([&] { gone_ = true; });
  }
  // Says in its answers that the job's chief has ended well.
  void Serve(bool served) {
    Set([&] { served_ = served; });
  }
  void HoldGo(bool hold) {
    Set([&] { hold_go_ = hold; });
  }
  void RefuseOutput(bool refuse) {
    Set([&] { refuse_output_ = refuse; });
  }
  // Answers all results with 503, as where the disk is full.
  void PutResultsOff(bool put_off) {
    Set([&] { put_results_off_ = put_off; });
  }
  // Answers all results with 500, as one that can keep none and does not know why.
  void FailResults(bool fail) {
    Set([&] { fail_results_ = fail; });
  }
  // Takes samples of usage from now on; before, it does not know the call, as one of earlier.
  void TakeUsage() {
    Set([&] { takes_usage_ = true; });
  }
  // Asks for the stacks of these ranks from now on; before, it does not know the call, as one of
  // earlier.
  void AskForStacks(const std::vector<int>& ranks, bool native = false) {
    spec::Questions asked{.pause = absl::Milliseconds(1)};
    asked.questions.push_back({.id = "q1",
                               .kind = spec::kStacksQuestion,
                               .time = absl::Hours(1),
                               .ranks = ranks,
                               .native = native});
    Set([&] { questions_ = spec::ToJson(asked); });
  }
  // Asks for results from now on.
  void AskForResults(const std::string& id = "q1", const std::string& name = "",
                     absl::Duration time = absl::Hours(1)) {
    spec::Questions asked{.pause = absl::Milliseconds(1)};
    asked.questions.push_back(
        {.id = id, .kind = spec::kResultsQuestion, .time = time, .ranks = {0}, .name = name});
    Set([&] { questions_ = spec::ToJson(asked); });
  }
  // Does not answer to a large file of that path from now on; "": to none.
  void HoldFile(const std::string& path) {
    Set([&] { held_file_ = path; });
  }
  // Returns the answers about results that have come, by question.
  std::map<std::string, spec::SentResults> SentResults() const {
    absl::MutexLock lock(&mutex_);
    return sent_results_;
  }
  // Returns the files that were sent while the job ran.
  std::map<std::string, std::string> FilesSoFar() const {
    absl::MutexLock lock(&mutex_);
    return files_so_far_;
  }
  // Returns the answers that have come, by rank.
  std::map<int, spec::RankStacks> Stacks() const {
    absl::MutexLock lock(&mutex_);
    return stacks_;
  }
  // Answers all output with 503, as where a folder of logs hangs.
  void PutOutputOff(bool put_off) {
    Set([&] { put_output_off_ = put_off; });
  }
  void SetSecrets(const std::map<std::string, std::string>& values) {
    nlohmann::json all = nlohmann::json::object();
    for (const auto& [name, value] : values) all[name] = absl::Base64Escape(value);
    Set([&] { secrets_ = nlohmann::json({{"secrets", all}}).dump(); });
  }
  // Gives jobs a run in MLflow's tracking.
  void SetRun(const std::string& run, const std::string& token) {
    Set([&] {
      run_ = nlohmann::json({{"run", run}, {"experiment", "nets"}, {"token", token}}).dump();
    });
  }
  // Answers with that where a run is asked for.
  void RefuseRun(int status) {
    Set([&] { run_refusal_ = status; });
  }
  void SetSnapshot(std::string bytes) {
    Set([&] { snapshot_ = std::move(bytes); });
  }

  std::vector<nlohmann::json> Events(const std::string& kind = "") const {
    absl::MutexLock lock(&mutex_);
    std::vector<nlohmann::json> found;
    for (const nlohmann::json& event : events_) {
      if (kind.empty() || event["kind"] == kind) found.push_back(event);
    }
    return found;
  }
  std::string Output(int rank, const std::string& stream) const {
    absl::MutexLock lock(&mutex_);
    const auto found = output_.find({rank, stream});
    return found == output_.end() ? "" : found->second;
  }
  std::vector<std::string> Usage() const {
    absl::MutexLock lock(&mutex_);
    return usage_;
  }
  // Returns how often samples were sent, whether they were taken or not.
  int usage_calls() const {
    absl::MutexLock lock(&mutex_);
    return usage_calls_;
  }
  std::map<std::string, std::string> Files() const {
    absl::MutexLock lock(&mutex_);
    return files_;
  }
  // Returns how many there have been.
  size_t connections() const {
    absl::MutexLock lock(&mutex_);
    return peers_.size();
  }
  int requests() const {
    absl::MutexLock lock(&mutex_);
    return requests_;
  }
  // Returns how often results were put off.
  int results_put_off() const {
    absl::MutexLock lock(&mutex_);
    return results_put_off_;
  }
  // Returns how often output was put off.
  int put_off() const {
    absl::MutexLock lock(&mutex_);
    return put_off_;
  }
  int duplicates() const {
    absl::MutexLock lock(&mutex_);
    return duplicates_;
  }

  // Waits until `condition` holds; it is looked at after every request and may call the functions
  // above.
  template <class Condition>
  bool Await(Condition condition, absl::Duration limit = absl::Seconds(30)) const {
    const base::Deadline deadline = base::Deadline::After(limit);
    while (!condition()) {
      if (deadline.Expired()) return false;
      absl::MutexLock lock(&mutex_);
      const int seen = requests_;
      const auto another = [&] { return requests_ != seen; };
      mutex_.AwaitWithTimeout(absl::Condition(&another), absl::Milliseconds(20));
    }
    return true;
  }
  bool AwaitEvent(const std::string& kind, size_t count = 1) const {
    return Await([&] { return Events(kind).size() >= count; });
  }

 private:
  template <class Change>
  void Set(Change change) {
    absl::MutexLock lock(&mutex_);
    change();
    WakeThoseWhoWait();
  }
  void WakeThoseWhoWait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const auto& wake : wakers_) wake();
  }

  http::Response Handle(const http::Request& request, http::Connection& connection) {
    if (request.BearerToken() != "launcher-token") return http::ErrorResponse(401, "who", "who?");
    const auto body = connection.ReadBody(uint64_t{1} << 30);
    if (!body.ok()) return http::ErrorResponse(body.status());
    absl::MutexLock lock(&mutex_);
    ++requests_;
    peers_.insert(request.peer);
    if (gone_) return http::ErrorResponse(410, "gone", "unknown allocation");
    if (absl::StrContains(request.path, "/snapshots/")) return Bytes(snapshot_);
    absl::string_view rest = request.path;
    if (!absl::ConsumePrefix(
            &rest, absl::StrCat("/internal/v1/allocations/", AllocationOfTests(), "/nodes/"))) {
      return http::ErrorResponse(404, "not_found", request.path);
    }
    http::Response response = Act(rest.substr(rest.find('/')), request, *body, connection);
    if (lose_every_ > 0 && requests_ % lose_every_ == 0) {
      return http::ErrorResponse(503, "lost", "the answer is lost");
    }
    return response;
  }

  static http::Response Bytes(std::string bytes) { return http::JsonResponse(std::move(bytes)); }

  http::Response Act(absl::string_view what, const http::Request& request, const std::string& body,
                     http::Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    absl::string_view question = what;
    if (what == "/events") return TakeEvents(request, body);
    if (what == "/output") return TakeOutput(request, body);
    if (what == "/usage") {
      ++usage_calls_;
      if (!takes_usage_) return http::ErrorResponse(404, "not_found", request.path);
      for (const auto line : absl::StrSplit(body, '\n')) usage_.emplace_back(line);
      return http::JsonResponse("{}");
    }
    if (what == "/questions" && !questions_.empty()) return http::JsonResponse(questions_);
    if (absl::ConsumePrefix(&question, "/answers/")) return TakeAnswer(request, question, body);
    if (what == "/go") {
      wakers_.push_back(connection.Waker());
      http::Response response;
      int seconds = 0;
      (void)absl::SimpleAtoi(request.Query("wait"), &seconds);
      response.later = [this, deadline = base::Deadline::After(absl::Seconds(seconds))](
                           base::Deadline& again) -> std::optional<http::Response> {
        absl::MutexLock lock(&mutex_);
        again = deadline;
        const bool go = !hold_go_ && prepared_;
        if (!go && !deadline.Expired()) return std::nullopt;
        return http::JsonResponse(go ? R"({"go": true})" : R"({"go": false})");
      };
      return response;
    }
    if (what == "/secrets" && secrets_.empty()) {
      return http::ErrorResponse(404, "not_found", "there is no secret \"hub\"");
    }
    if (what == "/secrets") return http::JsonResponse(secrets_);
    if (what == "/run" && run_refusal_ > 0) {
      return http::ErrorResponse(run_refusal_, "refused", "there is no run now");
    }
    if (what == "/run" && !run_.empty()) return http::JsonResponse(run_);
    if (put_results_off_ && (what == "/results" || what == "/files")) {
      ++results_put_off_;
      return http::ErrorResponse(503, "unavailable", "the disk of the service is full");
    }
    if (fail_results_ && (what == "/results" || what == "/files")) {
      return http::ErrorResponse(500, "internal", "it cannot be kept");
    }
    if (what == "/files" && !held_file_.empty() && request.Query("path") == held_file_) {
      http::Response never;
      never.later = [](base::Deadline&) -> std::optional<http::Response> { return std::nullopt; };
      return never;
    }
    auto& files = request.Query("question").empty() ? files_ : files_so_far_;
    if (what == "/results") return TakeResults(body, files);
    if (what == "/files") {
      files[std::string(request.Query("path"))] = body;
      return http::JsonResponse("{}");
    }
    return http::ErrorResponse(404, "not_found", request.path);
  }

  http::Response TakeAnswer(const http::Request& request, absl::string_view question,
                            const std::string& body) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    int rank = 0;
    const auto stacks = spec::RankStacksFromJson(body);
    const auto sent = spec::SentResultsFromJson(body);
    if (!absl::SimpleAtoi(request.Query("rank"), &rank) || !sent.ok()) {
      return http::ErrorResponse(400, "", "");
    }
    if (stacks.ok()) stacks_[rank] = *stacks;
    sent_results_[std::string(question)] = *sent;
    return http::JsonResponse("{}");
  }

  http::Response TakeEvents(const http::Request& request, const std::string& body)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    size_t number = 0;
    if (!absl::SimpleAtoi(request.Query("first"), &number)) return http::ErrorResponse(400, "", "");
    for (const auto line : absl::StrSplit(body, '\n', absl::SkipEmpty())) {
      if (number == events_.size() + 1) {
        events_.push_back(nlohmann::json::parse(line.begin(), line.end()));
        prepared_ |= events_.back()["kind"] == "prepared";
      }
      ++number;
    }
    WakeThoseWhoWait();
    return http::JsonResponse(absl::StrCat(R"({"acknowledged": )", events_.size(),
                                           served_ ? R"(, "served": true})" : "}"));
  }

  static http::Response TakeResults(const std::string& body,
                                    std::map<std::string, std::string>& kept) {
    nlohmann::json refused = nlohmann::json::array();
    const auto files = http::FilesOfBatch(body).value();
    for (size_t i = 0; i < files.size(); ++i) {
      if (files[i].name == "outputs/refused") {
        refused.push_back({{"file", i}, {"why", "this name may not be"}});
      } else {
        kept[std::string(files[i].name)] = std::string(files[i].bytes);
      }
    }
    return http::JsonResponse(nlohmann::json({{"refused", refused}}).dump());
  }

  http::Response TakeOutput(const http::Request& request, const std::string& body)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    int rank = 0;
    size_t offset = 0;
    if (!absl::SimpleAtoi(request.Query("rank"), &rank) ||
        !absl::SimpleAtoi(request.Query("offset"), &offset)) {
      return http::ErrorResponse(400, "", "");
    }
    if (put_output_off_) {
      ++put_off_;
      return http::ErrorResponse(503, "away", "the folder of logs does not answer");
    }
    std::string& kept = output_[{rank, std::string(request.Query("stream"))}];
    if (!refuse_output_ && offset <= kept.size() && offset + body.size() > kept.size()) {
      duplicates_ += offset < kept.size() ? 1 : 0;
      kept.append(body, kept.size() - offset);
    } else {
      ++duplicates_;
    }
    return http::JsonResponse(absl::StrCat(R"({"acknowledged": )", kept.size(), "}"));
  }

  const std::filesystem::path file_;
  mutable absl::Mutex mutex_;
  std::vector<nlohmann::json> events_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<int, std::string>, std::string> output_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> files_ ABSL_GUARDED_BY(mutex_);
  std::string snapshot_ ABSL_GUARDED_BY(mutex_);
  std::string secrets_ ABSL_GUARDED_BY(mutex_);  // the answer; empty: there are none
  std::string run_ ABSL_GUARDED_BY(mutex_);      // likewise
  int run_refusal_ ABSL_GUARDED_BY(mutex_) = 0;
  int requests_ ABSL_GUARDED_BY(mutex_) = 0;
  int duplicates_ ABSL_GUARDED_BY(mutex_) = 0;
  int lose_every_ ABSL_GUARDED_BY(mutex_) = 0;
  bool gone_ ABSL_GUARDED_BY(mutex_) = false;
  bool served_ ABSL_GUARDED_BY(mutex_) = false;
  bool hold_go_ ABSL_GUARDED_BY(mutex_) = false;
  bool prepared_ ABSL_GUARDED_BY(mutex_) = false;
  bool refuse_output_ ABSL_GUARDED_BY(mutex_) = false;
  bool fail_results_ ABSL_GUARDED_BY(mutex_) = false;
  bool takes_usage_ ABSL_GUARDED_BY(mutex_) = false;
  int usage_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> usage_ ABSL_GUARDED_BY(mutex_);
  std::string questions_ ABSL_GUARDED_BY(mutex_);  // the answer; empty: it does not know the call
  std::map<int, spec::RankStacks> stacks_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, spec::SentResults> sent_results_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> files_so_far_ ABSL_GUARDED_BY(mutex_);
  std::string held_file_ ABSL_GUARDED_BY(mutex_);
  bool put_results_off_ ABSL_GUARDED_BY(mutex_) = false;
  int results_put_off_ ABSL_GUARDED_BY(mutex_) = 0;
  bool put_output_off_ ABSL_GUARDED_BY(mutex_) = false;
  int put_off_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::string> peers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> wakers_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<http::Server> server_;
  int port_ = 0;
};

}  // namespace tutti::launch

// Covers: tracking_server.cc, platform/tracking/calls/call_fields.cc,
// platform/tracking/calls/experiment_calls.cc, platform/tracking/calls/run_calls.cc,
// platform/tracking/calls/log_calls.cc, platform/tracking/calls/metric_calls.cc,
// platform/tracking/calls/model_calls.cc, platform/tracking/calls/answers.cc.
#include "platform/tracking/tracking_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::tracking {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Body is a body in memory.
class Body final : public http::Connection {
 public:
  explicit Body(std::string body) : body_(std::move(body)) {}
  absl::StatusOr<std::string> ReadBody(uint64_t) override { return body_; }
  absl::Status ReadBodyTo(const std::function<absl::Status(absl::string_view)>& sink,
                          uint64_t) override {
    return sink(body_);
  }
  int64_t ContentLength() const override { return static_cast<int64_t>(body_.size()); }
  bool Closed() override { return false; }
  std::function<void()> Waker() override {
    return [] {};
  }

 private:
  const std::string body_;
};

class TrackingServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = TrackingStore::Open(folder_.path() / "tracking.db", &clock_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    auto artifacts = ArtifactStore::Open(folder_.path() / "tracking", nullptr);
    ASSERT_TRUE(artifacts.ok()) << artifacts.status();
    artifacts_ = *std::move(artifacts);
    server_ = std::make_unique<TrackingServer>(store_.get(), artifacts_.get());
  }
  static http::Response Awaited(http::Response response) {
    if (!response.later) return response;
    std::optional<http::Response> answer;
    base::Deadline again = base::Deadline::After(absl::ZeroDuration());
    base::AwaitPatiently(absl::Seconds(20), [&] {
      answer = response.later(again);
      return answer.has_value();
    });
    return answer.value_or(http::Response{.status = 504});
  }
  static json JsonIn(const http::Response& response) {
    std::string text = response.body;
    base::Deadline again = base::Deadline::After(absl::ZeroDuration());
    for (bool last = !response.stream; !last;) {
      const auto piece = response.stream(again);
      EXPECT_TRUE(piece.ok()) << piece.status();
      if (!piece.ok()) break;
      text += piece->bytes;
      last = piece->last;
      ++pieces_;
    }
    json parsed = json::parse(text, nullptr, false);
    EXPECT_TRUE(parsed.is_object()) << text;
    return parsed;
  }
  json Post(absl::string_view call, const std::string& body, int status = 200) {
    return Send("POST", call, body, status);
  }
  json Send(const char* method, absl::string_view call, const json& body, int status = 200) {
    return Send(method, call, body.dump(), status);
  }
  json Send(const char* method, absl::string_view call, const std::string& body, int status = 200) {
    http::Request request{.method = method};
    Body connection(body);
    const http::Response response = Awaited(server_->Call(call, request, connection));
    EXPECT_EQ(response.status, status) << call << " " << body << ": " << response.body;
    return JsonIn(response);
  }
  json Post(absl::string_view call, const json& body, int status = 200) {
    return Post(call, body.dump(), status);
  }
  json Get(absl::string_view call, std::multimap<std::string, std::string> query,
           int status = 200) {
    http::Request request{.method = "GET", .query = std::move(query)};
    Body connection("");
    const http::Response response = server_->Call(call, request, connection);
    EXPECT_EQ(response.status, status) << call << ": " << response.body;
    return JsonIn(response);
  }
  std::string NewRun() {
    return Post("runs/create",
                json{{"experiment_id", "0"}, {"start_time", 1}})["run"]["info"]["run_id"];
  }

  inline static int pieces_ = 0;
  base::TemporaryDirectory folder_;
  base::ManualClock clock_;
  std::unique_ptr<TrackingStore> store_;
  std::unique_ptr<ArtifactStore> artifacts_;
  std::unique_ptr<TrackingServer> server_;
};

TEST_F(TrackingServerTest, ARequiredFieldThatIsMissingChangesNothing) {
  const json error = Post("experiments/delete", json::object(), 400);
  EXPECT_EQ(error["error_code"], "INVALID_PARAMETER_VALUE");
  EXPECT_THAT(error["message"], HasSubstr("'experiment_id'"));
  EXPECT_EQ(Get("experiments/get", {{"experiment_id", "0"}})["experiment"]["lifecycle_stage"],
            "active");
  Post("runs/create", json::object(), 400);
  Post("runs/log-batch", json::object(), 400);
  Post("runs/delete", json::object(), 400);
  Post("experiments/set-experiment-tag", json{{"key", "a"}, {"value", "b"}}, 400);
}

TEST_F(TrackingServerTest, ExperimentsAsMlflowAnswersThem) {
  EXPECT_EQ(Post("experiments/create", json{{"name", "e"}, {"tags", {{{"key", "k"}}}}}),
            (json{{"experiment_id", "1"}}));
  EXPECT_EQ(Post("experiments/create", json{{"name", "e"}}, 400)["error_code"],
            "RESOURCE_ALREADY_EXISTS");
  EXPECT_EQ(Get("experiments/get", {{"experiment_id", "x"}}, 404)["error_code"],
            "RESOURCE_DOES_NOT_EXIST");
  const json found = Get("experiments/get-by-name", {{"experiment_name", "e"}})["experiment"];
  EXPECT_EQ(found["artifact_location"], "mlflow-artifacts:/1");
  EXPECT_EQ(found["tags"], (json{{{"key", "k"}, {"value", ""}}}));
  const json page = Post("experiments/search", json{{"max_results", 1}, {"order_by", {"name"}}});
  EXPECT_EQ(page["experiments"][0]["name"], "Default");
  const json next = Post(
      "experiments/search",
      json{{"max_results", "1"}, {"order_by", {"name"}}, {"page_token", page["next_page_token"]}});
  EXPECT_EQ(next["experiments"][0]["name"], "e");
  EXPECT_FALSE(next.contains("next_page_token"));
  Post("experiments/search", json{{"page_token", "x"}}, 400);
  Post("experiments/search", json{{"max_results", 50'001}}, 400);
  Post("experiments/update", json{{"experiment_id", "1"}, {"new_name", "f"}});
  Post("experiments/delete", json{{"experiment_id", 1}});
  EXPECT_THAT(Post("experiments/create", json{{"name", 123}}, 400)["message"],
              HasSubstr("Invalid value 123 for parameter 'name' supplied"));
  EXPECT_EQ(Get("experiments/list", {{"view_type", "DELETED_ONLY"}})["experiments"][0]["name"],
            "f");
  Post("experiments/restore", json{{"experiment_id", "1"}});
}

TEST_F(TrackingServerTest, RunsAsMlflowAnswersThem) {
  const std::string run = NewRun();
  const json info = Post(
      "runs/update", json{{"run_id", run}, {"status", "FINISHED"}, {"end_time", "12"}})["run_info"];
  EXPECT_EQ(info["status"], "FINISHED");
  EXPECT_EQ(info["end_time"], 12);
  Post("runs/update", json{{"run_id", run}, {"status", "DONE"}}, 400);
  Post("runs/log-batch", json{{"run_id", run},
                              {"metrics",
                               {{{"key", "a"}, {"value", "NaN"}, {"timestamp", 1}, {"step", 2}},
                                {{"key", "b"}, {"value", "Infinity"}, {"timestamp", 1}},
                                {{"key", "c"}, {"value", 0.1}, {"timestamp", 1}}}},
                              {"params", {{{"key", "p"}, {"value", "größe"}}}},
                              {"tags", {{{"key", "t"}, {"value", ""}}}}});
  const json data = Get("runs/get", {{"run_uuid", run}})["run"]["data"];
  EXPECT_EQ(data["metrics"][0]["value"], "NaN");
  EXPECT_EQ(data["metrics"][1]["value"], "Infinity");
  EXPECT_EQ(data["metrics"][2]["value"], 0.1);
  EXPECT_EQ(data["params"][0]["value"], "größe");
  const json found = Post("runs/search", json{{"experiment_ids", {"0"}},
                                              {"filter", "metrics.c = 0.1"},
                                              {"order_by", {"metrics.c DESC"}}});
  EXPECT_EQ(found["runs"][0]["info"]["run_id"], run);
  EXPECT_EQ(Post("runs/search", json{{"experiment_ids", {"7"}}})["runs"], json::array());
  EXPECT_EQ(Post("runs/search", json::object())["runs"], json::array());
  EXPECT_THAT(Post("runs/search", json{{"filter", "x"}}, 400)["message"], HasSubstr("'x'"));
  Post("runs/delete-tag", json{{"run_id", run}, {"key", "t"}});
  Post("runs/delete-tag", json{{"run_id", run}, {"key", "t"}}, 404);
}

TEST_F(TrackingServerTest, ValuesThatAreTooLongAreCutAsMlflowDoes) {
  const std::string run = NewRun();
  Post("runs/log-parameter",
       json{{"run_id", run}, {"key", "p"}, {"value", std::string(9000, 'x')}});
  Post("runs/set-tag", json{{"run_id", run}, {"key", "t"}, {"value", std::string(9000, 'x')}});
  const json data = Get("runs/get", {{"run_id", run}})["run"]["data"];
  EXPECT_EQ(data["params"][0]["value"].get<std::string>().size(), kMostParamLength);
  for (const json& tag : data["tags"]) {
    if (tag["key"] != "t") continue;
    EXPECT_EQ(tag["value"].get<std::string>().size(), kMostTagLength);
  }
}

TEST_F(TrackingServerTest, WhatIsNoMetricIsRefused) {
  const std::string run = NewRun();
  const json metric = {{"run_id", run}, {"key", "m"}, {"value", 1}, {"timestamp", 1}};
  Post("runs/log-metric", metric);
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, json>>{{"value", "x"},
                                                 {"value", nullptr},
                                                 {"timestamp", -1},
                                                 {"timestamp", nullptr},
                                                 {"key", "../x"},
                                                 {"step", "x"},
                                                 {"key", std::string("a\0b", 3)}}) {
    json wrong = metric;
    wrong[name] = value;
    EXPECT_EQ(Post("runs/log-metric", wrong, 400)["error_code"], "INVALID_PARAMETER_VALUE");
  }
  Post("runs/log-metric", std::string("{\"run_id\":") + std::string(100'000, '['), 400);
  EXPECT_EQ(Get("metrics/get-history", {{"run_id", run}, {"metric_key", "m"}})["metrics"].size(),
            1u);
}

TEST_F(TrackingServerTest, AHistoryComesInPagesOrStreamed) {
  const std::string run = NewRun();
  for (int batch = 0; batch < 5; ++batch) {
    json metrics = json::array();
    for (int i = 0; i < 1000; ++i) {
      metrics.push_back({{"key", "m"}, {"value", i}, {"timestamp", 1}, {"step", batch * 1000 + i}});
    }
    Post("runs/log-batch", json{{"run_id", run}, {"metrics", metrics}});
  }
  pieces_ = 0;
  const json whole = Get("metrics/get-history", {{"run_id", run}, {"metric_key", "m"}});
  EXPECT_EQ(whole["metrics"].size(), 5000u);
  EXPECT_EQ(whole["metrics"][4999]["step"], 4999);
  EXPECT_GT(pieces_, 1);
  std::multimap<std::string, std::string> query = {
      {"run_id", run}, {"metric_key", "m"}, {"max_results", "2000"}};
  size_t points = 0;
  while (true) {
    const json page = Get("metrics/get-history", query);
    points += page["metrics"].size();
    if (!page.contains("next_page_token")) break;
    query.erase("page_token");
    query.emplace("page_token", page["next_page_token"]);
  }
  EXPECT_EQ(points, 5000u);
  Get("metrics/get-history", {{"run_id", "x"}, {"metric_key", "m"}}, 404);
  Get("metrics/get-history", {{"run_id", run}, {"metric_key", "m"}, {"page_token", "1:2"}}, 400);
}

TEST_F(TrackingServerTest, ChartsGetASampleOfEachRun) {
  const std::string a = NewRun(), b = NewRun();
  for (const std::string& run : {a, b}) {
    json metrics = json::array();
    for (int i = 0; i < 1000; ++i) {
      metrics.push_back({{"key", "m"}, {"value", i}, {"timestamp", 1}, {"step", i}});
    }
    Post("runs/log-batch", json{{"run_id", run}, {"metrics", metrics}});
  }
  const std::multimap<std::string, std::string> query = {
      {"run_ids", a}, {"run_ids", b}, {"metric_key", "m"}, {"max_results", "10"}};
  const json sample = Get("metrics/get-history-bulk-interval", query)["metrics"];
  ASSERT_EQ(sample.size(), 20u);
  EXPECT_EQ(sample[1]["step"], 100);
  EXPECT_EQ(sample[19]["step"], 999);
  EXPECT_EQ(sample[0]["run_id"], a);
  EXPECT_EQ(sample[19]["run_id"], b);
  auto half = query;
  half.emplace("start_step", "5");
  Get("metrics/get-history-bulk-interval", half, 400);
  half.emplace("end_step", "4");
  Get("metrics/get-history-bulk-interval", half, 400);
  Get("metrics/get-history-bulk-interval", {{"metric_key", "m"}}, 400);
  const json bulk = Get("metrics/get-history-bulk",
                        {{"run_id", a}, {"run_id", b}, {"metric_key", "m"}, {"max_results", "7"}});
  EXPECT_EQ(bulk["metrics"].size(), 7u);
}

TEST_F(TrackingServerTest, InputsAndModels) {
  const std::string run = NewRun();
  const json dataset = {{"name", "d"}, {"digest", "1"}, {"source_type", "local"}, {"source", "{}"}};
  const json input = {{"dataset", dataset},
                      {"tags", {{{"key", "mlflow.data.context"}, {"value", "eval"}}}}};
  Post("runs/log-inputs", json{{"run_id", run}, {"datasets", {input}}});
  Post("runs/log-inputs", json{{"run_id", run}, {"datasets", {{{"dataset", {{"name", "d"}}}}}}},
       400);
  const json inputs = Get("runs/get", {{"run_id", run}})["run"]["inputs"];
  EXPECT_EQ(inputs["dataset_inputs"][0], input);
  const json model = {{"run_id", run},
                      {"artifact_path", "m"},
                      {"utc_time_created", "now"},
                      {"flavors", json::object()}};
  Post("runs/log-model", json{{"run_id", run}, {"model_json", model.dump()}});
  Post("runs/log-model", json{{"run_id", run}, {"model_json", "{}"}}, 400);
}

TEST_F(TrackingServerTest, LoggedModelsAsMlflow3AnswersThem) {
  const std::string run = NewRun();
  const json created =
      Post("logged-models", json{{"experiment_id", "0"},
                                 {"name", "net"},
                                 {"source_run_id", run},
                                 {"params", {{{"key", "p"}, {"value", "1"}}}}})["model"];
  const std::string id = created["info"]["model_id"];
  EXPECT_EQ(created["info"]["status"], "LOGGED_MODEL_PENDING");
  EXPECT_EQ(created["info"]["artifact_uri"],
            absl::StrCat("mlflow-artifacts:/0/models/", id, "/artifacts"));
  const std::string path = "logged-models/" + id;
  EXPECT_EQ(Send("PATCH", path, json{{"status", "LOGGED_MODEL_READY"}})["model"]["info"]["status"],
            "LOGGED_MODEL_READY");
  Send("PATCH", path, json{{"status", "DONE"}}, 400);
  Send("PATCH", path + "/tags", json{{"tags", {{{"key", "a/b"}, {"value", "x"}}}}});
  Post(path + "/params", json{{"params", {{{"key", "p"}, {"value", "2"}}}}}, 400);
  Post(path + "/params", json{{"params", {{{"key", "q"}, {"value", "2"}}}}});
  const json metric = {
      {"run_id", run}, {"key", "acc"},   {"value", 0.5},        {"timestamp", 1},
      {"step", 3},     {"model_id", id}, {"dataset_name", "d"}, {"dataset_digest", "1"}};
  Post("runs/log-metric", metric);
  Post("runs/outputs", json{{"run_id", run}, {"models", {{{"model_id", id}, {"step", 3}}}}});
  const json model = Get(path, {})["model"];
  EXPECT_EQ(model["data"]["metrics"], json::array({metric}));
  EXPECT_EQ(model["data"]["params"].size(), 2u);
  EXPECT_EQ(Get("runs/get", {{"run_id", run}})["run"]["outputs"]["model_outputs"][0]["model_id"],
            id);
  const json search = {{"experiment_ids", {"0"}},
                       {"filter", "metrics.acc > 0.4 and name = 'net' and params.p = '1'"},
                       {"order_by", {{{"field_name", "metrics.acc"}, {"ascending", false}}}}};
  EXPECT_EQ(Post("logged-models/search", search)["models"][0]["info"]["model_id"], id);
  Send("DELETE", path + "/tags/a/b", json::object());
  Send("DELETE", path + "/tags/a/b", json::object(), 404);
  Send("DELETE", path, json::object());
  Get(path, {}, 404);
  Get(path, {{"allow_deleted", "true"}});
  EXPECT_TRUE(Post("logged-models/search", search)["models"].empty());
}

TEST_F(TrackingServerTest, WhatItDoesNotHaveIsRefusedByName) {
  const json error = Post("registered-models/create", json{{"name", "m"}}, 501);
  EXPECT_EQ(error["error_code"], "NOT_IMPLEMENTED");
  EXPECT_THAT(error["message"], HasSubstr("model registry"));
  EXPECT_THAT(error["message"], HasSubstr("`tutti model register` keeps models by name"));
  EXPECT_THAT(Get("traces/search", {}, 501)["message"], HasSubstr("traces"));
  EXPECT_EQ(Get("nothing/here", {}, 404)["error_code"], "ENDPOINT_NOT_FOUND");
  EXPECT_EQ(Get("runs/create", {}, 404)["error_code"], "ENDPOINT_NOT_FOUND");
}

TEST_F(TrackingServerTest, ACallIsKnownByItsWholeName) {
  const json model = {{"experiment_id", "0"}, {"name", "net"}};
  const std::pair<const char*, const char*> calls[] = {
      {"POST", "logged-modelsX"},         {"POST", "logged-models/"},
      {"DELETE", "logged-models/search"}, {"PATCH", "logged-models/search"},
      {"PUT", "logged-models/m-1"},       {"POST", "datasetsX"}};
  for (const auto& [method, call] : calls) {
    EXPECT_EQ(Send(method, call, model, 404)["error_code"], "ENDPOINT_NOT_FOUND") << call;
  }
  const json all = {{"experiment_ids", {"0"}}};
  EXPECT_TRUE(Post("logged-models/search", all)["models"].empty());
}

TEST_F(TrackingServerTest, AnExperimentsFilesHaveAPath) {
  for (const char* location : {"mlflow-artifacts:/../..", "mlflow-artifacts:/a//b"}) {
    EXPECT_EQ(Post("experiments/create", json{{"name", "e"}, {"artifact_location", location}},
                   400)["error_code"],
              "INVALID_PARAMETER_VALUE");
  }
  Post("experiments/create", json{{"name", "e"}, {"artifact_location", "mlflow-artifacts:/a/b"}});
  Post("experiments/create", json{{"name", "f"}, {"artifact_location", "s3://bucket/../x"}});
}

TEST_F(TrackingServerTest, ArtifactsAreTakenListedAndSent) {
  const std::string run = NewRun();
  const std::string folder = absl::StrCat("0/", run, "/artifacts");
  Body weights("abc");
  EXPECT_EQ(server_->PutArtifact(folder + "/model/weights", weights).status, 200);
  EXPECT_EQ(server_->PutArtifact("../x", weights).status, 400);
  const auto list = [&](std::multimap<std::string, std::string> query) {
    return JsonIn(server_->ListArtifactsOfRun({.method = "GET", .query = std::move(query)}));
  };
  const json root = list({{"run_id", run}});
  EXPECT_EQ(root["root_uri"], "mlflow-artifacts:/" + folder);
  EXPECT_EQ(root["files"], (json{{{"path", "model"}, {"is_dir", true}}}));
  EXPECT_EQ(list({{"run_id", run}, {"path", "model"}})["files"],
            (json{{{"path", "model/weights"}, {"is_dir", false}, {"file_size", 3}}}));
  EXPECT_EQ(list({{"run_id", run}, {"path", "../../.."}})["error_code"], "INVALID_PARAMETER_VALUE");
  const json below =
      JsonIn(server_->ListArtifacts({.method = "GET", .query = {{"path", folder + "/model"}}}));
  EXPECT_EQ(below["files"][0]["path"], "weights");
  EXPECT_EQ(base::ReadFile(server_->GetArtifact(folder + "/model/weights").file).value(), "abc");
  EXPECT_EQ(server_->GetArtifact(folder + "/model").status, 404);
  EXPECT_EQ(server_->DeleteArtifact(folder + "/model").status, 200);
  EXPECT_EQ(server_->GetArtifact(folder + "/model/weights").status, 404);
}

}  // namespace
}  // namespace tutti::tracking

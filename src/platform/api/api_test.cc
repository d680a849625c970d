// Covers: launcher_routes.cc, rest.cc, json/status_json.cc, routing/query.cc, stream_answer.cc,
// file_answer.cc, json/usage_json.cc, question_answer.cc, generate/openapi_schemas.cc.
#include "platform/api/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/notification.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/test_patience.h"
#include "http/client/client.h"
#include "http/file_batch.h"
#include "platform/api/callers_for_tests.h"
#include "platform/api/json/status_json.h"
#include "platform/api/launcher_routes.h"
#include "platform/api/model_routes.h"
#include "platform/api/openapi.h"
#include "platform/api/portal/portal_routes.h"
#include "platform/api/rest.h"
#include "platform/api/schema_check_for_tests.h"
#include "platform/service/attempt/launcher_token.h"
#include "platform/service/results/file_signature.h"
#include "platform/service/world_for_tests.h"

namespace tutti::api {
namespace {

using nlohmann::json;
using service::DiskEngine;
using ::testing::HasSubstr;

std::string TokenOf(const char* allocation) {
  return service::LauncherToken(kLauncherKey, allocation);
}

// Finds the same at every look that it is asked for, and is due for none.
class OneFinding final : public service::NodeChecker {
 public:
  std::vector<health::NodeCheck> Check(const engine::Node& node, absl::Duration age) override {
    if (age > absl::Seconds(1) || node.name != "n1") return {{"disk"}};
    return {{"disk"}, {"gpu", health::NodeCheck::Outcome::kIll, "GPU 1 is gone"}};
  }
  void Accept() override {}
  absl::Duration interval() const override { return absl::Hours(1); }
  absl::Duration patience() const override { return absl::Minutes(1); }
};

// A real server on loopback, on an engine of this test whose launchers are played by a thread.
class ApiTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(); }
  void TearDown() override { End(); }

  void Start() {
    const std::filesystem::path directory = folder_.path() / "state";
    ASSERT_TRUE(base::MakeDirectories(directory).ok());
    engine_ = std::make_unique<DiskEngine>(folder_.path() / "engine");
    engine_->cores = {0, 1, 2, 3};
    engine_->gpus = {"4", "7"};
    auto store = store::Store::Open(directory / "tutti.db");
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    auto service = service::Service::Open({.directory = directory,
                                           .launcher_file = directory / "launcher.json",
                                           .launcher_key = kLauncherKey,
                                           .observe_interval = absl::Milliseconds(20),
                                           .patience_with_folders = patience_,
                                           .node_checker = &checker_},
                                          store_.get(), engine_.get(), &clock_);
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
    auto server = ApiServer::Start(
        {.port = 0, .tokens = {.user = kUserToken, .launcher_key = kLauncherKey}}, service_.get());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    service_->Run();
    over_ = false;
    launchers_ = std::thread([this] {
      service::Launchers launchers(engine_.get(), {});
      while (!over_) {
        if (!play_ || !launchers.Step(*service_, absl::Now())) {
          absl::SleepFor(absl::Milliseconds(2));
        }
      }
    });
  }
  void End() {
    over_ = true;
    if (launchers_.joinable()) launchers_.join();
    if (service_ != nullptr) service_->Stop();
    server_.reset();
    service_.reset();
  }

  http::ClientResponse Send(http::ClientRequest request, absl::optional<std::string> token = {}) {
    http::Client client(server_->url(), token.value_or(std::string(kUserToken)));
    auto response = client.Send(request);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *std::move(response) : http::ClientResponse{};
  }
  http::ClientResponse Get(const std::string& target) { return Send({.target = target}); }
  // The body, which must fit the schema that the document gives for that answer.
  json Fits(const std::string& method, const std::string& pattern,
            const http::ClientResponse& response) {
    const json body = json::parse(response.body, nullptr, false);
    EXPECT_FALSE(body.is_discarded()) << response.body;
    const json& operation = document_.at("paths").at(pattern).at(method);
    const std::string status = std::to_string(response.status);
    EXPECT_TRUE(operation.at("responses").contains(status))
        << method << " " << pattern << " answered an undocumented " << status << ": "
        << response.body;
    if (!operation["responses"].contains(status)) return body;
    json answer = operation["responses"][status];
    if (answer.contains("$ref")) {
      answer = document_.at(json::json_pointer(answer["$ref"].get<std::string>().substr(1)));
    }
    EXPECT_EQ(check_.Check(answer.at("content").at("application/json").at("schema"), body), "");
    return body;
  }
  json CreateJob(const std::string& text = service::kJobFile) {
    return Fits("post", "/v1/jobs",
                Send({.method = "POST",
                      .target = "/v1/jobs",
                      .body = json{{"text", text}, {"base_directory", "/"}}.dump()}));
  }
  void ExpectError(const http::ClientResponse& response, int status, const std::string& code) {
    EXPECT_EQ(response.status, status) << response.body;
    const json body = json::parse(response.body, nullptr, false);
    ASSERT_TRUE(body.is_object()) << response.body;
    EXPECT_EQ(check_.Check(document_["components"]["schemas"]["Error"], body), "");
    EXPECT_EQ(body["error"]["code"], code);
  }

  base::TemporaryDirectory folder_;
  const json document_ = json::parse(OpenApiText().begin(), OpenApiText().end());
  const SchemaCheck check_{document_};
  const base::SystemClock clock_;
  OneFinding checker_;
  std::unique_ptr<DiskEngine> engine_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<service::Service> service_;
  std::unique_ptr<ApiServer> server_;
  std::thread launchers_;
  std::atomic<bool> over_ = false, play_ = true;
  absl::Duration patience_ = absl::Hours(1);
};

using FileWork = service::Service::FileWork;

// Folders that do not answer: their work hangs as long as this lives.
class HungFolders {
 public:
  HungFolders(service::Service* service,
              const std::vector<std::pair<FileWork, std::string>>& queues) {
    for (const auto& [kind, queue] : queues) {
      auto begun = std::make_shared<absl::Notification>();
      const auto deadline = service->DoFileWork(kind, queue, [begun, until = over_] {
        begun->Notify();
        until->WaitForNotification();
      });
      EXPECT_TRUE(deadline.ok()) << deadline.status();
      begun->WaitForNotification();
    }
  }
  ~HungFolders() { over_->Notify(); }

 private:
  const std::shared_ptr<absl::Notification> over_ = std::make_shared<absl::Notification>();
};

TEST_F(ApiTest, DocumentsTheRoutesThatThereAreAndNoOthers) {
  std::set<std::string> there;
  const Portal portal;
  auto routes = UserRoutes(service_.get());
  for (auto& route : PortalRoutes(&portal)) routes.push_back(route);
  for (auto& route : ModelRoutes(service_.get())) routes.push_back(route);
  for (auto& route : LauncherRoutes(service_.get())) routes.push_back(route);
  for (const Route& route : routes) {
    there.insert(absl::AsciiStrToLower(route.method) + " " +
                 absl::StrReplaceAll(route.pattern, {{"...}", "}"}}));
  }
  std::set<std::string> documented;
  for (const auto& [path, operations] : document_.at("paths").items()) {
    for (const auto& [method, operation] : operations.items()) {
      if (method != "parameters") documented.insert(method + " " + path);
    }
  }
  EXPECT_EQ(there, documented);
  EXPECT_EQ(json::parse(Send({.target = "/openapi.json"}, "").body), document_);
}

TEST_F(ApiTest, DocumentsTheViewsAsTheyAreDeclared) {
  const auto file = base::ReadFile(TUTTI_OPENAPI, 1 << 24);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(*file == OpenApiText())
      << "src/platform/api/openapi.json lags behind src/spec/views: copy openapi.json from "
         "src/platform/api in the build's folder over it";
}

TEST_F(ApiTest, DocumentsWhoMayCallWhat) {
  for (const Route& route : LauncherRoutes(service_.get())) {
    EXPECT_EQ(route.access, Access::kLauncher) << route.pattern;
    EXPECT_TRUE(absl::StartsWith(route.pattern, "/internal/")) << route.pattern;
  }
  auto routes = UserRoutes(service_.get());
  for (auto& route : ModelRoutes(service_.get())) routes.push_back(route);
  for (const Route& route : routes) {
    const json& operation = document_["paths"][absl::StrReplaceAll(route.pattern, {{"...}", "}"}})]
                                     [absl::AsciiStrToLower(route.method)];
    const bool without_token = route.access == Access::kAnyone || route.access == Access::kSigned;
    EXPECT_EQ(without_token, operation.value("security", json(nullptr)) == json::array())
        << route.pattern;
  }
}

TEST_F(ApiTest, LeadsAJobFromSubmissionToItsDeletion) {
  const json created = CreateJob();
  EXPECT_EQ(created["id"], "j");
  EXPECT_EQ(created["name"], "j");
  EXPECT_EQ(created["display_name"], "j");
  EXPECT_THAT(created["state"], ::testing::AnyOf("Queued", "Provisioning"));
  EXPECT_EQ(created["world_size"], 2);

  std::vector<json> lines;
  std::string cursor_in_the_middle;
  const http::ClientResponse stream =
      Send({.target = "/v1/jobs/j/stream",
            .stall_timeout = base::Patient(absl::Seconds(30)),
            .on_chunk = http::ByLine([&](absl::string_view line) {
              lines.push_back(json::parse(line.begin(), line.end()));
              return absl::OkStatus();
            })});
  EXPECT_EQ(stream.status, 200);
  ASSERT_EQ(lines.size(), 13u);
  for (const json& line : lines) {
    EXPECT_EQ(check_.Check(document_["components"]["schemas"]["FollowLine"], line), "");
  }
  EXPECT_EQ(lines.back()["state"], "Completed");
  const http::ClientResponse rest =
      Get(absl::StrCat("/v1/jobs/j/stream?cursor=", lines[9]["cursor"].get<std::string>()));
  EXPECT_EQ(std::count(rest.body.begin(), rest.body.end(), '\n'), 3);
  const json page = Fits("get", "/v1/jobs/{job}/lines", Get("/v1/jobs/j/lines?limit=2"));
  EXPECT_EQ(page["lines"].back(), lines.back());
  const std::string before = absl::StrCat("before=", page["before"].get<std::string>());
  const json older =
      Fits("get", "/v1/jobs/{job}/lines", Get(absl::StrCat("/v1/jobs/j/lines?", before)));
  EXPECT_EQ(older["lines"].size() + page["lines"].size(), lines.size());
  EXPECT_TRUE(older["before"].is_null());

  const json job = Fits("get", "/v1/jobs/{job}", Get("/v1/jobs/j"));
  EXPECT_EQ(job["state"], "Completed");
  EXPECT_EQ(job["events"].size(), 7u);
  EXPECT_EQ(job["nodes"], json({"n1", "n2"}));
  EXPECT_THAT(job["ended"].get<std::string>(),
              ::testing::MatchesRegex("20..-..-..T..:..:..\\.......Z"));
  const json jobs = Fits("get", "/v1/jobs", Get("/v1/jobs?state=completed,failed&limit=5"));
  EXPECT_EQ(jobs["jobs"].size(), 1u);
  EXPECT_EQ(Fits("get", "/v1/jobs", Get("/v1/jobs?before=1"))["jobs"].size(), 0u);

  const json files = Fits("get", "/v1/jobs/{job}/files", Get("/v1/jobs/j/files"));
  EXPECT_EQ(files["files"].size(), 4u);
  EXPECT_EQ(Get("/v1/jobs/j/files/outputs/from-n1").body, "result");
  EXPECT_EQ(Get("/v1/jobs/j/files/logs/rank-0.stdout").headers.at("content-type"),
            "text/plain; charset=utf-8");

  Fits("post", "/v1/jobs/{job}/cancel", Send({.method = "POST", .target = "/v1/jobs/j/cancel"}));
  Fits("delete", "/v1/jobs/{job}", Send({.method = "DELETE", .target = "/v1/jobs/j"}));
  ExpectError(Get("/v1/jobs/j"), 404, "not_found");
}

TEST_F(ApiTest, TellsWhatAJobWasSubmittedAsAndReadAs) {
  CreateJob();
  const json submission = Fits("get", "/v1/jobs/{job}/submission", Get("/v1/jobs/j/submission"));
  EXPECT_EQ(submission["former"], nullptr);
  EXPECT_EQ(submission["job"]["instance_count"], 2);
  const json asked =
      Fits("get", "/v1/jobs/{job}/submission", Get("/v1/jobs/j/submission?former=true"));
  EXPECT_EQ(asked["former"], nullptr) << "it is the first";
}

TEST_F(ApiTest, GivesCodeBackAsItCame) {
  const std::string code = "an archive";
  const std::string target = "/v1/snapshots/sha256:" + base::Hex(base::Sha256Of(code));
  ExpectError(Get(target), 404, "not_found");
  EXPECT_EQ(Send({.method = "PUT", .target = target, .body = code}).status, 201);
  EXPECT_EQ(Get(target).body, code);
}

TEST_F(ApiTest, ListsTrialsAndEventsByPage) {
  play_ = false;  // so that trials wait
  const json sweep = CreateJob(R"(type: sweep
name: s
trial: {command: "echo ${{search_space.x}}"}
sampling_algorithm: grid
search_space: {x: {type: choice, values: [1, 2, 3, 4]}}
objective: {goal: minimize, primary_metric: loss}
limits: {max_concurrent_trials: 3}
)");
  ASSERT_EQ(sweep["id"], "s") << sweep;
  const auto shown = [&] { return Fits("get", "/v1/jobs/{job}", Get("/v1/jobs/s")); };
  base::AwaitPatiently(absl::Seconds(20), [&] { return shown()["children"].size() == 3; });
  const json job = shown();
  ASSERT_EQ(job["children"].size(), 3u) << job;
  EXPECT_EQ(job["trials"]["count"], 3);
  EXPECT_EQ(job["trials"]["next"], nullptr);
  EXPECT_EQ(job["children"][1]["values"], json({{"x", "2"}}));
  const std::string pattern = "/v1/jobs/{job}/trials", target = "/v1/jobs/s/trials";
  const json first = Fits("get", pattern, Get(target + "?limit=2"));
  EXPECT_EQ(first["trials"].size(), 2u);
  const std::string next = first["next"];
  const json second = Fits("get", pattern, Get(target + "?limit=2&after=" + next));
  ASSERT_EQ(second["trials"].size(), 1u);
  EXPECT_EQ(second["trials"][0]["step"], "trial-3");
  EXPECT_EQ(second["next"], nullptr);
  EXPECT_EQ(Fits("get", pattern, Get(target + "?order=best"))["trials"].size(), 0u);
  EXPECT_EQ(Fits("get", pattern, Get(target + "?state=Failed"))["trials"].size(), 0u);
  for (const char* wrong : {"?order=worst", "?order=best&state=Failed", "?after=x", "?limit=0",
                            "?state=None", "?order=best&after=3"}) {
    ExpectError(Get(target + wrong), 400, "invalid_argument");
  }
  ExpectError(Get("/v1/jobs/s.trial-1/trials"), 400, "invalid_argument");
  ExpectError(Get("/v1/jobs/none/trials"), 404, "not_found");

  EXPECT_EQ(job["events_before"], nullptr);
  ASSERT_GE(job["events"].size(), 2u);
  const json last = Fits("get", "/v1/jobs/{job}/events", Get("/v1/jobs/s/events?limit=1"));
  ASSERT_EQ(last["events"].size(), 1u);
  const std::string before = last["before"].dump();
  const json older =
      Fits("get", "/v1/jobs/{job}/events", Get("/v1/jobs/s/events?before=" + before));
  EXPECT_EQ(older["before"], nullptr);
  EXPECT_EQ(older["events"].front()["state"], "Queued");
  EXPECT_LT(older["events"].back()["sequence"], last["events"][0]["sequence"]);
  ExpectError(Get("/v1/jobs/s/events?before=-1"), 400, "invalid_argument");
  ExpectError(Get("/v1/jobs/none/events"), 404, "not_found");
}

TEST_F(ApiTest, TellsTheQueueAndThePlaceOfAJobInIt) {
  play_ = false;
  CreateJob();  // has both nodes
  base::AwaitPatiently(absl::Seconds(20), [&] { return engine_->Starts().size() >= 2; });
  CreateJob(absl::StrReplaceAll(service::kJobFile, {{"name: j", "name: next"}}));
  const json queues = Fits("get", "/v1/queues", Get("/v1/queues?limit=5"))["queues"];
  ASSERT_EQ(queues.size(), 1u);
  EXPECT_EQ(queues[0]["count"], 1);
  EXPECT_EQ(queues[0]["jobs"][0]["id"], "next");
  EXPECT_EQ(queues[0]["jobs"][0]["place"], 1);
  EXPECT_EQ(queues[0]["jobs"][0]["expected_start_is"], "latest");
  const json next = Fits("get", "/v1/jobs/{job}", Get("/v1/jobs/next"));
  EXPECT_EQ(next["queue"], json({{"place", 1}, {"ahead", json::array()}}));
  EXPECT_EQ(Fits("get", "/v1/jobs/{job}", Get("/v1/jobs/j"))["queue"], nullptr);
  ExpectError(Get("/v1/queues?limit=0"), 400, "invalid_argument");
}

TEST_F(ApiTest, TellsAMonitorThatHasTheToken) {
  const auto answer = Get("/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.headers.at("content-type"), HasSubstr("text/plain; version=0.0.4"));
  EXPECT_THAT(answer.body, HasSubstr("\ntutti_node_gpus{compute=\"local\",node=\"n1\"} 2\n"));
  EXPECT_EQ(Send({.target = "/metrics"}, "").status, 401);
  const std::string own = service::MetricsToken(kLauncherKey);
  EXPECT_EQ(Send({.target = "/metrics"}, own).status, 200);
  EXPECT_EQ(Send({.target = "/v1/jobs"}, own).status, 401);
  EXPECT_EQ(Send({.method = "POST", .target = "/v1/jobs/j/cancel"}, own).status, 401);
}

TEST_F(ApiTest, TellsAMonitorOfTheCallsThatThereWere) {
  ExpectError(Get("/v1/jobs/none"), 404, "not_found");
  Get("/nowhere");
  Send({.target = "/v1/jobs"}, "wrong");
  const std::string text = Get("/metrics").body;
  EXPECT_THAT(text, HasSubstr("\ntutti_http_requests_total{method=\"GET\",route=\"/v1/jobs/{job}\","
                              "status=\"404\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\ntutti_http_requests_total{method=\"other\",route=\"other\","
                              "status=\"404\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("{method=\"GET\",route=\"/v1/jobs\",status=\"401\"} 1\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex(
                        "\ntutti_http_connections\\{party=\"(user|monitor)\"\\} [1-9]"));
  EXPECT_THAT(Get("/metrics").body,
              HasSubstr("{method=\"GET\",route=\"/metrics\",status=\"200\"} 1\n"));
}

TEST_F(ApiTest, TellsAMonitorInTheFormAndAsMuchAsItAsksFor) {
  const auto open =
      Send({.target = "/metrics", .headers = {{"Accept", "application/openmetrics-text"}}});
  EXPECT_THAT(open.headers.at("content-type"),
              HasSubstr("application/openmetrics-text; version=1"));
  EXPECT_THAT(open.body, ::testing::EndsWith("\n# EOF\n"));
  EXPECT_THAT(Get("/metrics?nodes=1").body, HasSubstr("tutti_metrics_left_out{of=\"nodes\"} 1\n"));
  ExpectError(Get("/metrics?jobs=some"), 400, "invalid_argument");
  ExpectError(Get("/metrics?nodes=10001"), 400, "invalid_argument");
}

TEST_F(ApiTest, ShowsNodesAndWhoHoldsThem) {
  play_ = false;
  CreateJob();
  json nodes;
  base::AwaitPatiently(absl::Seconds(20), [&] {
    nodes = Fits("get", "/v1/nodes", Get("/v1/nodes"))["nodes"];
    return !nodes[0]["job"].is_null();
  });
  EXPECT_EQ(nodes[0]["state"], "running");
  EXPECT_EQ(nodes[0]["job"], "j");
  ExpectError(Send({.method = "DELETE", .target = "/v1/jobs/j"}), 409, "failed_precondition");
  const std::string stream = Get("/v1/jobs/j/stream?follow=false").body;
  EXPECT_THAT(stream, HasSubstr("\"Queued\""));
}

TEST_F(ApiTest, TellsHowFileServersStand) {
  const auto ask = [&] {
    return Fits("get", "/v1/file-servers", Get("/v1/file-servers"))["file_servers"];
  };
  EXPECT_EQ(ask(), json::array());
  const std::filesystem::path home = folder_.path() / "state";
  spec::FileServer photos{.name = "photos", .folder = "/data/photos", .address = "10.0.0.5"};
  photos.clients = {"10.0.0.0/24"};
  photos.is_writable = true;
  ASSERT_TRUE(spec::WriteFileServers(home, {{photos.name, photos}}).ok());
  const json waits = ask();
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0]["state"], "waits for the service");
  EXPECT_EQ(waits[0]["reason"], nullptr);
  EXPECT_EQ(waits[0]["fill"], nullptr);
  const std::filesystem::path noted = file_server::ServerFolder(home, photos.name);
  ASSERT_TRUE(base::MakeDirectories(noted).ok());
  ASSERT_TRUE(
      file_server::WriteServerState(noted, {.state = "failed", .error = "its port is in use"})
          .ok());
  ASSERT_TRUE(file_server::WriteFillState(noted, {.from = "azureml://datastores/blobs/paths/train",
                                                  .state = "cut off",
                                                  .files = 1,
                                                  .of_files = 2,
                                                  .bytes = 3,
                                                  .of_bytes = 4,
                                                  .updated = 1'700'000'000,
                                                  .error = "the store is away"})
                  .ok());
  const json servers = ask();
  EXPECT_EQ(servers, json::parse(R"([{
      "name": "photos", "folder": "/data/photos", "address": "10.0.0.5", "port": 2049,
      "access": "read_write", "state": "failed", "reason": "its port is in use",
      "fill": {"state": "cut off", "from": "azureml://datastores/blobs/paths/train", "files": 1,
               "of_files": 2, "bytes": 3, "of_bytes": 4,
               "updated": "2023-11-14T22:13:20.000000Z", "reason": "the store is away"}}])"));
  EXPECT_EQ(Fits("get", "/v1/nodes", Get("/v1/nodes"))["file_servers"], servers);
  ASSERT_TRUE(base::WriteFileAtomic(spec::FileServersFile(home), "[]").ok());
  ExpectError(Get("/v1/file-servers"), 409, "failed_precondition");
  const json nodes = Fits("get", "/v1/nodes", Get("/v1/nodes"));
  EXPECT_EQ(nodes["nodes"].size(), 2u);
  EXPECT_EQ(nodes["file_servers"], json::array());
  EXPECT_THAT(nodes["warnings"].dump(), HasSubstr("the file servers are not known: "));
}

TEST_F(ApiTest, CordonsANodeAndLetsItGo) {
  const std::string path = "/v1/nodes/{compute}/{node}/cordon";
  const std::string target = "/v1/nodes/local/n1/cordon";
  const auto put = [&](const std::string& body) {
    return Send({.method = "PUT", .target = target, .body = body});
  };
  ExpectError(put("{}"), 400, "invalid_argument");
  ExpectError(put(R"({"reason": 3})"), 400, "invalid_argument");
  ExpectError(put(R"({"reason": ""})"), 400, "invalid_argument");
  Fits("put", path, put(R"({"reason": "ECC errors"})"));
  const json node = Fits("get", "/v1/nodes", Get("/v1/nodes"))["nodes"][0];
  EXPECT_EQ(node["state"], "cordoned");
  EXPECT_EQ(node["reason"], "ECC errors");
  Fits("delete", path, Send({.method = "DELETE", .target = target}));
  ExpectError(Send({.method = "DELETE", .target = target}), 404, "not_found");
}

TEST_F(ApiTest, SaysWhatAJobHasOfItsNodesAndWhatOfANodeIsUsed) {
  play_ = false;  // it stays where it is
  CreateJob(absl::StrCat("type: command\nname: p\ncommand: echo hi\n",
                         "resources: {properties: {tutti: {cpus: 3, gpus: 1}}}\n"));
  json job;
  for (const base::Deadline deadline = base::Deadline::After(base::Patient(absl::Seconds(10)));
       !deadline.Expired();) {
    job = Fits("get", "/v1/jobs/{job}", Get("/v1/jobs/p"));
    if (!job["parts"].empty()) break;
  }
  EXPECT_EQ(job["part"], (json{{"cpus", 3}, {"memory_bytes", 0}, {"gpus", 1}}));
  ASSERT_EQ(job["parts"].size(), 1U) << job;
  EXPECT_EQ(job["parts"][0]["cores"], (json{0, 1, 2}));
  EXPECT_EQ(job["parts"][0]["gpus"], json{"4"});
  const json node = Fits("get", "/v1/nodes", Get("/v1/nodes"))["nodes"][0];
  EXPECT_EQ(node["jobs"], json{"p"});
  EXPECT_EQ(node["used"]["cores"], 3);
  EXPECT_EQ(node["gpus"], (json{"4", "7"}));
}

TEST_F(ApiTest, LooksAtANode) {
  const std::string path = "/v1/nodes/{compute}/{node}/check";
  const json checks =
      Fits("post", path, Send({.method = "POST", .target = "/v1/nodes/local/n1/check"}))["checks"];
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_EQ(checks[1]["name"], "gpu");
  EXPECT_EQ(checks[1]["outcome"], "ill");
  EXPECT_EQ(checks[1]["detail"], "GPU 1 is gone");
  const json node = Fits("get", "/v1/nodes", Get("/v1/nodes"))["nodes"][0];
  EXPECT_EQ(node["cordoned_by"], "check");
  EXPECT_EQ(node["reason"], "gpu: GPU 1 is gone");
  ExpectError(Send({.method = "POST", .target = "/v1/nodes/local/n9/check"}), 404, "not_found");
}

TEST_F(ApiTest, KeepsSnapshotsByTheirHash) {
  const std::string bytes(3 << 20, 's');
  const std::string name = "sha256:" + base::Hex(base::Sha256Of(bytes));
  const std::string target = "/v1/snapshots/" + name;
  EXPECT_EQ(Send({.method = "HEAD", .target = target}).status, 404);
  const auto put = [&](const std::string& body) {
    return Send(
        {.method = "PUT", .target = target, .content_type = "application/zstd", .body = body});
  };
  ExpectError(put("something else"), 400, "invalid_argument");
  EXPECT_EQ(Send({.method = "HEAD", .target = target}).status, 404);
  Fits("put", "/v1/snapshots/{snapshot}", put(bytes));
  EXPECT_EQ(put(bytes).status, 201);
  EXPECT_EQ(Send({.method = "HEAD", .target = target}).status, 200);
  play_ = false;
  CreateJob();
  const std::string internal =
      absl::StrReplaceAll(target, {{"/v1", "/internal/v1/allocations/j.1"}});
  const auto read = Send({.target = internal}, TokenOf("j.1"));
  EXPECT_EQ(read.status, 200);
  EXPECT_EQ(read.body, bytes);
  ExpectError(Send({.target = internal}, TokenOf("j.2")), 401, "unauthenticated");
  ExpectError(Send({.target = "/internal" + target}, TokenOf("j.1")), 401, "unauthenticated");
  const std::string over = absl::StrReplaceAll(internal, {{"j.1", "j.9"}});
  ExpectError(Send({.target = over}, TokenOf("j.9")), 410, "gone");
  ExpectError(Send({.method = "PUT", .target = "/v1/snapshots/sha256:..", .body = "x"}), 400,
              "invalid_argument");
}

TEST_F(ApiTest, GivesAccessToStores) {
  const auto ask = [&](const std::string& body) {
    return Send({.method = "POST", .target = "/v1/storage-grants", .body = body});
  };
  const json grant = Fits("post", "/v1/storage-grants",
                          ask(R"({"address": "s3://public/a", "write": true, "seconds": 900})"));
  EXPECT_EQ(grant["place"]["container"], "public");
  EXPECT_EQ(grant["credentials"]["kind"], "none");
  for (const char* body :
       {"[]", "{}", R"({"address": 1})", R"({"address": "s3://a/b", "x": 1})",
        R"({"address": "s3://a/b", "seconds": -1})", R"({"address": "s3://a/b", "seconds": 1})",
        R"({"address": "s3://a/b", "write": "no"})", R"({"address": "x"})"}) {
    ExpectError(ask(body), 400, "invalid_argument");
  }
  ExpectError(ask(R"({"address": "azureml://datastores/none/paths/x"})"), 404, "not_found");
}

TEST_F(ApiTest, SignsAddressesOfFiles) {
  CreateJob();
  ASSERT_EQ(Send({.target = "/v1/jobs/j/stream"}).status, 200) << "it has ended";
  const json made = Fits("post", "/v1/storage-signatures",
                         Send({.method = "POST",
                               .target = "/v1/storage-signatures",
                               .body = R"({"address": "job:j/logs/rank-0.stdout"})"}));
  const std::string url = made["url"];
  const http::ClientResponse file = Send({.target = url}, "");
  EXPECT_EQ(file.status, 200) << file.body;
  EXPECT_EQ(file.body, Get("/v1/jobs/j/files/logs/rank-0.stdout").body);
  ExpectError(Send({.target = absl::StrReplaceAll(url, {{"rank-0", "rank-1"}})}, ""), 401,
              "unauthenticated");
  ExpectError(Send({.target = "/v1/signed-files/j/logs/rank-0.stdout"}, ""), 401,
              "unauthenticated");
  const std::string ended =
      service::SignedFileTarget(kLauncherKey, {"j", 1, "logs/rank-0.stdout", 1700000000});
  ExpectError(Send({.target = ended}, ""), 401, "unauthenticated");
  ExpectError(Send({.method = "POST",
                    .target = "/v1/storage-signatures",
                    .body = R"({"address": "job:none/logs/rank-0.stdout"})"}),
              404, "not_found");
  ASSERT_EQ(Send({.method = "DELETE", .target = "/v1/jobs/j"}).status, 200);
  ExpectError(Send({.target = url}, ""), 404, "not_found");
  CreateJob();
  ASSERT_EQ(Send({.target = "/v1/jobs/j/stream"}).status, 200) << "it has ended";
  ExpectError(Send({.target = url}, ""), 401, "unauthenticated");
  for (const char* address : {"job:j", "job:/x", "job:j/"}) {
    ExpectError(Send({.method = "POST",
                      .target = "/v1/storage-signatures",
                      .body = json({{"address", address}}).dump()}),
                400, "invalid_argument");
  }
}

TEST_F(ApiTest, KeepsSecretsAndGivesThemToTheirJobsLaunchersAlone) {
  const auto put = [&](const std::string& name, const std::string& value) {
    return Send({.method = "PUT", .target = "/v1/secrets/" + name, .body = value});
  };
  Fits("put", "/v1/secrets/{secret}", put("hub", std::string("hunter22\0\xff", 10)));
  ExpectError(put("hub", "abc"), 400, "invalid_argument");
  ExpectError(put("a%20b", "hunter22"), 400, "invalid_argument");
  EXPECT_EQ(put("hub", std::string((64 << 10) + 1, 'x')).status, 413);
  const http::ClientResponse list = Get("/v1/secrets");
  EXPECT_EQ(Fits("get", "/v1/secrets", list)["secrets"][0]["name"], "hub");
  EXPECT_THAT(list.body, ::testing::Not(HasSubstr("hunter22")));
  EXPECT_EQ(Fits("post", "/v1/secret-rotations",
                 Send({.method = "POST", .target = "/v1/secret-rotations"}))["secrets"],
            1);
  play_ = false;
  CreateJob(absl::StrReplaceAll(
      service::kJobFile, {{"instance_count: 2\n",
                           "instance_count: 2\n  properties: {tutti: {secrets: {T: {secret: hub, "
                           "file: true}}}}\n"}}));
  const std::string target = "/internal/v1/allocations/j.1/nodes/0/secrets";
  const std::string pattern = "/internal/v1/allocations/{allocation}/nodes/{node}/secrets";
  const json given = Fits("get", pattern, Send({.target = target}, TokenOf("j.1")));
  EXPECT_EQ(given["secrets"]["hub"], "aHVudGVyMjIA/w==");
  EXPECT_EQ(Send({.target = target}).status, 401) << "no user";
  EXPECT_EQ(Send({.target = target}, TokenOf("k.1")).status, 401) << "no other job's launcher";
  Fits("delete", "/v1/secrets/{secret}", Send({.method = "DELETE", .target = "/v1/secrets/hub"}));
  ExpectError(Send({.method = "DELETE", .target = "/v1/secrets/hub"}), 404, "not_found");
  ExpectError(Send({.target = target}, TokenOf("j.1")), 404, "not_found");
  play_ = true;
}

TEST_F(ApiTest, RemovesWhatIsKeptNoLongerAndTheJobSaysSo) {
  CreateJob();
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    return json::parse(Get("/v1/jobs/j").body)["state"] == "Completed";
  }));
  ASSERT_TRUE(
      base::WriteFileAtomic(folder_.path() / "state/site.yml", "retention: {logs: {size: 0MB}}\n")
          .ok());
  const json dry =
      Fits("post", "/v1/prune", Send({.method = "POST", .target = "/v1/prune?dry_run=true"}));
  EXPECT_EQ(dry["removed"].size(), 1u) << dry;
  EXPECT_EQ(Get("/v1/jobs/j/files/logs/rank-0.stdout").status, 200);
  const json gone = Fits("post", "/v1/prune", Send({.method = "POST", .target = "/v1/prune"}));
  EXPECT_EQ(gone["removed"][0]["name"], "j");
  EXPECT_EQ(gone["bytes"], dry["bytes"]);
  const json job = Fits("get", "/v1/jobs/{job}", Get("/v1/jobs/j"));
  EXPECT_EQ(job["removed"][0]["kind"], "logs");
  const auto file = Get("/v1/jobs/j/files/logs/rank-0.stdout");
  ExpectError(file, 404, "not_found");
  EXPECT_THAT(file.body, HasSubstr("the logs of job j were removed on 20"));
  EXPECT_THAT(file.body, HasSubstr("by the site's retention"));
  Fits("post", "/v1/prune",
       Send({.method = "POST", .target = "/v1/prune?dry_run=true&clock_is_right=true"}));
  ExpectError(Send({.method = "POST", .target = "/v1/prune?clock_is_right=maybe"}), 400,
              "invalid_argument");
  ExpectError(Send({.method = "POST", .target = "/v1/prune?dry_run=maybe"}), 400,
              "invalid_argument");
  Fits("post", "/v1/prune",
       Send({.method = "POST", .target = "/v1/prune?environments_unused_for=3600"}));
  ExpectError(Send({.method = "POST", .target = "/v1/prune?environments_unused_for=30d"}), 400,
              "invalid_argument");
}

TEST_F(ApiTest, AsksForTheRightToken) {
  ExpectError(Send({.target = "/v1/jobs"}, ""), 401, "unauthenticated");
  ExpectError(Send({.target = "/v1/jobs"}, "wrong"), 401, "unauthenticated");
  ExpectError(Send({.target = "/v1/jobs"}, TokenOf("x.1")), 401, "unauthenticated");
  for (const std::string& token : {TokenOf("x.2"), std::string(kLauncherKey), std::string()}) {
    ExpectError(Send({.target = "/internal/v1/allocations/x.1/nodes/0/go"}, token), 401,
                "unauthenticated");
  }
  ExpectError(Get("/internal/v1/allocations/x.1/nodes/0/go"), 401, "unauthenticated");
  EXPECT_EQ(Send({.target = "/v1/health"}, "").status, 200);
  EXPECT_EQ(Fits("get", "/v1/health", Send({.target = "/v1/health"}, ""))["status"], "ok");
}

TEST_F(ApiTest, SaysWhatIsWrongWithARequest) {
  const auto post = [&](const std::string& body) {
    return Send({.method = "POST", .target = "/v1/jobs", .body = body});
  };
  const auto broken = post("{\"text\": \"x\",\n \"base_directory\" 3}");
  ExpectError(broken, 400, "invalid_argument");
  EXPECT_THAT(broken.body, HasSubstr("line 2, column"));
  ExpectError(post("[]"), 400, "invalid_argument");
  ExpectError(post(R"({"text": 1, "base_directory": "/"})"), 400, "invalid_argument");
  ExpectError(post(R"({"base_directory": "/"})"), 400, "invalid_argument");
  ExpectError(post(R"({"text": "x", "base_directory": "/", "txet": 1})"), 400, "invalid_argument");
  ExpectError(post(R"({"text": "a\u0000b", "base_directory": "/"})"), 400, "invalid_argument");
  ExpectError(post(std::string(100000, '[')), 400, "invalid_argument");
  ExpectError(post(std::string((1 << 20) + 1, ' ')), 413, "too_large");
  const auto wrong_key =
      post(json{{"text", "comand: x\n"}, {"base_directory", "/"}, {"file", "my.yml"}}.dump());
  ExpectError(wrong_key, 400, "invalid_argument");
  EXPECT_THAT(wrong_key.body, HasSubstr("my.yml:1"));
  CreateJob();
  ExpectError(post(json{{"text", service::kJobFile}, {"base_directory", "/"}}.dump()), 409,
              "already_exists");
  for (const char* target :
       {"/v1/jobs?limit=0", "/v1/jobs?limit=x", "/v1/jobs?state=Lost", "/v1/jobs?before=-1",
        "/v1/jobs/j/stream?cursor=x", "/v1/jobs/j/stream?follow=maybe", "/v1/jobs/j/lines?before=x",
        "/v1/jobs/j/lines?limit=0"}) {
    ExpectError(Get(target), 400, "invalid_argument");
  }
  for (const char* target :
       {"/v1", "/v1/jobs/none", "/v1/jobs/none/stream", "/v1/jobs/none/lines", "/v1/jobs//files",
        "/v1/jobs/none/files", "/v1/jobs/none/files/logs/x", "/v1/jobs/j/files/logs/none",
        "/v1/jobs/j/files/tutti.db", "/v1/jobs/j/x"}) {
    ExpectError(Get(target), 404, "not_found");
  }
  EXPECT_EQ(Get("/").status, 302) << "to the portal";
  ExpectError(Send({.method = "PUT", .target = "/v1/jobs"}), 405, "method_not_allowed");
}

TEST_F(ApiTest, TellsALauncherOfAnUnknownAllocationToEnd) {
  const std::string node = "/internal/v1/allocations/j.9/nodes/0";
  const std::string token = TokenOf("j.9");
  const auto post = [&](const std::string& rest) {
    return Send({.method = "POST", .target = node + rest, .body = "{\"kind\":\"x\"}"}, token);
  };
  ExpectError(post("/events?first=1"), 410, "gone");
  ExpectError(post("/output?rank=0&stream=stdout&offset=0"), 410, "gone");
  ExpectError(Send({.target = node + "/go?wait=1"}, token), 410, "gone");
  ExpectError(Send({.method = "PUT", .target = node + "/files?path=outputs/x", .body = "x"}, token),
              410, "gone");
  ExpectError(post("/output?rank=0&stream=stdin&offset=0"), 400, "invalid_argument");
  ExpectError(post("/output?stream=stdout"), 400, "invalid_argument");
  ExpectError(post("/events?first=0"), 400, "invalid_argument");
  ExpectError(Send({.target = "/internal/v1/allocations/j.9/nodes/x/go"}, token), 400,
              "invalid_argument");
}

TEST_F(ApiTest, HearsALauncherOut) {
  play_ = false;
  CreateJob();
  base::AwaitPatiently(absl::Seconds(20), [&] { return engine_->Starts().size() >= 2; });
  const std::string base = "/internal/v1/allocations/j.1/nodes/";
  const std::string pattern = "/internal/v1/allocations/{allocation}/nodes/{node}";
  const auto post = [&](const std::string& rest, const std::string& body) {
    return Send({.method = "POST", .target = base + rest, .body = body}, TokenOf("j.1"));
  };
  const std::string prepared = "{\"kind\":\"prepared\",\"time\":1}\n";
  const json events = Fits("post", pattern + "/events", post("0/events?first=1", prepared));
  EXPECT_EQ(events["acknowledged"], 1);
  EXPECT_EQ(events["go"], false);
  EXPECT_EQ(Fits("get", pattern + "/go", Send({.target = base + "0/go"}, TokenOf("j.1")))["go"],
            false);
  std::thread waiter([&] {
    const auto go = Send({.target = base + "0/go?wait=20"}, TokenOf("j.1"));
    EXPECT_EQ(json::parse(go.body)["go"], true);
  });
  post("1/events?first=1", prepared);
  waiter.join();
  const std::string output = "0/output?rank=0&stream=stdout&offset=";
  EXPECT_EQ(Fits("post", pattern + "/output", post(output + "0", "one\n"))["acknowledged"], 4);
  EXPECT_EQ(json::parse(post(output + "9", "gap").body)["acknowledged"], 4);
  EXPECT_EQ(json::parse(post(output + "0", "one\ntwo\xff\n").body)["acknowledged"], 9);
  Fits("put", pattern + "/files",
       Send({.method = "PUT", .target = base + "0/files?path=outputs/a/b", .body = "bytes"},
            TokenOf("j.1")));
  EXPECT_EQ(Get("/v1/jobs/j/files/outputs/a/b").body, "bytes");
  ExpectError(
      Send({.method = "PUT", .target = base + "0/files?path=../b", .body = "x"}, TokenOf("j.1")),
      400, "invalid_argument");
  EXPECT_EQ(Get("/v1/jobs/j/files/logs/rank-0.stdout").body, "one\ntwo\xff\n");
  EXPECT_THAT(Get("/v1/jobs/j/stream?follow=false").body, HasSubstr("two\xEF\xBF\xBD"));
}

TEST_F(ApiTest, SaysWhatLaunchersSayThatAJobUses) {
  play_ = false;
  CreateJob();
  base::AwaitPatiently(absl::Seconds(20), [&] { return engine_->Starts().size() >= 2; });
  const auto post = [&](const std::string& query, const std::string& body) {
    return Send({.method = "POST",
                 .target = "/internal/v1/allocations/j.1/nodes/1/usage" + query,
                 .body = body},
                TokenOf("j.1"));
  };
  // A clock that is an hour late: what was seen a second ago there was seen a second ago here.
  const int64_t now = absl::ToUnixMillis(clock_.Now() - absl::Hours(1));
  const std::string pattern = "/v1/jobs/{job}/usage", target = "/v1/jobs/j/usage";
  json usage;
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {  // its folder is being opened
    Fits("post", "/internal/v1/allocations/{allocation}/nodes/{node}/usage",
         post(absl::StrCat("?now=", now),
              absl::StrCat(R"({"time": )", now - 1000,
                           R"(, "cpu": 1.5, "ranks": [{"rank": 1, "memory": 5e9}], "gpus": [)",
                           R"({"gpu": "0", "use": 0.5, "power": 301.5, "temperature": 61},)",
                           R"({"gpu": "1", "use": 0.75, "temperature": 40}]})")));
    usage = Fits("get", pattern, Get(target + "?rank=1&points=5"));
    return usage["nodes"].size() == 1 && usage["nodes"][0]["recent"]["time"].size() == 1;
  }));
  EXPECT_EQ(usage["ranks"], json::parse(R"([{"rank": 1, "node": "n2", "state": "not_started"}])"));
  EXPECT_EQ(usage["nodes"][0]["recent"]["cpu"], json({1.5}));
  EXPECT_EQ(usage["nodes"][0]["recent"]["net_send"], json({nullptr}));
  EXPECT_EQ(usage["nodes"][0]["recent"]["ranks"][0]["memory"], json({5'000'000'000}));
  EXPECT_EQ(usage["nodes"][0]["recent"]["gpu_use"], json({1.25}));
  EXPECT_EQ(usage["nodes"][0]["whole"]["gpu_power"], json({301.5}));
  EXPECT_EQ(usage["nodes"][0]["recent"]["gpu_temperature"], json({61}));
  EXPECT_FALSE(usage["nodes"][0]["recent"].contains("gpu_memory")) << "no GPU tells it";
  absl::Time seen;
  std::string error;
  ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full,
                              usage["nodes"][0]["recent"]["time"][0].get<std::string>(), &seen,
                              &error));
  EXPECT_LT(clock_.Now() - seen, absl::Minutes(30));
  EXPECT_EQ(Fits("get", pattern, Get(target))["nodes"].size(), 2u);
  Fits("post", "/internal/v1/allocations/{allocation}/nodes/{node}/usage", post("", "no sample"));
  EXPECT_TRUE(Get(target).body.find("\"age\":") != std::string::npos);
  ExpectError(Get(target + "?points=0"), 400, "invalid_argument");
  ExpectError(Get(target + "?rank=-1"), 400, "invalid_argument");
  ExpectError(Get(target + "?rank=2"), 404, "not_found");
  ExpectError(Get("/v1/jobs/none/usage"), 404, "not_found");
}

TEST_F(ApiTest, TellsMetricsAsSpansAndPartsOfThemByTheirPoints) {
  play_ = false;
  CreateJob();
  constexpr int kPoints = 20'000;
  std::string lines;
  for (int i = 0; i < kPoints; ++i) {
    absl::StrAppend(&lines, R"({"step": )", i, R"(, "time": )", 1000 + i, R"(, "loss": )",
                    i == 12'345 ? "50"
                    : i == 600  ? "NaN"
                                : "1",
                    R"(, "lr": 0.5})", "\n");
  }
  const std::filesystem::path logs = service_->files().FolderOf("j") / "logs";
  ASSERT_TRUE(base::MakeDirectories(logs).ok());
  ASSERT_TRUE(base::ReplaceFile(logs / "rank-0.metrics", lines).ok());
  const std::string pattern = "/v1/jobs/{job}/metrics", target = "/v1/jobs/j/metrics";
  const auto metrics = [&](const std::string& query) {
    return Fits("get", pattern, Get(target + query))["metrics"];
  };
  ASSERT_EQ(metrics("").size(), 2u);
  const json whole = metrics("?points=8&metric=loss").at(0);
  EXPECT_EQ(whole["count"], kPoints);
  EXPECT_EQ(whole["not_finite"], 1);
  EXPECT_EQ(whole["span"], 4096);
  EXPECT_EQ(whole["course"]["high"], json({1, 1, 1, 50, 1}));
  EXPECT_EQ(whole["course"]["not_finite"], json({1, 0, 0, 0, 0}));
  const json part = metrics("?points=8&metric=loss&from=12343&to=12346").at(0);
  EXPECT_EQ(part["span"], 1);
  EXPECT_EQ(part["first"], 12'342);
  EXPECT_EQ(part["course"]["step"], json({12'342, 12'343, 12'344, 12'345, 12'346, 12'347}));
  EXPECT_EQ(part["course"]["value"], json({1, 1, 1, 50, 1, 1}));
  const json by_time = metrics("?by=time&from=1599.5&to=1600&metric=loss").at(0);
  EXPECT_EQ(by_time["course"]["time"], json({1599, 1600, 1601}));
  EXPECT_EQ(by_time["course"]["value"], json({1, nullptr, 1}));
  EXPECT_EQ(metrics("?from=19998&points=8")[1]["course"]["step"], json({19'997, 19'998, 19'999}));
  EXPECT_EQ(metrics("?metric=none"), json::array());
  for (const char* const query :
       {"?by=epoch", "?from=x", "?to=inf", "?from=2&to=1", "?points=513", "?newest=257"}) {
    ExpectError(Get(target + query), 400, "invalid_argument");
  }
  ExpectError(Get("/v1/jobs/none/metrics"), 404, "not_found");
}

TEST_F(ApiTest, AsksLaunchersForResultsSoFar) {
  play_ = false;
  CreateJob();
  base::AwaitPatiently(absl::Seconds(20), [&] { return engine_->Starts().size() >= 2; });
  const std::string base = "/internal/v1/allocations/j.1/nodes/";
  const std::string pattern = "/internal/v1/allocations/{allocation}/nodes/{node}";
  const auto post = [&](const std::string& rest, const std::string& body) {
    return Send({.method = "POST", .target = base + rest, .body = body}, TokenOf("j.1"));
  };
  const auto ask = [&](const std::string& query) {
    return Send({.method = "POST", .target = "/v1/jobs/j/results" + query});
  };
  const auto questions = [&](const std::string& node) {
    return json::parse(Send({.target = base + node + "/questions"}, TokenOf("j.1")).body);
  };
  ExpectError(ask(""), 409, "failed_precondition");
  for (const std::string node : {"0", "1"}) {
    post(node + "/events?first=1", "{\"kind\":\"prepared\",\"time\":1}\n");
  }
  for (const std::string node : {"0", "1"}) {
    post(node + "/events?first=2",
         R"({"kind": "started", "time": 2, "pid": 7, "rank": )" + node + "}\n");
  }
  base::AwaitPatiently(absl::Seconds(20),
                       [&] { return json::parse(Get("/v1/jobs/j").body)["state"] == "Running"; });
  for (const std::string node : {"0", "1"}) questions(node);
  json sent;
  std::thread asker([&] { sent = Fits("post", "/v1/jobs/{job}/results", ask("?name=x&wait=60")); });
  json open;
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    open = questions("0")["questions"];
    return !open.empty();
  }));
  EXPECT_EQ(open[0]["kind"], "results");
  EXPECT_EQ(open[0]["name"], "x");
  const std::string id = open[0]["id"].get<std::string>();
  const auto put = [&](const std::string& question, const std::string& bytes) {
    return Send(
        {.method = "PUT", .target = base + "0/files?path=outputs/x" + question, .body = bytes},
        TokenOf("j.1"));
  };
  Fits("put", pattern + "/files", put("&question=" + id, "so far"));
  ExpectError(put("&question=q", "nobody asked"), 410, "gone");
  EXPECT_EQ(Get("/v1/jobs/j/files/outputs/x").body, "so far");
  EXPECT_THAT(Get("/v1/jobs/j/files").body, HasSubstr("outputs/x"));
  Fits("post", pattern + "/answers/{question}",
       post("0/answers/" + id + "?rank=" + absl::StrCat(open[0]["ranks"][0].get<int>()),
            R"({"files": 1, "bytes": 6})"));
  ExpectError(put("&question=" + id, "too late"), 410, "gone");
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    open = questions("1")["questions"];
    return !open.empty();
  }));
  post("1/answers/" + id + "?rank=" + absl::StrCat(open[0]["ranks"][0].get<int>()),
       R"({"error": "its disk is away", "processes": []})");
  asker.join();
  ASSERT_EQ(sent["nodes"].size(), 2u);
  EXPECT_EQ(sent["nodes"][0]["files"], 1);
  EXPECT_EQ(sent["nodes"][0]["bytes"], 6);
  ASSERT_EQ(sent["missing"].size(), 1u);
  EXPECT_EQ(sent["missing"][0]["why"], "its disk is away");
  ExpectError(ask("?wait=3601"), 400, "invalid_argument");
  ExpectError(ask("?name=" + std::string(256, 'x')), 400, "invalid_argument");
  // At its end the job has what is sent then.
  Fits("put", pattern + "/files", put("", "at the end"));
  EXPECT_EQ(Get("/v1/jobs/j/files/outputs/x").body, "at the end");
  for (const std::string node : {"0", "1"}) {
    post(node + "/events?first=3",
         R"({"kind": "exited", "time": 3, "code": 0, "signal": 0, "rank": )" + node + "}\n" +
             R"({"kind": "finished", "time": 4, "ok": true})" + "\n");
  }
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    return json::parse(Get("/v1/jobs/j").body)["state"] == "Completed";
  }));
  EXPECT_EQ(Get("/v1/jobs/j/files/outputs/x").body, "at the end");
}

TEST_F(ApiTest, AsksLaunchersForStacks) {
  play_ = false;
  CreateJob();
  base::AwaitPatiently(absl::Seconds(20), [&] { return engine_->Starts().size() >= 2; });
  const std::string base = "/internal/v1/allocations/j.1/nodes/";
  const std::string pattern = "/internal/v1/allocations/{allocation}/nodes/{node}";
  const std::string target = "/v1/jobs/j/stacks";
  const auto post = [&](const std::string& rest, const std::string& body) {
    return Send({.method = "POST", .target = base + rest, .body = body}, TokenOf("j.1"));
  };
  const auto ask = [&](const std::string& query) {
    return Send({.method = "POST", .target = target + query});
  };
  const auto questions = [&](const std::string& node) {
    return Fits("get", pattern + "/questions",
                Send({.target = base + node + "/questions"}, TokenOf("j.1")));
  };
  ExpectError(ask(""), 409, "failed_precondition");
  for (const std::string node : {"0", "1"}) {
    post(node + "/events?first=1", "{\"kind\":\"prepared\",\"time\":1}\n");
  }
  for (const std::string node : {"0", "1"}) {
    post(node + "/events?first=2",
         R"({"kind": "started", "time": 2, "pid": 7, "rank": )" + node + "}\n");
  }
  base::AwaitPatiently(absl::Seconds(20),
                       [&] { return json::parse(Get("/v1/jobs/j").body)["state"] == "Running"; });
  for (const std::string node : {"0", "1"}) {
    EXPECT_EQ(questions(node)["questions"], json::array());
  }
  json stacks;
  std::thread asker([&] { stacks = Fits("post", "/v1/jobs/{job}/stacks", ask("?native=true")); });
  json open;
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
    open = questions("0")["questions"];
    return !open.empty();
  }));
  EXPECT_EQ(open[0]["ranks"], json({0}));
  EXPECT_EQ(open[0]["native"], true);
  ExpectError(ask(""), 409, "failed_precondition");  // one at a time
  const std::string answer = "/answers/" + open[0]["id"].get<std::string>() + "?rank=";
  ExpectError(post("0" + answer + "0", "none"), 400, "invalid_argument");
  ExpectError(post("0" + answer + "0", std::string((4 << 20) + 1, ' ')), 413, "too_large");
  ExpectError(post("0" + answer + "1", R"({"processes": []})"), 404, "not_found");
  ExpectError(post("0/answers/q?rank=0", R"({"processes": []})"), 404, "not_found");
  Fits("post", pattern + "/answers/{question}",
       post("0" + answer + "0", R"({"processes": [{"pid": 7, "python": "f\u001b"}]})"));
  Fits("post", pattern + "/answers/{question}",
       post("1" + answer + "1", R"({"error": "it has ended", "processes": []})"));
  asker.join();
  EXPECT_EQ(stacks["groups"][0]["ranks"], json({0}));
  EXPECT_EQ(stacks["groups"][0]["processes"][0]["python"], "f\x1b");
  EXPECT_EQ(
      stacks["missing"],
      json::array(
          {{{"node", stacks["missing"][0]["node"]}, {"ranks", {1}}, {"why", "it has ended"}}}));
  ExpectError(ask("?rank=2"), 404, "not_found");
  ExpectError(ask("?rank=-1"), 400, "invalid_argument");
  ExpectError(ask("?wait=301"), 400, "invalid_argument");
  ExpectError(ask("?native=maybe"), 400, "invalid_argument");
  ExpectError(Send({.method = "POST", .target = "/v1/jobs/none/stacks"}), 404, "not_found");
  ExpectError(Send({.target = "/internal/v1/allocations/j.9/nodes/0/questions"}, TokenOf("j.9")),
              410, "gone");
  // Nobody answers by then; and a job that ends is waited for no more.
  const json late = Fits("post", "/v1/jobs/{job}/stacks", ask("?wait=1&rank=1"));
  EXPECT_THAT(late["missing"][0]["why"].get<std::string>(), HasSubstr("heard"));
  std::thread last([&] { stacks = Fits("post", "/v1/jobs/{job}/stacks", ask("?wait=300")); });
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20),
                                   [&] { return !questions("0")["questions"].empty(); }));
  for (const std::string node : {"0", "1"}) {
    post(node + "/events?first=3",
         R"({"kind": "exited", "time": 3, "code": 0, "signal": 0, "rank": )" + node + "}\n" +
             R"({"kind": "finished", "time": 4, "ok": true})" + "\n");
  }
  last.join();
  EXPECT_THAT(stacks["missing"][0]["why"].get<std::string>(), HasSubstr("ended"));
}

TEST_F(ApiTest, TakesSmallResultsTogetherAndAgain) {
  play_ = false;
  const json job = CreateJob();
  const std::string node =
      absl::StrCat("/internal/v1/allocations/j.", job["sequence"].dump(), "/nodes/0");
  const std::string token = TokenOf(absl::StrCat("j.", job["sequence"].dump()).c_str());
  std::string body;
  http::AppendToBatch("outputs/a", "1", body);
  http::AppendToBatch("../b", "2", body);
  http::AppendToBatch("outputs/deep/c", "3", body);
  const auto send = [&](const std::string& what) {
    return Send({.method = "POST",
                 .target = node + "/results",
                 .content_type = "application/octet-stream",
                 .body = what},
                token);
  };
  const std::string pattern = "/internal/v1/allocations/{allocation}/nodes/{node}/results";
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return send("").status == 200; }));
  for (int again = 0; again < 2; ++again) {
    const json answer = Fits("post", pattern, send(body));
    ASSERT_EQ(answer["refused"].size(), 1u) << answer;
    EXPECT_EQ(answer["refused"][0]["file"], 1);
  }
  EXPECT_EQ(Get("/v1/jobs/j/files/outputs/deep/c").body, "3");
  ExpectError(send(body.substr(0, body.size() - 1)), 400, "invalid_argument");
  ExpectError(send(std::string(http::kLargestBatch + 1, 'x')), 413, "too_large");
  play_ = true;
}

TEST_F(ApiTest, ComesBackWithItsJobsAndAFollowerGoesOn) {
  play_ = false;
  CreateJob();
  const std::string before = Get("/v1/jobs/j/stream?follow=false").body;
  const std::string last = before.substr(before.rfind("{\"type\""));
  const std::string cursor = json::parse(last)["cursor"];
  End();
  play_ = true;
  Start();
  std::string states;
  Send({.target = "/v1/jobs/j/stream?cursor=" + cursor,
        .stall_timeout = base::Patient(absl::Seconds(30)),
        .on_chunk = http::ByLine([&](absl::string_view line) {
          const json parsed = json::parse(line.begin(), line.end());
          if (parsed["type"] == "state") states += parsed["state"].get<std::string>() + " ";
          return absl::OkStatus();
        })});
  EXPECT_THAT(states, HasSubstr("Running Finalizing Completed"));
  EXPECT_THAT(states, ::testing::Not(HasSubstr("Queued")));
}

TEST_F(ApiTest, SaysOfAJobWhetherItWouldBeTakenAndTakesNothing) {
  const auto check = [&](const std::string& text, const char* query = "") {
    const auto response = Send({.method = "POST",
                                .target = absl::StrCat("/v1/job-checks", query),
                                .body = json{{"text", text}, {"base_directory", "/"}}.dump()});
    return std::pair(response.status, Fits("post", "/v1/job-checks", response));
  };
  const auto [good, warnings] = check("command: true\ncode: /\nidentity: {type: managed}\n");
  EXPECT_EQ(good, 200) << warnings;  // code that was not sent
  EXPECT_EQ(warnings["warnings"].size(), 1u) << warnings;
  const auto [bad, faults] = check(
      "command: true\nresources: {instance_count: 100}\ninputs: {x: {path: /no/such/place}}\n");
  EXPECT_EQ(bad, 400);
  const std::string message = faults["error"]["message"];
  EXPECT_THAT(message, HasSubstr("the job could never start"));
  EXPECT_THAT(message, HasSubstr("/no/such/place does not exist"));
  const std::string remote =
      "command: true\ninputs: {x: {type: uri_file, path: 'http://127.0.0.1:1/none'}}\n";
  EXPECT_THAT(check(remote).second.dump(), HasSubstr("127.0.0.1:1"));
  EXPECT_EQ(check(remote, "?draft=true").second, json({{"warnings", json::array()}}))
      << "what is being typed is asked of nobody";
  EXPECT_EQ(json::parse(Get("/v1/jobs").body)["jobs"].size(), 0u);
  CreateJob("name: taken\ncommand: true\n");
  EXPECT_EQ(check("name: taken\ncommand: true\n").first, 409);
}

std::vector<std::pair<FileWork, std::string>> FoldersOf(const std::string& job) {
  std::vector<std::pair<FileWork, std::string>> queues = {{FileWork::kOutput, job},
                                                          {FileWork::kReading, job}};
  for (int i = 0; i < 4; ++i) queues.emplace_back(FileWork::kReading, absl::StrCat(job, "/", i));
  return queues;
}

// More calls than there are threads for quick ones, which are 32.
TEST_F(ApiTest, AFolderThatHangsHoldsNoCallThatDoesNotNeedIt) {
  play_ = false;
  CreateJob();
  base::AwaitPatiently(absl::Seconds(20), [&] { return engine_->Starts().size() >= 2; });
  const std::string output =
      "/internal/v1/allocations/j.1/nodes/0/output?rank=0&stream=stdout&offset=0";
  const std::string snapshot = "sha256:" + std::string(64, 'a');
  Callers callers, fetchers;
  {
    auto queues = FoldersOf("j");
    queues.emplace_back(FileWork::kSnapshots, snapshot);
    const HungFolders hung(service_.get(), queues);
    for (int i = 0; i < 40; ++i) {
      callers.Call(server_->url(), kUserToken, {.target = "/v1/jobs/j/files"});
      callers.Call(server_->url(), kUserToken, {.target = "/v1/jobs/j/stream?follow=false"});
      callers.Call(server_->url(), TokenOf("j.1"),
                   {.method = "POST", .target = output, .body = "one\n"});
      fetchers.Call(server_->url(), TokenOf("j.1"),
                    {.target = "/internal/v1/allocations/j.1/snapshots/" + snapshot});
    }
    ASSERT_TRUE(callers.AwaitSent(120));
    ASSERT_TRUE(fetchers.AwaitSent(40));
    EXPECT_EQ(json::parse(Get("/v1/jobs").body)["jobs"].size(), 1u);
    EXPECT_EQ(Send({.target = "/internal/v1/allocations/j.1/nodes/1/go"}, TokenOf("j.1")).status,
              200);
    EXPECT_EQ(Send({.method = "POST", .target = "/v1/jobs/j/cancel"}).status, 200);
  }
  for (const http::ClientResponse& answer : callers.Join()) EXPECT_EQ(answer.status, 200);
  for (const http::ClientResponse& answer : fetchers.Join()) EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(Get("/v1/jobs/j/files/logs/rank-0.stdout").body, "one\n")
      << "once, for all its repeats";
}

TEST_F(ApiTest, WhoWaitsForAFolderTooLongIsToldAndHisOutputIsNotKept) {
  End();
  patience_ = base::PatientTimeout(absl::Milliseconds(50));
  play_ = false;
  Start();
  CreateJob();
  base::AwaitPatiently(absl::Seconds(20), [&] { return engine_->Starts().size() >= 2; });
  const auto post = [&](const std::string& offset, const std::string& body) {
    return Send(
        {.method = "POST",
         .target =
             "/internal/v1/allocations/j.1/nodes/0/output?rank=0&stream=stdout&offset=" + offset,
         .body = body},
        TokenOf("j.1"));
  };
  const std::string snapshot = "/v1/snapshots/sha256:" + std::string(64, 'a');
  {
    auto queues = FoldersOf("j");
    queues.emplace_back(FileWork::kSnapshots, "sha256:" + std::string(64, 'a'));
    const HungFolders hung(service_.get(), queues);
    for (int i = 0; i < 2; ++i) {  // the second is refused at once
      const http::ClientResponse refused = post("0", "never\n");
      ExpectError(refused, 503, "unavailable");
      EXPECT_EQ(refused.headers.at("retry-after"), "1");
      for (const char* target : {"/v1/jobs/j/files", "/v1/jobs/j/files/logs/rank-0.stdout",
                                 "/v1/jobs/j/stream?follow=false", "/v1/jobs/j/stream"}) {
        ExpectError(Get(target), 503, "unavailable");
      }
      EXPECT_EQ(Send({.method = "HEAD", .target = snapshot}).status, 503);
    }
  }
  base::AwaitPatiently(absl::Seconds(20), [&] { return post("0", "kept\n").status == 200; });
  EXPECT_EQ(Get("/v1/jobs/j/files/logs/rank-0.stdout").body, "kept\n");
}

TEST_F(ApiTest, EndsPromptlyWhileFollowersWait) {
  play_ = false;
  CreateJob();
  std::thread follower([&, url = server_->url(), token = std::string(kUserToken)] {
    http::Client client(url, token);
    (void)client.Send({.target = "/v1/jobs/j/stream",
                       .stall_timeout = base::Patient(absl::Seconds(30)),
                       .on_chunk = [](absl::string_view) { return absl::OkStatus(); }});
  });
  const absl::Time start = absl::Now();
  End();
  EXPECT_LT(absl::Now() - start, base::Patient(absl::Seconds(5)));
  follower.join();
}

}  // namespace
}  // namespace tutti::api

// Covers: json/model_json.cc, json/json_values.h.
#include "platform/api/model_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "http/client/client.h"
#include "platform/api/api.h"
#include "platform/api/callers_for_tests.h"
#include "platform/api/openapi.h"
#include "platform/api/schema_check_for_tests.h"
#include "platform/service/world_for_tests.h"

namespace tutti::api {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string Sha256(const std::string& bytes) { return base::Hex(base::Sha256Of(bytes)); }

// A real server on loopback, on an engine whose launchers are played by a thread.
class ModelRoutesTest : public ::testing::Test {
 protected:
  ModelRoutesTest() {
    const std::filesystem::path directory = folder_.path() / "state";
    EXPECT_TRUE(base::MakeDirectories(directory).ok());
    engine_ = std::make_unique<service::DiskEngine>(folder_.path() / "engine");
    store_ = *store::Store::Open(directory / "tutti.db");
    service_ = *service::Service::Open({.directory = directory,
                                        .launcher_file = directory / "launcher.json",
                                        .launcher_key = kLauncherKey,
                                        .observe_interval = absl::Milliseconds(20)},
                                       store_.get(), engine_.get(), &clock_);
    server_ = *ApiServer::Start(
        {.port = 0, .tokens = {.user = kUserToken, .launcher_key = kLauncherKey}}, service_.get());
    service_->Run();
    launchers_ = std::thread([this] {
      service::Launchers launchers(engine_.get(), {});
      while (!over_) {
        if (!play_ || !launchers.Step(*service_, absl::Now())) {
          absl::SleepFor(absl::Milliseconds(2));
        }
      }
    });
  }
  ~ModelRoutesTest() override {
    over_ = true;
    launchers_.join();
    service_->Stop();
    server_.reset();
  }

  http::ClientResponse Send(const std::string& method, const std::string& target,
                            const std::string& body = "", const std::string& token = kUserToken) {
    http::Client client(server_->url(), token);
    auto response = client.Send({.method = method, .target = target, .body = body});
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *std::move(response) : http::ClientResponse{};
  }
  // The body of an answer, which must have that status, and the form that the document gives.
  json Fits(const std::string& method, const std::string& pattern, int status,
            const http::ClientResponse& response) {
    EXPECT_EQ(response.status, status) << method << " " << pattern << ": " << response.body;
    const json body = json::parse(response.body, nullptr, false);
    const json& operation = document_.at("paths").at(pattern).at(method);
    json answer = operation.at("responses").at(std::to_string(status));
    if (answer.contains("$ref")) {
      answer = document_.at(json::json_pointer(answer["$ref"].get<std::string>().substr(1)));
    }
    EXPECT_EQ(check_.Check(answer.at("content").at("application/json").at("schema"), body), "");
    return body;
  }
  std::string ErrorOf(const http::ClientResponse& response, int status) {
    EXPECT_EQ(response.status, status) << response.body;
    const json body = json::parse(response.body, nullptr, false);
    return body.is_object() ? body["error"].value("message", "") : response.body;
  }
  json Put(const std::string& path, const std::string& bytes) {
    Fits("put", "/v1/model-files/{file}", 201,
         Send("PUT", "/v1/model-files/sha256:" + Sha256(bytes), bytes));
    return {{"path", path}, {"sha256", Sha256(bytes)}, {"bytes", bytes.size()}};
  }
  json Register(const json& body, int status = 201) {
    return Fits("post", "/v1/models", status, Send("POST", "/v1/models", body.dump()));
  }

  base::TemporaryDirectory folder_;
  const json document_ = json::parse(OpenApiText().begin(), OpenApiText().end());
  const SchemaCheck check_{document_};
  const base::SystemClock clock_;
  std::unique_ptr<service::DiskEngine> engine_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<service::Service> service_;
  std::unique_ptr<ApiServer> server_;
  std::atomic<bool> over_ = false, play_ = true;
  std::thread launchers_;
};

const std::string kModel = "/v1/models/{model}", kVersion = kModel + "/versions/{version}";

TEST_F(ModelRoutesTest, LeadsAModelFromItsFilesToItsDeletion) {
  EXPECT_EQ(Fits("get", "/v1/models", 200, Send("GET", "/v1/models"))["models"].size(), 0u);
  const std::string file = "/v1/model-files/sha256:" + Sha256("weights");
  EXPECT_EQ(Send("HEAD", file).status, 404);
  const json files = {Put("net.bin", "weights"), Put("conf/a.json", "{}")};
  EXPECT_EQ(Send("HEAD", file).status, 200);
  const json made = Register({{"name", "net"},
                              {"description", "classifies"},
                              {"stage", "Staging"},
                              {"tags", {{"team", "vision"}}},
                              {"properties", {{"a", "1"}}},
                              {"files", files}});
  EXPECT_EQ(made["id"], "azureml:net:1");
  EXPECT_EQ(made["lineage"], nullptr);
  EXPECT_EQ(made["files"].size(), 2u);
  json again = {{"name", "net"}, {"version", "1"}, {"files", files}};
  EXPECT_EQ(Register(again, 200)["tags"]["team"], "vision");
  again["files"] = json::array({files[0]});
  EXPECT_THAT(ErrorOf(Send("POST", "/v1/models", again.dump()), 409), HasSubstr("other files"));

  const json model = Fits("get", kModel, 200, Send("GET", "/v1/models/net"));
  EXPECT_EQ(model["latest"], "1");
  EXPECT_EQ(Send("GET", "/v1/models/net/versions/1/files/conf/a.json").body, "{}");
  EXPECT_EQ(Send("GET", "/v1/models/net/versions/%40latest/files/net.bin").body, "weights");
  EXPECT_EQ(Send("GET", "/v1/models/net/versions/1/files/none").status, 404);
  Fits("put", kModel + "/aliases/{alias}", 200,
       Send("PUT", "/v1/models/net/aliases/best", R"({"version": "1"})"));
  const json version = Fits("get", kVersion, 200, Send("GET", "/v1/models/net/versions/%40best"));
  EXPECT_EQ(version["aliases"], json::array({"best"}));
  Fits("delete", kModel + "/aliases/{alias}", 200, Send("DELETE", "/v1/models/net/aliases/best"));
  const json changed =
      Fits("patch", kVersion, 200,
           Send("PATCH", "/v1/models/net/versions/1", R"({"stage": "Production"})"));
  EXPECT_EQ(changed["stage"], "Production");
  EXPECT_EQ(changed["description"], "classifies");
  const json archived =
      Fits("patch", kModel, 200, Send("PATCH", "/v1/models/net", R"({"archived": true})"));
  EXPECT_EQ(archived["archived"], true);
  EXPECT_EQ(Fits("get", "/v1/models", 200, Send("GET", "/v1/models"))["models"].size(), 0u);
  EXPECT_EQ(Fits("get", "/v1/models", 200, Send("GET", "/v1/models?archived=all"))["models"].size(),
            1u);
  const json pruned = Fits("post", "/v1/prune", 200, Send("POST", "/v1/prune?dry_run=true"));
  EXPECT_EQ(pruned["models"], json({{"versions", 1}, {"bytes", 9}}));
  Fits("delete", kVersion, 200, Send("DELETE", "/v1/models/net/versions/1"));
  Fits("delete", kModel, 200, Send("DELETE", "/v1/models/net"));
  ErrorOf(Send("GET", "/v1/models/net"), 404);
}

TEST_F(ModelRoutesTest, ListsByPage) {
  const json files = json::array({Put("f", "x")});
  for (const char* name : {"a", "b", "c"}) Register({{"name", name}, {"files", files}});
  for (int i = 0; i < 2; ++i) Register({{"name", "a"}, {"files", files}});
  const json first = Fits("get", "/v1/models", 200, Send("GET", "/v1/models?limit=2"));
  EXPECT_EQ(first["after"], "b");
  const json second = Fits("get", "/v1/models", 200, Send("GET", "/v1/models?limit=2&after=b"));
  ASSERT_EQ(second["models"].size(), 1u);
  EXPECT_EQ(second["models"][0]["name"], "c");
  EXPECT_EQ(second["after"], nullptr);
  const std::string versions = kModel + "/versions";
  const json page = Fits("get", versions, 200, Send("GET", "/v1/models/a/versions?limit=2"));
  EXPECT_EQ(page["versions"][0]["version"], "3");
  const json rest = Fits(
      "get", versions, 200,
      Send("GET", absl::StrCat("/v1/models/a/versions?limit=2&before=", page["before"].dump())));
  ASSERT_EQ(rest["versions"].size(), 1u);
  EXPECT_EQ(rest["before"], nullptr);
  for (const char* wrong : {"/v1/models?limit=0", "/v1/models?archived=maybe",
                            "/v1/models/a/versions?before=-1", "/v1/models/a/versions?limit=x"}) {
    ErrorOf(Send("GET", wrong), 400);
  }
  ErrorOf(Send("GET", "/v1/models/none/versions"), 404);
}

TEST_F(ModelRoutesTest, KeepsOfAJobWhatItWasMadeOf) {
  const json job = {{"text", service::kJobFile}, {"base_directory", "/"}};
  play_ = false;
  ASSERT_EQ(Send("POST", "/v1/jobs", job.dump()).status, 201);
  const json body = {{"name", "net"}, {"job", "j"}, {"path", "outputs/from-n1"}};
  EXPECT_THAT(ErrorOf(Send("POST", "/v1/models", body.dump()), 409), HasSubstr("has not ended"));
  play_ = true;
  Send("GET", "/v1/jobs/j/stream");  // to its end
  const json made = Register(body);
  EXPECT_EQ(made["file"], "from-n1");
  EXPECT_EQ(made["lineage"]["job"], "j");
  EXPECT_EQ(made["lineage"]["command"], "echo hi");
  EXPECT_EQ(made["lineage"]["path"], "outputs/from-n1");
  ASSERT_EQ(Send("DELETE", "/v1/jobs/j").status, 200);
  EXPECT_EQ(Send("GET", "/v1/models/net/versions/1/files/from-n1").body, "result");
  EXPECT_EQ(Fits("get", kVersion, 200, Send("GET", "/v1/models/net/versions/1"))["lineage"],
            made["lineage"]);
  ErrorOf(Send("POST", "/v1/models", body.dump()), 404);
}

TEST_F(ModelRoutesTest, TakesTheAddressOfWhatAJobHasLeft) {
  const json job = {{"text", service::kJobFile}, {"base_directory", "/"}};
  ASSERT_EQ(Send("POST", "/v1/jobs", job.dump()).status, 201);
  Send("GET", "/v1/jobs/j/stream");
  json body = {{"name", "net"}, {"address", "azureml://jobs/j/outputs/artifacts/paths/outputs/"}};
  EXPECT_EQ(Register(body)["file_count"], 2);
  body["address"] = "runs:/j/from-n1";
  EXPECT_EQ(Register(body)["file"], "from-n1");
  for (const char* address : {"azureml://jobs/../outputs/x", "s3://b/x", "", "/etc"}) {
    body["address"] = address;
    ErrorOf(Send("POST", "/v1/models", body.dump()), 400);
  }
}

TEST_F(ModelRoutesTest, NamesWhatAJobHasWhereItHasNotThat) {
  const json job = {{"text", service::kJobFile}, {"base_directory", "/"}};
  ASSERT_EQ(Send("POST", "/v1/jobs", job.dump()).status, 201);
  Send("GET", "/v1/jobs/j/stream");
  for (const char* path : {"outputs/none", "logs/rank-0.stdout"}) {
    const json body = {{"name", "net"}, {"job", "j"}, {"path", path}};
    EXPECT_THAT(ErrorOf(Send("POST", "/v1/models", body.dump()), 404),
                HasSubstr("but outputs/from-n1, outputs/from-n2"));
  }
  for (const char* path : {"../j/outputs", "/etc", "", "outputs/../logs"}) {
    const json body = {{"name", "net"}, {"job", "j"}, {"path", path}};
    ErrorOf(Send("POST", "/v1/models", body.dump()), 400);
  }
}

TEST_F(ModelRoutesTest, AJobTakesAFixedVersionWhichStaysAsLongAsItNeedsIt) {
  play_ = false;
  const json files = json::array({Put("net.bin", "one")});
  Register({{"name", "net"}, {"files", files}});
  const json job = {{"base_directory", "/"},
                    {"text",
                     "name: k\ncommand: cat ${{inputs.m}}/net.bin\ninputs:\n"
                     "  m: {type: custom_model, path: 'azureml:net@latest'}\n"}};
  const auto submitted = Send("POST", "/v1/jobs", job.dump());
  ASSERT_EQ(submitted.status, 201) << submitted.body;
  Register({{"name", "net"}, {"files", json::array({Put("net.bin", "two")})}});
  EXPECT_THAT(ErrorOf(Send("DELETE", "/v1/models/net/versions/1"), 409),
              HasSubstr("net:1 is an input of a job that has not ended"));
  EXPECT_THAT(ErrorOf(Send("DELETE", "/v1/models/net"), 409), HasSubstr("net:1"));
  EXPECT_EQ(Send("DELETE", "/v1/models/net/versions/2").status, 200);
  const json wrong = {
      {"base_directory", "/"},
      {"text", "command: x\ninputs:\n  m: {type: custom_model, path: 'azureml:net:7'}\n"}};
  EXPECT_THAT(ErrorOf(Send("POST", "/v1/jobs", wrong.dump()), 400),
              HasSubstr("model net has no version 7, but versions 1"));
}

TEST_F(ModelRoutesTest, RefusesWhatIsWrongAndWhoMayNot) {
  const json file = Put("f", "x");
  for (const std::string body :
       {"", "{", "[]", "{}", R"({"name": "n"})", R"({"name": "n", "files": {}})",
        R"({"name": 5, "files": []})", R"({"name": "n", "files": [1]})",
        R"({"name": "n", "job": ""})", R"({"name": "n", "job": "j"})"}) {
    ErrorOf(Send("POST", "/v1/models", body), 400);
  }
  const auto refused = [&](const char* key, const json& value) {
    json body = {{"name", "n"}, {"files", json::array({file})}};
    body[key] = value;
    EXPECT_EQ(Send("POST", "/v1/models", body.dump()).status, 400) << key << value;
  };
  refused("unknown", 1);
  refused("tags", {{"a", 1}});
  refused("type", "model");
  refused("version", "../1");
  const auto file_of = [](const std::string& path, const json& sha256, int bytes) {
    return json::array({json{{"path", path}, {"sha256", sha256}, {"bytes", bytes}}});
  };
  refused("files", file_of("../x", file["sha256"], 1));
  refused("files", file_of("x", "abc", 1));
  refused("files", file_of("x", file["sha256"], -1));
  json body = {{"name", "n"}, {"files", file_of("x", Sha256("y"), 1)}};
  EXPECT_THAT(ErrorOf(Send("POST", "/v1/models", body.dump()), 409), HasSubstr("not been sent"));
  ErrorOf(Send("PUT", "/v1/model-files/sha256:" + Sha256("y"), "z"), 400);
  ErrorOf(Send("PUT", "/v1/model-files/x", "z"), 400);
  Register({{"name", "n"}, {"files", json::array({file})}});
  for (const std::string change : {"", "[]", R"({"name": "m"})", R"({"archived": 1})"}) {
    ErrorOf(Send("PATCH", "/v1/models/n", change), 400);
    ErrorOf(Send("PATCH", "/v1/models/n/versions/1", change), 400);
  }
  ErrorOf(Send("PATCH", "/v1/models/n", R"({"stage": "x"})"), 400);
  ErrorOf(Send("PATCH", "/v1/models/none", R"({"archived": true})"), 404);
  ErrorOf(Send("PUT", "/v1/models/n/aliases/latest", R"({"version": "1"})"), 400);
  ErrorOf(Send("PUT", "/v1/models/n/aliases/a", R"({"version": "9"})"), 404);
  ErrorOf(Send("PUT", "/v1/models/n/aliases/a", "{}"), 400);
  ErrorOf(Send("GET", "/v1/models/n/versions/1/files/..%2f..%2fx"), 400);
  for (const Route& route : ModelRoutes(service_.get())) {
    EXPECT_EQ(route.access, Access::kUser) << route.pattern;
  }
  EXPECT_EQ(Send("GET", "/v1/models", "", "wrong").status, 401);
}

}  // namespace
}  // namespace tutti::api

#include "platform/api/code_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "http/client/client.h"
#include "platform/api/api.h"
#include "platform/api/callers_for_tests.h"
#include "platform/api/openapi.h"
#include "platform/api/schema_check_for_tests.h"
#include "platform/code/code_archive_for_tests.h"
#include "platform/service/world_for_tests.h"

namespace tutti::api {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kPipeline[] = R"(type: pipeline
name: p
jobs:
  one: {environment: host, command: echo 1, code: /one}
  two: {environment: host, command: echo 2, code: /two}
)";
// A real server on loopback, on an engine whose launchers never say anything.
class CodeAnswerTest : public ::testing::Test {
 protected:
  CodeAnswerTest() {
    EXPECT_TRUE(base::MakeDirectories(directory_).ok());
    store_ = *store::Store::Open(directory_ / "tutti.db");
    service_ = *service::Service::Open({.directory = directory_,
                                        .launcher_file = directory_ / "launcher.json",
                                        .launcher_key = kLauncherKey,
                                        .observe_interval = absl::Milliseconds(20)},
                                       store_.get(), &engine_, &clock_);
    server_ = *ApiServer::Start(
        {.port = 0, .tokens = {.user = kUserToken, .launcher_key = kLauncherKey}}, service_.get());
    service_->Run();
  }
  ~CodeAnswerTest() override {
    service_->Stop();
    server_.reset();
  }

  http::ClientResponse Send(const http::ClientRequest& request) {
    auto response = http::Client(server_->url(), kUserToken).Send(request);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *std::move(response) : http::ClientResponse{};
  }
  // Returns its name.
  std::string SendCode(const std::vector<code::TestEntry>& entries) {
    const code::TestArchive code(entries);
    const auto sent = Send({.method = "PUT",
                            .target = "/v1/snapshots/" + code.hash(),
                            .content_type = "application/zstd",
                            .body = code.bytes()});
    EXPECT_EQ(sent.status, 201) << sent.body;
    return code.hash();
  }
  void Submit(json job) {
    job["base_directory"] = "/";
    const auto sent = Send({.method = "POST", .target = "/v1/jobs", .body = job.dump()});
    EXPECT_EQ(sent.status, 201) << sent.body;
  }
  std::filesystem::path FileOf(const std::string& snapshot) const {
    return directory_ / "snapshots" / absl::StrCat("sha256-", snapshot.substr(7));
  }
  // The answer, which fits its schema.
  json Code(const std::string& job_and_query) {
    const auto response = Send({.target = "/v1/jobs/" + job_and_query});
    EXPECT_EQ(response.status, 200) << response.body;
    json body = json::parse(response.body, nullptr, false);
    const json& schema = document_["components"]["schemas"]["Code"];
    EXPECT_EQ(SchemaCheck(document_).Check(schema, body), "");
    return body;
  }
  // The message of an answer of that status.
  std::string Refusal(const std::string& job_and_query, int status) {
    const auto response = Send({.target = "/v1/jobs/" + job_and_query});
    EXPECT_EQ(response.status, status) << response.body;
    const json body = json::parse(response.body, nullptr, false);
    return body.is_object() && body.contains("error") ? body["error"]["message"] : json("none");
  }

  base::TemporaryDirectory folder_;
  const std::filesystem::path directory_ = folder_.path() / "state";
  json document_ = json::parse(OpenApiText().begin(), OpenApiText().end());
  const base::SystemClock clock_;
  service::DiskEngine engine_{folder_.path() / "engine"};
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<service::Service> service_;
  std::unique_ptr<ApiServer> server_;
};

TEST_F(CodeAnswerTest, HasTheFilesOfAJobsCode) {
  const std::string snapshot =
      SendCode({{"train.py", "print('é')\n"}, {"lib/net.bin", std::string("\0", 1)}});
  Submit({{"text", absl::StrCat(service::kJobFile, "code: /code\n")}, {"snapshot", snapshot}});
  EXPECT_EQ(Code("j/code"),
            json({{"snapshot", snapshot},
                  {"files",
                   {{{"path", "lib/net.bin"}, {"bytes", 1}, {"text", nullptr}},
                    {{"path", "train.py"}, {"bytes", 12}, {"text", "print('é')\n"}}}},
                  {"left_out", 0}}));
  EXPECT_EQ(Code("j/code?folder=%2Fcode")["snapshot"], snapshot);
  EXPECT_THAT(Refusal("j/code?folder=%2Fother", 404),
              HasSubstr("no code of the folder \"/other\""));
}

TEST_F(CodeAnswerTest, HasEachCodeOfAPipeline) {
  const std::string one = SendCode({{"one.py", "1"}});
  const std::string two = SendCode({{"two.py", "2"}});
  Submit({{"text", kPipeline}, {"snapshots", {{"/one", one}, {"/two", two}}}});
  EXPECT_EQ(Code("p/code")["files"][0]["path"], "one.py");
  EXPECT_EQ(Code("p/code?folder=%2Ftwo")["files"][0]["path"], "two.py");
}

TEST_F(CodeAnswerTest, SaysWhyThereIsNone) {
  Submit({{"text", service::kJobFile}});
  EXPECT_EQ(Refusal("j/code", 404), "job j has no code");
  EXPECT_THAT(Refusal("other/code", 404), HasSubstr("other"));
}

TEST_F(CodeAnswerTest, SaysThatItIsNotKeptAnyMore) {
  const std::string snapshot = SendCode({{"a", "a"}});
  Submit({{"text", absl::StrCat(service::kJobFile, "code: /code\n")}, {"snapshot", snapshot}});
  std::filesystem::remove(FileOf(snapshot));
  EXPECT_THAT(Refusal("j/code", 404), HasSubstr("retention has removed it"));
}

TEST_F(CodeAnswerTest, SaysThatItIsNoArchiveOfCode) {
  const std::string snapshot = SendCode({{"../a", "a"}});
  Submit({{"text", absl::StrCat(service::kJobFile, "code: /code\n")}, {"snapshot", snapshot}});
  EXPECT_THAT(Refusal("j/code", 409), HasSubstr("would leave the folder"));
}

}  // namespace
}  // namespace tutti::api

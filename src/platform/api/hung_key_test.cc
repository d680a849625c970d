// A key of secrets that does not answer, as on a file server that is away, holds no thread that
// other calls need, and who needs it is told.
// Covers: launcher_routes.cc, rest.cc.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/test_patience.h"
#include "platform/api/api.h"
#include "platform/api/callers_for_tests.h"
#include "platform/service/attempt/launcher_token.h"
#include "platform/service/world_for_tests.h"

namespace tutti::api {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kWithSecret[] =
    "type: command\nname: s\ncommand: echo hi\nresources:\n  instance_count: 2\n"
    "  properties: {tutti: {secrets: {TOKEN: hub}}}\ndistribution: {type: mpi}\n";

// As long as this lives the file is a pipe that nobody writes to: who opens it waits.
class HungFile {
 public:
  explicit HungFile(std::filesystem::path path)
      : path_(std::move(path)), kept_(path_.native() + ".kept") {
    std::filesystem::rename(path_, kept_);
    EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  }
  ~HungFile() {
    const auto pipe = base::Open(path_, O_RDWR);  // who waits goes on, and reads nothing
    EXPECT_TRUE(pipe.ok()) << pipe.status();
    std::filesystem::rename(kept_, path_);
  }

 private:
  const std::filesystem::path path_, kept_;
};

class HungKeyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    world_.launchers().silent = true;
    ASSERT_TRUE(world_.service().SetSecret("hub", "hunter22").ok());
    world_.service().Run();
    auto server =
        ApiServer::Start({.port = 0, .tokens = {.user = kUserToken, .launcher_key = kLauncherKey}},
                         &world_.service());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    ASSERT_TRUE(world_.Submit(kWithSecret).ok());
    ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] {
      world_.Step();
      return Call(OfLauncher("go")).status == 200;
    }));
  }

  http::ClientResponse Call(http::ClientRequest request) {
    const bool is_users = request.target.starts_with("/v1/");
    request.timeout = base::Patient(absl::Seconds(15));
    http::Client client(server_->url(), is_users ? kUserToken : launcher_token_);
    auto response = client.Send(request);
    EXPECT_TRUE(response.ok()) << request.target << ": " << response.status();
    return response.ok() ? *std::move(response) : http::ClientResponse{};
  }
  static http::ClientRequest OfLauncher(const std::string& what) {
    return {.target = "/internal/v1/allocations/s.1/nodes/0/" + what};
  }
  static http::ClientRequest Submission(const std::string& text) {
    return {.method = "POST",
            .target = "/v1/jobs",
            .body = json{{"text", text}, {"base_directory", "/"}}.dump()};
  }

  const std::string launcher_token_ = service::LauncherToken(kLauncherKey, "s.1");
  base::TemporaryDirectory folder_;
  service::World world_{folder_.path()};
  std::unique_ptr<ApiServer> server_;
};

// More than there are threads for quick calls of launchers, which are 32.
TEST_F(HungKeyTest, LaunchersThatAskForSecretsHoldNoOtherCallOfLaunchers) {
  Callers callers;
  {
    const HungFile key(folder_.path() / "secrets.key");
    for (int i = 0; i < 40; ++i) {
      callers.Call(server_->url(), launcher_token_, OfLauncher("secrets"));
    }
    ASSERT_TRUE(callers.AwaitSent(40));
    EXPECT_EQ(Call(OfLauncher("go")).status, 200);
    http::ClientRequest events = OfLauncher("events?first=1");
    events.method = "POST";
    events.body = "{\"kind\": \"preparing\"}\n";
    EXPECT_EQ(json::parse(Call(events).body)["acknowledged"], 1);
    EXPECT_EQ(Call({.target = "/v1/jobs"}).status, 200);
    for (const http::ClientResponse& answer : callers.Join()) {
      EXPECT_EQ(answer.status, 503) << "who asks again is given them later";
    }
  }
  base::AwaitPatiently(absl::Seconds(20), [&] {
    const http::ClientResponse given = Call(OfLauncher("secrets"));
    return given.status == 200 && json::parse(given.body)["secrets"].contains("hub");
  });
}

TEST_F(HungKeyTest, UsersAreToldThatItDoesNotAnswer) {
  const HungFile key(folder_.path() / "secrets.key");
  EXPECT_EQ(Call({.target = "/v1/secrets"}).status, 503);
  EXPECT_EQ(Call({.method = "PUT", .target = "/v1/secrets/new", .body = "hunter22"}).status, 503);
  EXPECT_EQ(Call({.method = "POST", .target = "/v1/secret-rotations"}).status, 503);
  const http::ClientResponse refused = Call(Submission(kWithSecret));
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("does not answer"));
  EXPECT_THAT(json::parse(Call({.target = "/v1/problems"}).body)["problems"]
                  .get<std::vector<std::string>>(),
              Contains(HasSubstr("the key of the secrets")));
  EXPECT_EQ(Call(Submission("command: echo hi\nenvironment: host\n")).status, 201);
  EXPECT_EQ(Call({.method = "DELETE", .target = "/v1/secrets/hub"}).status, 200)
      << "which needs no key";
}

}  // namespace
}  // namespace tutti::api

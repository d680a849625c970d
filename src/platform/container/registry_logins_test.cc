#include "platform/container/registry_logins.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Logins kLogins = {{"a.example:5000", {"alice", "right"}}};

TEST(RegistryLogins, AreReadFromSecretsAndWrongOnesAreNotRepeated) {
  for (const char* value :
       {"alice:with:colon\n", R"({"username": "alice", "password": "with:colon"})"}) {
    const auto login = LoginFrom(value);
    ASSERT_TRUE(login.ok()) << login.status();
    EXPECT_EQ(login->username, "alice");
    EXPECT_EQ(login->password, "with:colon");
  }
  for (const char* value :
       {"hunter22", ":hunter22", "hunter22:", "[]", R"({"username": "hunter22"})",
        R"({"username": "hunter22", "password": 7})",
        R"({"username": "a:hunter22", "password": "p"})"}) {
    const absl::Status status = LoginFrom(value).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << value;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("hunter22")));
  }
}

TEST(RegistryLogins, AreThoseOfTheRegistriesThatAreAskedAlone) {
  const std::map<std::string, std::string> secrets = {
      {"hub", "hunter22"}, {"registry.a.example", "hunter22"}, {"registry.ghcr.io", "alice:right"}};
  const auto logins = LoginsFrom(secrets, {"ghcr.io", "b.example"});
  ASSERT_TRUE(logins.ok()) << logins.status();
  EXPECT_EQ(logins->size(), 1u);
  EXPECT_EQ(logins->at("ghcr.io").username, "alice");
  EXPECT_THAT(std::string(LoginsFrom(secrets, {"a.example"}).status().message()),
              HasSubstr("secret \"registry.a.example\": "));
}

TEST(RegistryLogins, AreOfTheRegistriesOfAnImageAndOfADockerfile) {
  EXPECT_THAT(RegistriesOf({.reference = "ghcr.io/a/b:1"}), ElementsAre("ghcr.io"));
  EXPECT_THAT(RegistriesOf({.reference = "10.0.0.5:5000/b"}), ElementsAre("10.0.0.5:5000"));
  EXPECT_THAT(RegistriesOf({.reference = "python:3.11"}), ElementsAre("docker.io"));
  EXPECT_THAT(RegistriesOf({.reference = "localhost/own:1"}), IsEmpty());
  EXPECT_THAT(RegistriesOf({}), IsEmpty());
  const base::TemporaryDirectory folder;
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "Dockerfile",
                                    "FROM a.example/x AS one\nFROM python\nCOPY --from=one /a /a\n"
                                    "COPY --from=b.example:1/y /b /b\n")
                  .ok());
  const spec::Image build{.context = folder.path().string(), .dockerfile = "Dockerfile"};
  EXPECT_THAT(RegistriesOf(build), ElementsAre("a.example", "b.example:1", "docker.io"));
}

TEST(RegistryLogins, TakeThePlaceOfTheUsersOwnForTheirHostsAlone) {
  const json text = json::parse(
      AuthText({{"a.example", {"alice", "right"}}, {"docker.io", {"bob", "pass"}}},
               R"({"auths": {"a.example": {"auth": "old"}, "a.example/team": {"auth": "old"},
                    "https://index.docker.io/v1/": {"auth": "old"}, "a.example.org": {"auth": "kept"}},
          "credHelpers": {"a.example": "helper", "c.example": "helper"}})"));
  EXPECT_EQ(text["auths"], json::parse(R"({"a.example": {"auth": "YWxpY2U6cmlnaHQ="},
      "docker.io": {"auth": "Ym9iOnBhc3M="}, "a.example.org": {"auth": "kept"}})"));
  EXPECT_EQ(text["credHelpers"], json::parse(R"({"c.example": "helper"})"));
  EXPECT_EQ(json::parse(AuthText(kLogins, "no JSON"))["auths"].size(), 1u);
}

TEST(RegistryLogins, LieInAFileOfTheUsersAloneAsLongAsItIsInUse) {
  const base::TemporaryDirectory home;
  const fs::path own = home.path() / ".docker/config.json";
  ASSERT_TRUE(base::MakeDirectories(own.parent_path()).ok());
  ASSERT_TRUE(
      base::WriteFileAtomic(own, R"({"auths": {"b.example": {"auth": "of the user"}}})").ok());
  fs::path file;
  {
    auto made = LoginFile::Make(
        kLogins, {{"HOME", home.path().string()}, {"XDG_RUNTIME_DIR", home.path().string()}});
    ASSERT_TRUE(made.ok()) << made.status();
    const LoginFile moved = *std::move(made);
    file = moved.variables().at("REGISTRY_AUTH_FILE");
    EXPECT_EQ(fs::path(moved.variables().at("DOCKER_CONFIG")) / "config.json", file);
    EXPECT_EQ(file.string().substr(0, 9), "/dev/shm/");
    struct stat info = {}, folder = {};
    ASSERT_EQ(::stat(file.c_str(), &info), 0);
    ASSERT_EQ(::stat(file.parent_path().c_str(), &folder), 0);
    EXPECT_EQ(info.st_mode & 07777, 0600u);
    EXPECT_EQ(folder.st_mode & 07777, 0700u);
    const json text = json::parse(*base::ReadFile(file));
    EXPECT_EQ(text["auths"]["b.example"]["auth"], "of the user");
    EXPECT_EQ(text["auths"]["a.example:5000"]["auth"], "YWxpY2U6cmlnaHQ=");
    LoginFile::RemoveLeftovers();
    EXPECT_TRUE(fs::exists(file)) << "it is in use";
  }
  EXPECT_FALSE(fs::exists(file.parent_path()));
}

TEST(RegistryLogins, NoneNeedNoFile) {
  const auto made = LoginFile::Make({}, {});
  ASSERT_TRUE(made.ok());
  EXPECT_THAT(made->variables(), IsEmpty());
}

TEST(RegistryLogins, OfAKilledProcessAreRemovedByTheNextOne) {
  const fs::path folder = absl::StrCat("/dev/shm/tutti-login-", ::geteuid(), "-", ::getpid());
  const fs::path fresh = absl::StrCat("/dev/shm/of-a-test-", ::getpid());  // others remove, too
  ASSERT_TRUE(base::MakeDirectories(fresh).ok());
  ASSERT_TRUE(base::WriteFileAtomic(fresh / "config.json", "{}").ok());
  fs::rename(fresh, folder);
  ASSERT_TRUE(LoginFile::Make(kLogins, {}).ok());
  EXPECT_FALSE(fs::exists(folder));
}

}  // namespace
}  // namespace tutti::container

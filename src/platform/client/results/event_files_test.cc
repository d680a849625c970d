#include "platform/client/results/event_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kEvents[] = "outputs/tb/events.out.tfevents.1.n1";

class EventFilesTest : public ::testing::Test {
 protected:
  FakeService::Answer Answer(const http::ClientRequest& request) {
    absl::string_view path = request.target;
    if (absl::StartsWith(path, "/v1/jobs/j/results")) return {.chunks = {R"({"missing": []})"}};
    if (path == "/v1/jobs/j/files") {
      auto files = nlohmann::json::array();
      for (const auto& [name, content] : content_) {
        files.push_back({{"path", name}, {"bytes", content.size()}});
      }
      return {.chunks = {nlohmann::json({{"files", files}}).dump()}};
    }
    if (absl::ConsumePrefix(&path, "/v1/jobs/j/files/")) {
      const std::string& content = content_.at(std::string(path));
      return {.chunks = {content.substr(0, 1), content.substr(1)}};
    }
    return {.chunks = {nlohmann::json({{"id", "j"}, {"state", state_}}).dump()}};
  }
  EventFiles Bring() {
    FakeService fake([this](const http::ClientRequest& request) { return Answer(request); });
    ServiceClient service(fake.connect()());
    auto brought = BringEventFiles(service, "j", folder_.path() / "j", absl::Seconds(1));
    requests_ = fake.requests();
    EXPECT_TRUE(brought.ok()) << brought.status();
    return *std::move(brought);
  }

  const base::TemporaryDirectory folder_;
  const std::filesystem::path file_ = folder_.path() / "j" / kEvents;
  std::string state_ = "Running";
  std::map<std::string, std::string> content_;
  std::vector<std::string> requests_;
};

TEST_F(EventFilesTest, GrowInPlaceWhileTheJobRuns) {
  EXPECT_EQ(Bring().files, 0u);
  content_ = {{kEvents, "ab"}, {"outputs/tfevents/model", "m"}, {"logs/x.tfevents", "l"}};
  const EventFiles first = Bring();
  EXPECT_EQ(first.files, 1u);
  EXPECT_FALSE(first.has_ended);
  EXPECT_THAT(first.note, HasSubstr("still runs"));
  EXPECT_EQ(*base::ReadFile(file_), "ab");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "j/outputs/tfevents/model"));
  std::filesystem::create_hard_link(file_, folder_.path() / "open");
  content_[kEvents] = "abcd";
  EXPECT_EQ(Bring().files, 1u);
  EXPECT_EQ(*base::ReadFile(folder_.path() / "open"), "abcd") << "it is the same file";
  Bring();
  EXPECT_THAT(requests_, Not(Contains(HasSubstr("events.out")))) << "it has not grown";
  content_[kEvents] = "xy1";
  Bring();
  EXPECT_EQ(*base::ReadFile(file_), "xy1");
}

TEST_F(EventFilesTest, OfAJobThatHasEndedAreAllThereAre) {
  state_ = "Completed";
  content_ = {{kEvents, "ab"}};
  const EventFiles brought = Bring();
  EXPECT_TRUE(brought.has_ended);
  EXPECT_EQ(brought.note, "");
  EXPECT_THAT(requests_, Not(Contains(HasSubstr("/results"))));
}

}  // namespace
}  // namespace tutti::client

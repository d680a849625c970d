#include "platform/launch/node/event_log.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

// The kinds of the events in the file, "?" for what is none.
std::vector<std::string> KindsIn(const std::filesystem::path& file) {
  std::vector<std::string> kinds;
  const std::string text = base::ReadFile(file).value_or("");
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const auto event = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
    kinds.push_back(event.is_object() ? event.value("kind", "?") : "?");
  }
  return kinds;
}

// Files of this process grow no further than that many bytes, as on a disk that fills.
class FullAt {
 public:
  explicit FullAt(uint64_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullAt() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST(EventLog, WhatTheDiskDoesNotTakeComesBeforeTheNextEventAndNeverInPart) {
  const base::TemporaryDirectory folder;
  const auto file = folder.path() / "events.jsonl";
  auto log = EventLog::Open(file);
  ASSERT_TRUE(log.ok()) << log.status();
  (*log)->Append("preparing", nlohmann::json::object());
  EXPECT_EQ((*log)->kept(), 1);
  {
    const FullAt limit(std::filesystem::file_size(file) + 10);
    (*log)->Append("held", {{"note", "the disk is full"}});
    (*log)->Append("told", nlohmann::json::object());
    EXPECT_FALSE((*log)->Sync().ok());
  }
  EXPECT_EQ((*log)->size(), 3);
  EXPECT_EQ((*log)->kept(), 1);
  EXPECT_THAT(KindsIn(file), testing::ElementsAre("preparing"));
  EXPECT_TRUE((*log)->Sync().ok());
  EXPECT_EQ((*log)->kept(), 3);
  (*log)->Append("finished", nlohmann::json::object());
  EXPECT_THAT(KindsIn(file), testing::ElementsAre("preparing", "held", "told", "finished"));
  EXPECT_EQ(*base::ReadFile(file), (*log)->From(1));
}

}  // namespace
}  // namespace tutti::launch

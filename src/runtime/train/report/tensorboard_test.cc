#include "runtime/train/report/tensorboard.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "runtime/data/source/tf_record/tf_record.h"

namespace tutti::train {
namespace {

// The files of `folder`, each as the events in it.
std::vector<std::string> EventsIn(const std::filesystem::path& folder) {
  std::vector<std::string> events;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_EQ(entry.path().filename().string().find("events.out.tfevents."), 0u);
    const std::string bytes = base::ReadFile(entry.path()).value();
    data::TfRecordReader reader(bytes);
    for (;;) {
      const auto record = reader.Next();
      EXPECT_TRUE(record.ok()) << record.status();
      if (!record.ok() || !*record) break;
      EXPECT_TRUE(data::CheckData(**record).ok());
      events.emplace_back((*record)->data);
    }
  }
  return events;
}

TEST(EventFile, BeginsWithItsVersionAndHoldsRecordsWithTheirChecksums) {
  const base::TemporaryDirectory folder;
  const base::ManualClock clock(absl::FromUnixSeconds(100));
  {
    auto file = EventFile::Create(folder.path() / "a" / "b", clock);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Write(300, {{"loss", 1.5}, {"step/data", 0.25}}).ok());
  }
  const auto events = EventsIn(folder.path() / "a" / "b");
  ASSERT_EQ(events.size(), 2u);
  // As protoc encodes wall_time: 100 file_version: "brain.Event:2"
  const std::string time("\x09\x00\x00\x00\x00\x00\x00\x59\x40", 9);
  EXPECT_EQ(events[0], time + "\x1a\x0d" + "brain.Event:2");
  // step: 300 summary { value { tag: "loss" simple_value: 1.5 } value { … } }
  EXPECT_EQ(events[1], time + "\x10\xac\x02" + "\x2a\x1f" + "\x0a\x0b\x0a\x04loss\x15" +
                           std::string("\x00\x00\xc0\x3f", 4) + "\x0a\x10\x0a\x09step/data\x15" +
                           std::string("\x00\x00\x80\x3e", 4));
}

TEST(EventFile, NamesTheFolderThatCannotBe) {
  const base::SystemClock clock;
  const auto file = EventFile::Create("/proc/nowhere", clock);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(std::string(file.status().message()).find("/proc/nowhere"), std::string::npos);
}

}  // namespace
}  // namespace tutti::train

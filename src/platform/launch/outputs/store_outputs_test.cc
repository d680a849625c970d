#include "platform/launch/outputs/store_outputs.h"

#include <gmock/gmock.h>

#include <atomic>
#include <string>

#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "platform/launch/node/node_folders.h"
#include "platform/storage/storage_fault.h"

namespace tutti::launch {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(StoreOutputs, AFileWhoseNameTheStoreNeverTakesFailsItsOutputAtOnce) {
  const base::TemporaryDirectory folder;
  spec::LaunchPlan plan;
  plan.job_id = "blue";
  plan.directory = folder.path().native();
  plan.outputs["model"].place = {.kind = spec::StoreKind::kS3, .container = "sets", .path = "x"};
  const auto file = NodeFolders(plan.directory).outputs() / "model" / "odd name";
  ASSERT_TRUE(base::MakeDirectories(file.parent_path()).ok());
  ASSERT_TRUE(base::WriteFileAtomic(file, "1").ok());
  int puts = 0;
  const StoreParts parts = {
      .put =
          [&](const storage::StorageRequest&, const PutLimits&,
              const std::function<void(const storage::StoredObject&)>&) {
            ++puts;
            return storage::AboutObject(
                storage::WithSource(absl::InvalidArgumentError("no object of this name"),
                                    storage::FaultSource::kStore),
                "odd name");
          },
      .secrets = []() -> absl::StatusOr<SecretValues> { return SecretValues(); },
      .now = absl::Now,
      .steady = base::SteadyNow};
  const auto events = EventLog::Open(folder.path() / "events.jsonl");
  ASSERT_TRUE(events.ok()) << events.status();
  const auto outputs = StoreOutputs::Open(plan, parts, events->get(), {});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  const std::atomic<bool> never = false;
  const absl::Status stored = (*outputs)->Finish(Storing::kUntilThere, never);
  EXPECT_EQ(puts, 1);
  EXPECT_THAT(std::string(stored.message()),
              AllOf(HasSubstr("no object of this name; have the job write it under another name"),
                    HasSubstr("1 file (odd name)")));
}

}  // namespace
}  // namespace tutti::launch

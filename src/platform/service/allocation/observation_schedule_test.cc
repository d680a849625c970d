// How often engines are asked in a running service: service_launchers_test.cc.
#include "platform/service/allocation/observation_schedule.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/file.h"
#include "platform/engine/fake/engine_fake.h"

namespace tutti::service {
namespace {

// The service is at rest for most of the time, but the silence of launchers can only be told by who
// looks more often than every half minute.
TEST(ObservationScheduleTest, ALookThatTakesLongMakesTheNextOneLaterButNeverByMuch) {
  const base::TemporaryDirectory folder;
  const base::ManualClock clock;
  engine::FakeEngine engine(1);
  SharedState state({.directory = folder.path()}, /*jobs=*/nullptr, &engine, &clock);
  const JobTable table(state);
  const LeavingAllocations leaving(state, table);
  ObservationSchedule schedule(state, leaving);
  const auto interval_after = [&](absl::Duration work) {
    StateLock lock(state);
    schedule.NoteWork(work);
    return schedule.Interval();
  };
  EXPECT_EQ(interval_after(absl::Milliseconds(1)), state.options.observe_interval);
  EXPECT_EQ(interval_after(absl::Milliseconds(20)), absl::Milliseconds(2400));
  for (const int milliseconds : {250, 1'000, 20'000}) {
    EXPECT_EQ(interval_after(absl::Milliseconds(milliseconds)), absl::Seconds(10)) << milliseconds;
  }
}

}  // namespace
}  // namespace tutti::service

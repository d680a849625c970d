#include "platform/tracking/rows/point_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "platform/store/database.h"
#include "platform/tracking/rows/tracking_schema.h"

namespace tutti::tracking {
namespace {

using store::SqliteConnection;

class BlocksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto database = store::Database::Open(folder_.path() / "t.db", AllMigrations(),
                                          {.busy_timeout = absl::Seconds(1)});
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
    Write([](SqliteConnection& sqlite) { AddFirstBlock(sqlite, 1); });
  }
  template <typename Function>
  void Write(const Function& function) {
    const absl::Status status = database_->Write(
        [&](SqliteConnection& sqlite) {
          function(sqlite);
          return absl::OkStatus();
        },
        store::Durability::kCrash);
    ASSERT_TRUE(status.ok()) << status;
  }
  void Add(std::vector<Point> points) {
    std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
      return std::pair(a.step, a.time) < std::pair(b.step, b.time);
    });
    Write([&](SqliteConnection& sqlite) { AddPoints(sqlite, 1, points); });
  }
  int64_t Number(const char* sql) {
    int64_t number = 0;
    Write([&](SqliteConnection& sqlite) { number = sqlite.execAndGet(sql).getInt64(); });
    return number;
  }
  std::vector<int64_t> SampledSteps(const StepRange& range, int64_t most) {
    std::vector<int64_t> steps;
    Write([&](SqliteConnection& sqlite) {
      for (const Point& point : SamplePoints(sqlite, 1, range, most)) steps.push_back(point.step);
    });
    return steps;
  }
  void ExpectCountsThatFit(int64_t points) {
    EXPECT_EQ(Number("SELECT sum(count) FROM blocks"), points);
    EXPECT_EQ(Number("SELECT count(*) FROM blocks b WHERE count != (SELECT count(*) FROM points p "
                     "WHERE (p.step, p.time_ms) >= (b.step, b.time_ms) AND NOT EXISTS "
                     "(SELECT 1 FROM blocks n WHERE (n.step, n.time_ms) > (b.step, b.time_ms) AND "
                     "(n.step, n.time_ms) <= (p.step, p.time_ms)))"),
              0);
  }

  base::TemporaryDirectory folder_;
  std::unique_ptr<store::Database> database_;
};

TEST(Bits, KeepValuesAndTheirOrder) {
  const double values[] = {-HUGE_VAL, -2.5, -1, -1e-300, 0, 1e-300, 1, 2.5, HUGE_VAL, NAN};
  for (size_t i = 1; i < std::size(values); ++i) {
    EXPECT_LT(BitsOf(values[i - 1]), BitsOf(values[i])) << values[i];
    EXPECT_EQ(ValueOf(BitsOf(values[i - 1])), values[i - 1]);
  }
  EXPECT_TRUE(std::isnan(ValueOf(BitsOf(NAN))));
  EXPECT_TRUE(std::signbit(ValueOf(BitsOf(-0.0))));
  EXPECT_EQ(BitsOf(NAN), BitsOf(-NAN));
}

TEST_F(BlocksTest, CountEachPointInWhicheverOrderTheyCome) {
  std::vector<int64_t> steps(5000);
  for (size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<int64_t>(i);
  std::shuffle(steps.begin(), steps.end(), std::mt19937(1));
  for (size_t at = 0; at < steps.size(); at += 250) {
    std::vector<Point> points;
    for (size_t i = at; i < at + 250; ++i) points.push_back({steps[i], 7, 0.5});
    Add(points);
  }
  ExpectCountsThatFit(5000);
  EXPECT_GE(Number("SELECT count(*) FROM blocks"), 5000 / 512);
  EXPECT_LE(Number("SELECT max(count) FROM blocks"), 512);
}

TEST_F(BlocksTest, SampleEvenlyWithTheFirstAndTheLast) {
  std::vector<Point> points;
  for (int64_t i = 0; i < 3000; ++i) points.push_back({i, 1, 1});
  Add(points);
  EXPECT_THAT(SampledSteps({}, 3), ::testing::ElementsAre(0, 1000, 2999));
  EXPECT_THAT(SampledSteps({100, 109}, 5), ::testing::ElementsAre(100, 102, 104, 106, 109));
  EXPECT_THAT(SampledSteps({100, 103}, 5), ::testing::ElementsAre(100, 101, 102, 103));
  EXPECT_THAT(SampledSteps({}, 1), ::testing::ElementsAre(2999));
  EXPECT_THAT(SampledSteps({5000, 6000}, 5), ::testing::IsEmpty());
  EXPECT_THAT(SampledSteps({3, 2}, 5), ::testing::IsEmpty());
  EXPECT_EQ(SampledSteps({}, 1000).size(), 1000u);
  EXPECT_EQ(SampledSteps({}, 5000).size(), 3000u);
  for (const int64_t most : {7, 100, 999, 2999}) {
    const std::vector<int64_t> steps = SampledSteps({10, 2500}, most);
    ASSERT_EQ(steps.size(), static_cast<size_t>(std::min<int64_t>(most, 2491)));
    for (size_t i = 1; i < steps.size(); ++i) {
      EXPECT_LE(steps[i] - steps[i - 1], 2 * (2491 / most + 1)) << most;
    }
    EXPECT_EQ(steps.front(), 10);
    EXPECT_EQ(steps.back(), 2500);
  }
}

TEST_F(BlocksTest, PointsOfOneStepAreToldApartByTheirTime) {
  std::vector<Point> points;
  for (int64_t i = 0; i < 4000; ++i) points.push_back({0, i, static_cast<double>(i)});
  Add(points);
  ExpectCountsThatFit(4000);
  EXPECT_LE(Number("SELECT max(count) FROM blocks"), 512);
  Write([](SqliteConnection& sqlite) {
    const auto sampled = SamplePoints(sqlite, 1, {0, 0}, 4);
    ASSERT_EQ(sampled.size(), 4u);
    EXPECT_EQ(sampled[1].value, 1000);
    EXPECT_EQ(sampled[3].value, 3999);
  });
}

TEST_F(BlocksTest, ABlockThatCannotBeSplitIsTriedAgainOnlyOnceItHasDoubled) {
  for (int64_t at = 0; at < 3000; at += 100) {
    std::vector<Point> points;
    for (int64_t i = at; i < at + 100; ++i) points.push_back({1, 1, static_cast<double>(i)});
    Add(points);
  }
  ExpectCountsThatFit(3000);
  EXPECT_EQ(Number("SELECT count(*) FROM blocks"), 1);
  EXPECT_GE(Number("SELECT split_at FROM blocks"), 3000);
  EXPECT_EQ(SampledSteps({}, 10).size(), 10u);
}

TEST_F(BlocksTest, ThePlacesAtBothEndsOfAllAreCounted) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  std::vector<Point> points = {{kMin, 0, 1}, {kMax, kMax, 1}};
  for (int64_t i = 0; i < 1000; ++i) points.push_back({i, 0, 1});
  Add(points);
  ExpectCountsThatFit(1002);
  EXPECT_THAT(SampledSteps({}, 2), ::testing::ElementsAre(kMin, kMax));
  EXPECT_EQ(SampledSteps({0, kMax}, 5000).size(), 1001u);
}

TEST_F(BlocksTest, AMillionPointsAreSampledWithoutReadingThem) {
  Write([](SqliteConnection& sqlite) {
    std::vector<Point> points;
    for (int64_t i = 0; i < 1'000'000; ++i) points.push_back({i, i, 1});
    AddPoints(sqlite, 1, points);
  });
  int64_t steps = 0;  // of SQLite's machine: some for each row that it reads
  const auto count = [](void* counted) {
    ++*static_cast<int64_t*>(counted);
    return 0;
  };
  Write([&](SqliteConnection& sqlite) {
    sqlite3_progress_handler(sqlite.getHandle(), 1, count, &steps);
    EXPECT_EQ(SamplePoints(sqlite, 1, {}, 10).size(), 10u);
    sqlite3_progress_handler(sqlite.getHandle(), 0, nullptr, nullptr);
  });
  EXPECT_GT(steps, 0);
  EXPECT_LT(steps, 1'000'000);
}

}  // namespace
}  // namespace tutti::tracking

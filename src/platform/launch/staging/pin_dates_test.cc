#include "platform/launch/staging/pin_dates.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "http/client/file_server_for_tests.h"
#include "platform/launch/staging/python_environment.h"

namespace tutti::launch {
namespace {

// A page of the index with one file, and when that was uploaded; "" if it does not say.
std::string Page(const std::string& file, const std::string& uploaded) {
  return absl::StrCat(R"({"files": [{"filename": ")", file, R"(")",
                      uploaded.empty() ? "" : absl::StrCat(R"(, "upload-time": ")", uploaded, "\""),
                      "}]}");
}

class PinDates : public ::testing::Test {
 protected:
  PinDates() {
    for (const char* name : {"UV_EXCLUDE_NEWER", "UV_NO_INDEX", "PIP_NO_INDEX", "UV_INDEX",
                             "UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL"}) {
      ::unsetenv(name);
    }
    Upload("numpy", "numpy-1.21.6-cp38-cp38-linux_x86_64.whl", "2022-06-21T22:54:44.000000Z");
    Upload("pyod", "pyod-1.0.4.tar.gz", "2022-07-29T10:00:00Z");
    Upload("new", "new-2.0-py3-none-any.whl", "2026-03-01T00:00:00Z");
    Upload("timeless", "timeless-1.0.tar.gz", "");
  }
  void Upload(const std::string& name, const std::string& file, const std::string& uploaded) {
    index_.Put(absl::StrCat("/simple/", name, "/"), Page(file, uploaded), "");
  }
  spec::Environment Of(const std::vector<std::string>& packages) {
    spec::Environment environment{.is_host = false};
    for (const std::string& package : packages) {
      environment.packages.push_back({package, "conda.yml:1"});
    }
    environment.options = {absl::StrCat("--index-url=", index_.url("/simple/"))};
    return environment;
  }
  std::string DayOf(const spec::Environment& environment) {
    const absl::Time now = absl::FromCivil(absl::CivilDay(2026, 11, 1), absl::UTCTimeZone());
    return AsOfItsPins(environment, folder_.path(), never_, now).newest_day;
  }

  http::FileServer index_;
  const base::TemporaryDirectory folder_;
  const std::atomic<bool> never_ = false;
};

TEST_F(PinDates, OldPinsGiveTheDayAfterTheNewestOfThem) {
  EXPECT_EQ(DayOf(Of({"NumPy==1.21.6.*", "pyod==1.0.4", "numba"})), "2022-07-30");
  EXPECT_EQ(DayOf(Of({"numpy==1.21.6+local", "scipy>=1"})), "2022-06-22");
  EXPECT_EQ(DayOf(Of({"numpy==1.21.*"})), "2022-06-22");
}

TEST_F(PinDates, WithoutOldPinsOrTheirTimesThereIsNone) {
  EXPECT_EQ(DayOf(Of({"numpy==1.21.6", "new==2"})), "");
  EXPECT_EQ(DayOf(Of({"numpy==1.21.6", "timeless==1.0"})), "");
  EXPECT_EQ(DayOf(Of({"numpy==1.21.6", "gone==1.0"})), "");
  EXPECT_EQ(DayOf(Of({"numpy==1.2"})), "");
  EXPECT_EQ(DayOf(Of({"numpy>=1.21", "numba"})), "");
}

TEST_F(PinDates, AreNotAskedForWhereTheyDoNotCount) {
  spec::Environment told = Of({"numpy==1.21.6"}), mixed = told, alone = told;
  told.as_of_pins = false;
  mixed.packages.push_back({"mlflow>=2.9,<3", "built-in table of curated environments:3"});
  alone.options.push_back("--no-index");
  for (const spec::Environment& environment : {told, mixed, alone}) {
    EXPECT_EQ(DayOf(environment), "");
  }
  EXPECT_EQ(index_.asked(), 0);
}

TEST_F(PinDates, OneThatIsToldNotToHasAFolderOfItsOwn) {
  spec::Environment told = Of({"numpy==1.21.6"});
  told.as_of_pins = false;
  const auto made = folder_.path() / EnvironmentKey(told);
  ASSERT_TRUE(base::MakeDirectories(made).ok());
  ASSERT_TRUE(base::WriteFileAtomic(made / "complete", "").ok());
  EXPECT_EQ(DayOf(Of({"numpy==1.21.6"})), "2022-06-22");
}

TEST_F(PinDates, AreAskedForOnceUnlessThereIsNoAnswer) {
  const spec::Environment old = Of({"numpy==1.21.6"}), recent = Of({"new==2.0"});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(DayOf(old), "2022-06-22");
    EXPECT_EQ(DayOf(recent), "");
  }
  EXPECT_EQ(index_.asked(), 2);
  spec::Environment silent = old;
  silent.options = {"--index-url=http://127.0.0.1:1/simple"};
  EXPECT_EQ(DayOf(silent), "");
  silent.options = {absl::StrCat("--index-url=", index_.url("/simple"))};
  EXPECT_EQ(DayOf(silent), "2022-06-22");
}

}  // namespace
}  // namespace tutti::launch

// Logs of jobs that are brought to stores: whole, once, whatever is killed in between.
// Covers: stored_logs/log_storage.cc, stored_logs/bring_logs.cc, stored_logs/log_place.cc.
#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "platform/launch/storage_program_double.h"
#include "platform/service/stored_logs/log_place.h"
#include "platform/service/world_for_tests.h"
#include "spec/data/datastore.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;
using State = store::LogsNote::State;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPlace[] = "azureml://datastores/runs/paths/logs";

class StoredLogsTest : public ::testing::Test {
 protected:
  StoredLogsTest() {
    const fs::path program = programs_.path() / "storage";
    if (!base::WriteFileAtomic(program, launch::kStorageProgramDouble).ok()) std::abort();
    if (!base::MakeDirectories(Store() / "objects").ok()) std::abort();
    ::chmod(program.c_str(), 0700);
    ::setenv("TUTTI_STORAGE_PROGRAM", program.c_str(), 1);
    spec::Datastores stores;
    stores["runs"] = {.name = "runs",
                      .place = {.kind = spec::StoreKind::kS3,
                                .container = "runs",
                                .credential = spec::CredentialKind::kAccessKey,
                                .secret = "datastore.runs",
                                .datastore = "runs"}};
    if (!spec::WriteDatastores(folder_.path(), stores).ok()) std::abort();
    world_ = std::make_unique<World>(folder_.path());
    SetKey("a-key");
  }
  ~StoredLogsTest() override { ::unsetenv("TUTTI_STORAGE_PROGRAM"); }

  fs::path Store() const { return programs_.path() / "store"; }
  std::string Object(const std::string& path) const {
    return base::ReadFile(Store() / "objects/logs" / path).value_or("none");
  }
  std::string Calls() const { return base::ReadFile(Store() / "calls").value_or(""); }
  void SetKey(const std::string& key) {
    ASSERT_TRUE(
        world_->service()
            .SetSecret("datastore.runs", absl::StrCat("{\"access_key_id\": \"AKIAEXAMPLE\", "
                                                      "\"secret_access_key\": \"",
                                                      key, "\"}"))
            .ok());
  }
  // Has the store refuse everything, with an error of that kind; "": take it again.
  void Refuse(const std::string& kind) {
    if (kind.empty()) {
      fs::remove(Store() / "refuse");
    } else {
      ASSERT_TRUE(base::WriteFileAtomic(Store() / "refuse", kind).ok());
    }
  }
  static std::string Job(const std::string& logs = kPlace) {
    return absl::StrCat("name: j\ncommand: echo hi\nresources:\n  instance_count: 1\n",
                        "  properties: {tutti: {logs: '", logs, "'}}\n");
  }
  void KeepLogsOfSite(const std::string& address) {
    ASSERT_TRUE(
        base::WriteFileAtomic(folder_.path() / "site.yml", absl::StrCat("keep_logs: ", address))
            .ok());
  }
  void RunJob() {
    const auto submitted = world_->Submit(Job());
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    ASSERT_TRUE(world_->StepUntilOver("j"));
  }
  store::LogsNote Note() { return world_->service().StoredLogsOf("j").value()->note; }
  bool StepUntilNoted(State state) {
    return world_->StepUntil([&] { return Note().state == state; });
  }

  const base::TemporaryDirectory folder_, programs_;
  std::unique_ptr<World> world_;
};

TEST_F(StoredLogsTest, AreThereWithAListOfThemOnceTheJobHasEnded) {
  RunJob();
  ASSERT_TRUE(StepUntilNoted(State::kStored)) << Note().reason;
  EXPECT_EQ(world_->service().StoredLogsOf("j").value()->place,
            "azureml://datastores/runs/paths/logs/j");
  const std::string kept =
      base::ReadFile(folder_.path() / "jobs/j/logs/rank-0.stdout").value_or("not kept");
  EXPECT_EQ(Object("j/logs/rank-0.stdout"), kept);
  const auto manifest = nlohmann::json::parse(Object("j/logs.stored.json"));
  EXPECT_EQ(manifest["job"], "j");
  EXPECT_EQ(manifest["files"][0]["path"], "logs/rank-0.stdout");
  EXPECT_EQ(manifest["files"][0]["sha256"].get<std::string>().size(), 64u);
  EXPECT_EQ(manifest["files"].back()["path"], "service.log");
  EXPECT_THAT(Object("j/service.log"),
              AllOf(HasSubstr("Z Queued: submitted\n"), HasSubstr("Z Completed")));
  EXPECT_FALSE(fs::exists(folder_.path() / "incoming/logs-j"));
  EXPECT_THAT(world_->service().Problems(), Not(Contains(HasSubstr("logs"))));
}

TEST_F(StoredLogsTest, ItsLaunchersDoNotGetTheStoresCredentials) {
  ASSERT_TRUE(world_->Submit(Job()).ok());
  ASSERT_TRUE(
      world_->StepUntil([&] { return world_->service().SecretsForLauncher("j.1", 0).ok(); }));
  EXPECT_TRUE(world_->service().SecretsForLauncher("j.1", 0)->empty());
  EXPECT_TRUE(world_->StepUntilOver("j"));
}

TEST_F(StoredLogsTest, WhatTheStoreRefusedIsBroughtOnceItTakesIt) {
  ASSERT_TRUE(world_->Submit(Job()).ok());
  Refuse("credentials");
  ASSERT_TRUE(world_->StepUntilOver("j"));
  ASSERT_TRUE(world_->StepUntil([&] { return !Note().reason.empty(); }));
  EXPECT_EQ(Note().state, State::kPending);
  EXPECT_THAT(world_->service().Problems(),
              Contains(AllOf(HasSubstr("logs of jobs cannot be brought to datastore runs"),
                             HasSubstr("the store takes nothing"))));
  const std::string asked = Calls();
  for (int i = 0; i < 5; ++i) world_->Step();
  EXPECT_EQ(Calls(), asked) << "not asked without a pause";
  SetKey("another-key");
  Refuse("");
  ASSERT_TRUE(StepUntilNoted(State::kStored));
  EXPECT_THAT(Calls(), HasSubstr("another-key"));
  EXPECT_EQ(Note().reason, "");
  EXPECT_THAT(world_->service().Problems(), Not(Contains(HasSubstr("datastore runs"))));
}

TEST_F(StoredLogsTest, AServiceThatWasKilledLeavesThemToTheNext) {
  ASSERT_TRUE(world_->Submit(Job()).ok());
  Refuse("network");
  ASSERT_TRUE(world_->StepUntilOver("j"));
  ASSERT_TRUE(world_->StepUntil([&] { return !Note().reason.empty(); }));
  Refuse("");
  world_->Open();
  EXPECT_EQ(Note().state, State::kPending);
  world_->Step();
  EXPECT_EQ(Note().state, State::kStored) << "a new service asks at once";
  const std::string calls = Calls();
  world_->Open();
  world_->Step();
  EXPECT_EQ(Calls(), calls) << "what is stored is not brought again";
}

TEST_F(StoredLogsTest, AreGivenUpAfterAMonthWithTheLastReason) {
  ASSERT_TRUE(world_->Submit(Job()).ok());
  Refuse("network");
  ASSERT_TRUE(world_->StepUntilOver("j"));
  ASSERT_TRUE(world_->StepUntil([&] { return !Note().reason.empty(); }));
  world_->clock().Advance(absl::Hours(29 * 24));
  world_->Step();
  EXPECT_EQ(Note().state, State::kPending);
  world_->clock().Advance(absl::Hours(2 * 24));
  ASSERT_TRUE(StepUntilNoted(State::kGivenUp));
  EXPECT_EQ(Note().reason, "given up after 30 days: the store takes nothing");
  Refuse("");
  world_->clock().Advance(absl::Hours(2));
  const std::string calls = Calls();
  world_->Step();
  EXPECT_EQ(Calls(), calls);
  EXPECT_THAT(world_->service().Problems(), Not(Contains(HasSubstr("datastore runs"))));
}

TEST_F(StoredLogsTest, AJobThatIsDeletedOwesNone) {
  ASSERT_TRUE(world_->Submit(Job()).ok());
  Refuse("network");
  ASSERT_TRUE(world_->StepUntilOver("j"));
  ASSERT_TRUE(world_->StepUntil([&] { return !Note().reason.empty(); }));
  ASSERT_TRUE(world_->service().Delete("j").ok());
  world_->clock().Advance(absl::Hours(1));
  world_->Step();
  const std::string calls = Calls();
  world_->clock().Advance(absl::Hours(1));
  world_->Step();
  EXPECT_EQ(Calls(), calls);
  EXPECT_THAT(world_->service().Problems(), Not(Contains(HasSubstr("datastore runs"))));
}

TEST_F(StoredLogsTest, AJobThatHasTheNameOfADeletedOneOwesItsOwnLogsAlone) {
  ASSERT_TRUE(world_->Submit(Job()).ok());
  Refuse("network");
  ASSERT_TRUE(world_->StepUntilOver("j"));
  ASSERT_TRUE(world_->StepUntil([&] { return !Note().reason.empty(); }));
  ASSERT_TRUE(world_->service().Delete("j").ok());
  ASSERT_TRUE(world_->Submit("name: j\ncommand: echo hi\n").ok()) << "its logs go nowhere";
  ASSERT_TRUE(world_->StepUntilOver("j"));
  Refuse("");
  world_->clock().Advance(absl::Hours(1));
  const auto is_owed = [&] {
    const std::vector<std::string> problems = world_->service().Problems();
    return std::any_of(problems.begin(), problems.end(), [](const std::string& problem) {
      return absl::StrContains(problem, "datastore runs");
    });
  };
  ASSERT_TRUE(world_->StepUntil([&] { return !is_owed(); }));
  EXPECT_EQ(Object("j/logs.stored.json"), "none");
}

TEST_F(StoredLogsTest, AJobWhoseFolderIsNotThereKeepsItsLogsOwed) {
  ASSERT_TRUE(world_->Submit(Job()).ok());
  Refuse("network");
  ASSERT_TRUE(world_->StepUntilOver("j"));
  ASSERT_TRUE(world_->StepUntil([&] { return !Note().reason.empty(); }));
  const fs::path folder = folder_.path() / "jobs" / "j", away = folder_.path() / "away";
  fs::rename(folder, away);
  Refuse("");
  world_->clock().Advance(absl::Hours(1));
  ASSERT_TRUE(
      world_->StepUntil([&] { return Note().reason.find("is not there") != std::string::npos; }));
  EXPECT_EQ(Note().state, State::kPending);
  fs::rename(away, folder);
  world_->clock().Advance(absl::Hours(1));
  ASSERT_TRUE(StepUntilNoted(State::kStored));
  EXPECT_NE(Object("j/logs.stored.json"), "none");
}

TEST_F(StoredLogsTest, AJobThatHasWrittenNoneSaysSo) {
  ASSERT_TRUE(world_->Submit(absl::StrReplaceAll(kJobFile, {{"name: j", "name: first"}})).ok());
  ASSERT_TRUE(world_->Submit(Job()).ok());
  ASSERT_TRUE(world_->service().Cancel("j").ok()) << "it waits for the nodes";
  ASSERT_TRUE(StepUntilNoted(State::kStored));
  EXPECT_EQ(Note().reason, "the job has written none");
  EXPECT_THAT(Object("j/service.log"), HasSubstr("Z Canceled"));
  EXPECT_EQ(nlohmann::json::parse(Object("j/logs.stored.json"))["files"].size(), 1u);
}

TEST_F(StoredLogsTest, AreThoseOfEveryJobWhereTheSiteKeepsThem) {
  KeepLogsOfSite("azureml://datastores/runs/paths/logs/all");
  ASSERT_TRUE(world_->Submit("name: j\ncommand: echo hi\n").ok());
  EXPECT_EQ(Calls(), "") << "the store is not asked when a job is submitted";
  ASSERT_TRUE(world_->StepUntilOver("j"));
  ASSERT_TRUE(StepUntilNoted(State::kStored)) << Note().reason;
  EXPECT_NE(Object("all/j/logs/rank-0.stdout"), "none");
  EXPECT_NE(Object("all/j/service.log"), "none");
}

TEST_F(StoredLogsTest, AJobsOwnPlaceComesBeforeItsSites) {
  KeepLogsOfSite("azureml://datastores/runs/paths/logs/all");
  RunJob();
  ASSERT_TRUE(StepUntilNoted(State::kStored)) << Note().reason;
  EXPECT_NE(Object("j/logs/rank-0.stdout"), "none");
  EXPECT_EQ(Object("all/j/logs.stored.json"), "none");
}

TEST_F(StoredLogsTest, ASitesPlaceThatIsNotKnownIsRefusedAtItsLine) {
  KeepLogsOfSite("azureml://datastores/other/paths/logs");
  EXPECT_THAT(std::string(world_->Submit("name: j\ncommand: echo hi\n").status().message()),
              AllOf(HasSubstr("site.yml:1: keep_logs: "), HasSubstr("other"),
                    HasSubstr("tutti datastore create --file FILE")));
  KeepLogsOfSite("logs");
  EXPECT_THAT(std::string(world_->Submit("name: j\ncommand: echo hi\n").status().message()),
              HasSubstr("keep_logs: \"logs\" is no place in a store"));
}

TEST_F(StoredLogsTest, RetentionLeavesThemUntilTheyAreThere) {
  ASSERT_TRUE(
      base::WriteFileAtomic(folder_.path() / "site.yml", "retention: {logs: {age: 30d}}\n").ok());
  ASSERT_TRUE(world_->service().Prune({}).ok());
  ASSERT_TRUE(world_->Submit(Job()).ok());
  Refuse("network");
  ASSERT_TRUE(world_->StepUntilOver("j"));
  ASSERT_TRUE(world_->StepUntil([&] { return !Note().reason.empty(); }));
  world_->clock().Set(world_->clock().Now() + absl::Hours(31 * 24));
  ASSERT_TRUE(world_->service().Prune({.clock_is_right = true}).ok());
  EXPECT_TRUE(fs::exists(folder_.path() / "jobs/j/logs/rank-0.stdout"));
}

TEST_F(StoredLogsTest, APlaceThatCannotBeWrittenToIsRefusedAtSubmission) {
  Refuse("credentials");
  EXPECT_THAT(std::string(world_->Submit(Job()).status().message()),
              HasSubstr("job.yml:5: resources.properties.tutti.logs: the store takes nothing"));
  Refuse("network");
  EXPECT_THAT(std::string(world_->Submit(Job()).status().message()),
              HasSubstr("job.yml:5: resources.properties.tutti.logs: the store takes nothing"));
  Refuse("");
  ASSERT_TRUE(world_->service().DeleteSecret("datastore.runs").ok());
  EXPECT_THAT(std::string(world_->Submit(Job()).status().message()),
              HasSubstr("job.yml:5: resources.properties.tutti.logs: there is no secret"));
}

TEST(LogPlace, IsAFolderOfTheJobsNameInThePlace) {
  spec::DataPlace place{.kind = spec::StoreKind::kS3, .container = "b", .path = "a/${{name}}"};
  EXPECT_EQ(LogsOutput(place, "j").place->path, "a/j/j");
  EXPECT_EQ(ShownLogsPlace(place, "j"), "bucket \"b\", path \"a/j/j\"");
  place.path = "";
  EXPECT_EQ(LogsOutput(place, "j").place->path, "j");
  const spec::DataPlace share{.path = "/mnt/share/runs", .datastore = "d", .root = "/mnt/share"};
  EXPECT_EQ(LogsOutput(share, "j").place->path, "/mnt/share/runs/j");
  EXPECT_EQ(ShownLogsPlace(share, "j"), "azureml://datastores/d/paths/runs/j");
}

}  // namespace
}  // namespace tutti::service

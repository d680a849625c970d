#include "platform/launch/staging/remote_input.h"

#include <gmock/gmock.h>

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "platform/http/server.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Serves files by their path, of which "/silent" never comes, and counts how many it has sent.
class FileServer {
 public:
  struct File {
    std::string content, tag;
  };

  FileServer() {
    auto server =
        http::Server::Start({}, [this](const http::Request& request, http::Connection& connection) {
          if (request.path == "/silent") {
            base::AwaitPatiently(absl::Seconds(20), [&] { return connection.Closed(); });
          }
          return Answer(request);
        });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string url(const std::string& path) const { return server_->url() + path; }
  void Put(const std::string& path, const std::string& content, const std::string& tag) {
    absl::MutexLock lock(&mutex_);
    files_[path] = {content, tag};
  }
  int sent() const {
    absl::MutexLock lock(&mutex_);
    return sent_;
  }

 private:
  http::Response Answer(const http::Request& request) {
    absl::MutexLock lock(&mutex_);
    const auto found = files_.find(request.path);
    if (found == files_.end()) return {.status = 404};
    http::Response response{.status = 200, .body = found->second.content};
    if (!found->second.tag.empty()) response.headers.push_back({"ETag", found->second.tag});
    if (request.method == "GET") ++sent_;
    return response;
  }

  mutable absl::Mutex mutex_;
  std::map<std::string, File> files_ ABSL_GUARDED_BY(mutex_);
  int sent_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<http::Server> server_;
};

class RemoteInputTest : public ::testing::Test {
 protected:
  absl::StatusOr<fs::path> Fetch(const std::string& path) {
    return FetchInput("data", Remote(path), folder_.path(), cancelled_);
  }
  std::string Content(const std::string& path) {
    const auto file = Fetch(path);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? base::ReadFile(*file, 1 << 20).value_or("?") : "?";
  }
  spec::Input Remote(const std::string& path) const {
    spec::Input input{.path = server_.url(path)};
    input.place = {"job.yml", 4};
    return input;
  }
  absl::Status Check(const spec::JobSpec& job) {
    const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
    return CheckRemoteInputs(job, deadline, warnings_);
  }

  FileServer server_;
  const base::TemporaryDirectory folder_;
  std::atomic<bool> cancelled_ = false;
  std::vector<std::string> warnings_;
};

TEST_F(RemoteInputTest, IsWhatIsBehindHttp) {
  EXPECT_TRUE(IsRemote({.path = "http://a.example/x"}));
  EXPECT_TRUE(IsRemote({.path = "https://a.example/x"}));
  EXPECT_FALSE(IsRemote({.path = "/data/x"}));
  EXPECT_FALSE(IsRemote({}));
}

TEST_F(RemoteInputTest, AFileIsFetchedOnceAsLongAsItIsTheSame) {
  server_.Put("/set.csv", "a,b\n", "\"1\"");
  EXPECT_EQ(Content("/set.csv"), "a,b\n");
  EXPECT_EQ(Content("/set.csv"), "a,b\n");
  EXPECT_EQ(server_.sent(), 1);
  server_.Put("/set.csv", "c,d\n", "\"2\"");
  EXPECT_EQ(Content("/set.csv"), "c,d\n");
  EXPECT_EQ(server_.sent(), 2);
}

TEST_F(RemoteInputTest, WhatItsServerDoesNotTellApartIsFetchedEachTime) {
  server_.Put("/set.csv", "a,b\n", "");
  EXPECT_EQ(Content("/set.csv"), "a,b\n");
  server_.Put("/set.csv", "c,d\n", "");  // as long as before
  EXPECT_EQ(Content("/set.csv"), "c,d\n");
}

TEST_F(RemoteInputTest, AnotherSignatureOfAnAddressIsTheSameFile) {
  server_.Put("/set.csv", "a,b\n", "\"1\"");
  EXPECT_EQ(*Fetch("/set.csv?sig=one"), *Fetch("/set.csv?sig=two"));
  EXPECT_NE(*Fetch("/set.csv?part=1"), *Fetch("/set.csv?part=2")) << "may be other files";
}

TEST_F(RemoteInputTest, TheFileHasTheNameThatItsAddressEndsWith) {
  for (const auto& [path, name] : {std::pair("/a%20b.csv", "a b.csv"), {"/x.zip?sig=1", "x.zip"}}) {
    server_.Put(std::string(path).substr(0, std::string(path).find('?')), "1", "\"1\"");
    server_.Put("/a b.csv", "1", "\"1\"");
    const auto file = Fetch(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->filename(), name);
  }
  server_.Put("/folder/", "1", "\"1\"");
  EXPECT_EQ(Fetch("/folder/")->filename(), "data") << "the address ends with no name";
  server_.Put("/x/y", "1", "\"1\"");
  EXPECT_EQ(Fetch("/x%2fy")->filename(), "data") << "a name is of one part";
}

TEST_F(RemoteInputTest, WhatCannotBeHadIsNamedWithTheRemedy) {
  const auto file = Fetch("/gone.csv?sig=secret");
  EXPECT_TRUE(absl::IsNotFound(file.status())) << file.status();
  EXPECT_THAT(std::string(file.status().message()),
              AllOf(HasSubstr("input \"data\": "), HasSubstr("cannot be had"),
                    HasSubstr("tutti data map "), Not(HasSubstr("secret"))));
}

TEST_F(RemoteInputTest, ACancelledFetchEnds) {
  server_.Put("/set.csv", "a,b\n", "\"1\"");
  cancelled_ = true;
  EXPECT_TRUE(absl::IsCancelled(Fetch("/set.csv").status()));
}

TEST_F(RemoteInputTest, TheCheckNamesEachThatIsNotThereWithItsLine) {
  server_.Put("/there.csv", "1", "\"1\"");
  spec::Step step;
  step.job.inputs["y"] = Remote("/gone");
  step.job.inputs["y"].place = {"step.yml", 9};
  spec::JobSpec job;
  job.inputs = {{"a", Remote("/there.csv")}, {"x", Remote("/gone")}};
  job.steps.push_back(step);
  const absl::Status status = Check(job);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("job.yml:4: input \"x\": "), HasSubstr("\nstep.yml:9: input \"y\": "),
                    Not(HasSubstr("\"a\""))));
  job.steps.clear();
  job.inputs.erase("x");
  EXPECT_TRUE(Check(job).ok());
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(RemoteInputTest, WhatOnlyTheNodesOfAClusterMayReachIsAWarning) {
  spec::JobSpec job;
  job.inputs["x"] = {.path = "http://127.0.0.1:1/x"};
  job.compute = "hpc";
  EXPECT_TRUE(Check(job).ok());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the nodes of compute \"hpc\" may reach it")));
  job.compute = "local";
  EXPECT_TRUE(absl::IsInvalidArgument(Check(job)));
}

TEST_F(RemoteInputTest, AServerThatDoesNotAnswerInTimeIsAWarning) {
  spec::JobSpec job;
  job.inputs["x"] = Remote("/silent");
  const auto soon = base::Deadline::After(absl::Milliseconds(100));
  EXPECT_TRUE(CheckRemoteInputs(job, soon, warnings_).ok());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("job.yml:4: input \"x\": ")));
}

}  // namespace
}  // namespace tutti::launch

// The signatures of inputs' addresses: given to the launchers of the job, and kept and shown
// nowhere.
// Covers: admission/kept_signatures.cc, admission/secret_check.cc, secrets/secrets.cc.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/hash.h"
#include "http/client/file_server_for_tests.h"
#include "platform/service/cluster_for_tests.h"
#include "platform/service/world_for_tests.h"
#include "spec/data/signed_address.h"
#include "spec/types/identifier.h"

namespace tutti::service {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

constexpr char kSignature[] = "sv=2021-08-06&sig=c2VjcmV0LW9mLXRoZS1ibG9i";

class SignaturesTest : public ServiceTest {
 protected:
  SignaturesTest() { server_.Put("/x.csv", "1", "\"1\""); }

  std::string Address() const { return absl::StrCat(server_.url("/x.csv"), "?", kSignature); }
  static std::string JobWith(const std::string& name, const std::string& address,
                             const std::string& more = "") {
    return absl::StrCat("name: ", name, "\ncommand: cat ${{inputs.x}}\ninputs:\n",
                        "  x: {type: uri_file, path: '", address, "'}\n", more);
  }
  // Looks at all files below the service's folder.
  bool IsAnywhere(const std::string& value) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
      if (!entry.is_regular_file()) continue;
      const auto content = base::ReadFile(entry.path());
      if (content.ok() && content->find(value) != std::string::npos) return true;
    }
    return false;
  }
  std::string FileOf(const std::string& id) {
    return service().GetJob(id).value().record.job.file_text;
  }
  // Returns what the launchers of the job's first attempt are given.
  absl::StatusOr<SecretValues> ValuesFor(const std::string& id) {
    const auto job = service().GetJob(id);
    if (!job.ok()) return job.status();
    return service().SecretsForLauncher(absl::StrCat(id, ".", job->record.job.sequence), 0);
  }
  std::string WhyRefused(const std::string& text) {
    return std::string(world_.Submit(text).status().message());
  }

  http::FileServer server_;
};

TEST_F(SignaturesTest, GoToTheLaunchersAndLieNowhereInTheClear) {
  ASSERT_TRUE(world_.Submit(JobWith("s", Address())).ok());
  ASSERT_TRUE(world_.StepUntil([&] { return ValuesFor("s").ok(); }));
  const std::string path = service().GetJob("s").value().record.job.spec.inputs.at("x").path;
  EXPECT_THAT(path, AllOf(HasSubstr("/x.csv?tutti-signature="), Not(HasSubstr("sig="))));
  EXPECT_EQ(FileOf("s"), JobWith("s", path));
  const auto values = ValuesFor("s");
  EXPECT_THAT(*values, ElementsAre(Pair(spec::SecretOfAddress(path), kSignature)));
  EXPECT_EQ(*spec::WithSignature(path, *values), Address());
  EXPECT_FALSE(IsAnywhere("c2VjcmV0"));
  EXPECT_TRUE(IsAnywhere("tutti-signature")) << "the search finds what is there";
  ASSERT_TRUE(world_.StepUntilOver("s"));
}

TEST_F(SignaturesTest, AFileThatIsShownRunsAgainUntilTheSignatureIsDeleted) {
  ASSERT_TRUE(world_.Submit(JobWith("s", Address())).ok());
  const std::string shown = FileOf("s");
  ASSERT_TRUE(world_.StepUntilOver("s"));
  const std::string again = absl::StrReplaceAll(shown, {{"name: s", "name: t"}});
  ASSERT_TRUE(world_.Submit(again).ok());
  ASSERT_TRUE(world_.StepUntil([&] { return ValuesFor("t").ok(); }));
  ASSERT_TRUE(world_.StepUntilOver("t"));
  const auto secrets = *service().ListSecrets();
  ASSERT_EQ(secrets.size(), 1u);
  ASSERT_TRUE(service().DeleteSecret(secrets[0].name).ok());
  EXPECT_THAT(
      WhyRefused(absl::StrReplaceAll(shown, {{"name: s", "name: u"}})),
      AllOf(HasSubstr("job.yml:4: input \"x\": there is no secret \"signature."),
            HasSubstr("write the address with its signature again"), HasSubstr("sas_token")));
}

TEST_F(SignaturesTest, OneIsNotSentToAnotherServer) {
  ASSERT_TRUE(world_.Submit(JobWith("s", Address())).ok());
  ASSERT_TRUE(world_.StepUntilOver("s"));
  http::FileServer own;
  own.Put("/x.csv", "1", "\"1\"");
  const std::string stolen =
      absl::StrReplaceAll(FileOf("s"), {{server_.url(""), own.url("")}, {"name: s", "name: t"}});
  const std::string why = WhyRefused(stolen);
  EXPECT_THAT(why, AllOf(HasSubstr("job.yml:4: input \"x\": secret \"signature."),
                         HasSubstr(absl::StrCat("is no signature of ", own.url(""))),
                         HasSubstr("is not sent there"), Not(HasSubstr("data map"))));
  EXPECT_EQ(own.asked(), 0) << "nor is it asked without";
}

TEST_F(SignaturesTest, OneThatAnEarlierTuttiKeptIsRefused) {
  const std::string hash = base::Hex(base::Sha256Of(kSignature)).substr(0, 24);
  ASSERT_TRUE(service().SetSecret(spec::SecretOfSignature(hash), kSignature).ok());
  EXPECT_THAT(
      WhyRefused(JobWith("s", absl::StrCat(server_.url("/x.csv"), "?tutti-signature=", hash))),
      AllOf(HasSubstr("job.yml:4: input \"x\""), HasSubstr("kept by an earlier tutti"),
            HasSubstr("write the address with its signature again")));
}

TEST_F(SignaturesTest, StepsAndTrialsHaveThem) {
  const std::string input = absl::StrCat("{type: uri_file, path: '", Address(), "'}");
  ASSERT_TRUE(world_
                  .Submit(absl::StrCat("type: pipeline\nname: p\ninputs: {d: ", input, "}\njobs:\n",
                                       "  a:\n    command: cat ${{inputs.x}} ${{inputs.y}}\n",
                                       "    inputs: {x: '${{parent.inputs.d}}', y: ", input, "}\n"))
                  .ok());
  ASSERT_TRUE(world_.StepUntil([&] { return ValuesFor("p.a").ok(); }));
  EXPECT_EQ(ValuesFor("p.a")->size(), 1u);
  ASSERT_TRUE(world_.StepUntilOver("p"));
  EXPECT_EQ(world_.State("p"), store::JobState::kCompleted);
  ASSERT_TRUE(world_
                  .Submit(absl::StrCat(
                      "type: sweep\nname: w\ntrial:\n  command: cat ${{inputs.x}} "
                      "${{search_space.lr}}\ninputs: {x: ",
                      input, "}\nsearch_space: {lr: {type: choice, values: [1, 2]}}\n",
                      "sampling_algorithm: grid\nobjective: {primary_metric: m, goal: minimize}\n",
                      "limits: {max_total_trials: 2, max_concurrent_trials: 1}\n"))
                  .ok());
  std::string trial;
  ASSERT_TRUE(world_.StepUntil([&] {
    for (const ChildStatus& child : world_.Children("w")) {
      if (child.job) trial = child.job->record.job.id;
    }
    return !trial.empty() && ValuesFor(trial).ok();
  }));
  EXPECT_EQ(ValuesFor(trial)->size(), 1u);
  EXPECT_FALSE(IsAnywhere("c2VjcmV0"));
}

TEST_F(SignaturesTest, ASubmissionThatIsSentTwiceIsOneJob) {
  const Submission submission{
      .text = JobWith("s", Address()), .base_directory = "/", .nonce = "once"};
  ASSERT_TRUE(service().Submit(submission).ok());
  const auto again = service().Submit(submission);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->record.job.id, "s");
}

TEST_F(SignaturesTest, WhatWouldBeKeptAllTheSameIsRefused) {
  EXPECT_THAT(
      WhyRefused(JobWith("s", Address(), absl::StrCat("tags: {from: '", Address(), "'}\n"))),
      AllOf(HasSubstr("job.yml: the signature of an input's address also stands where"),
            Not(HasSubstr("c2VjcmV0"))));
  EXPECT_THAT(WhyRefused(absl::StrReplaceAll(JobWith("s", Address()),
                                             {{"uri_file,", "uri_file, mode: direct,"}})),
              AllOf(HasSubstr("would stand in the job's command line"), HasSubstr("sas_token"),
                    Not(HasSubstr("c2VjcmV0"))));
  const std::string command =
      absl::StrCat("path: ", Address(), "\n    EOF\n    cat ${{inputs.x}} x.yml\n");
  EXPECT_THAT(WhyRefused(absl::StrCat("name: s\ncommand: |\n    cat >x.yml <<EOF\n    ", command,
                                      "inputs: {x: {type: uri_file, path: '", Address(), "'}}\n")),
              AllOf(HasSubstr("also stands where it would be kept"), Not(HasSubstr("c2VjcmV0"))))
      << "the command would keep it, and the file that is shown have another command";
  const std::string escaped = absl::StrReplaceAll(Address(), {{"&", "\\u0026"}});
  EXPECT_THAT(WhyRefused(absl::StrCat(R"({"command": "cat ${{inputs.x}}", "inputs": {"x": )",
                                      R"({"type": "uri_file", "path": ")", escaped, R"("}}})")),
              AllOf(HasSubstr("without escapes"), Not(HasSubstr("c2VjcmV0"))));
  const size_t half = Address().find("c2VjcmV0") + 4;
  const std::string folded =
      absl::StrCat(Address().substr(0, half), "\\\n      ", Address().substr(half));
  EXPECT_THAT(WhyRefused(absl::StrCat("name: s\ncommand: cat ${{inputs.x}}\ninputs:\n  x:\n",
                                      "    type: uri_file\n    path: \"", folded, "\"\n")),
              AllOf(HasSubstr("in one line"), Not(HasSubstr("c2Vj"))));
  const std::string with_comma = absl::StrCat(Address(), ",c2V");
  EXPECT_THAT(WhyRefused(absl::StrCat("name: s\ncommand: cat ${{inputs.x}}\ninputs:\n  x:\n",
                                      "    type: uri_file\n    path: ", with_comma, "\n")),
              AllOf(HasSubstr("where the signature of an input's address ends cannot be told"),
                    HasSubstr("%2C"), Not(HasSubstr("c2V"))));
  EXPECT_THAT(*service().ListSecrets(), IsEmpty());
}

TEST_F(SignaturesTest, ACommentMayHaveItForAnotherServer) {
  ASSERT_EQ(world_
                .Submit(absl::StrCat("# path: https://acme.dfs.core.windows.net/c/x.csv?",
                                     kSignature, "\n", JobWith("s", Address())))
                .status(),
            absl::OkStatus());
  EXPECT_THAT(FileOf("s"), AllOf(HasSubstr("tutti-signature="), Not(HasSubstr("c2VjcmV0"))));
}

TEST_F(SignaturesTest, AJobInJsonHasThemTakenOut) {
  const auto job = world_.Submit(absl::StrCat(
      R"({"name":"s","command":"cat ${{inputs.x}}","inputs":{"x":{"type":"uri_file","path":")",
      Address(), R"("}}})"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(FileOf("s"), AllOf(HasSubstr("tutti-signature="), Not(HasSubstr("c2VjcmV0"))));
}

TEST_F(SignaturesTest, AJobThatNamesOneBeginsItsMonthAnew) {
  ASSERT_TRUE(world_.Submit(JobWith("s", Address())).ok());
  const std::string shown = FileOf("s");
  ASSERT_TRUE(world_.StepUntilOver("s"));
  for (const char* name : {"t", "u", "v"}) {
    world_.clock().Advance(absl::Hours(24 * 20));
    ASSERT_TRUE(service().Prune({.clock_is_right = true}).ok());
    const auto job =
        world_.Submit(absl::StrReplaceAll(shown, {{"name: s", absl::StrCat("name: ", name)}}));
    ASSERT_TRUE(job.ok()) << job.status();
    ASSERT_TRUE(world_.StepUntilOver(name));
  }
  const auto kept = *service().ListSecrets();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_GE(kept[0].set - kept[0].created, absl::Hours(24 * 60)) << "as v was submitted";
  EXPECT_TRUE(kept[0].readable);
}

TEST_F(SignaturesTest, AreForgottenAMonthAfterTheLastJobThatWasSubmittedWithThem) {
  ASSERT_TRUE(world_.Submit(JobWith("s", Address())).ok());
  ASSERT_TRUE(service().SetSecret("hub", "hunter22").ok());
  world_.clock().Advance(absl::Hours(24 * 31));
  ASSERT_TRUE(service().Prune({.clock_is_right = true}).ok());
  EXPECT_EQ(service().ListSecrets()->size(), 2u) << "a job that has not ended names it";
  ASSERT_TRUE(world_.StepUntilOver("s"));
  ASSERT_TRUE(world_.Submit(JobWith("t", Address())).ok());
  ASSERT_TRUE(world_.StepUntilOver("t"));
  ASSERT_TRUE(service().Prune({.clock_is_right = true}).ok());
  EXPECT_EQ(service().ListSecrets()->size(), 2u) << "t was submitted just now";
  world_.clock().Advance(absl::Hours(24 * 31));
  ASSERT_TRUE(service().Prune({.clock_is_right = true}).ok());
  ASSERT_EQ(service().ListSecrets()->size(), 1u);
  EXPECT_EQ((*service().ListSecrets())[0].name, "hub");
}

}  // namespace
}  // namespace tutti::service

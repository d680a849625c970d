#include "platform/stream/service_grant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::stream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ServiceGrant : public ::testing::Test {
 protected:
  // Asks a program that does so in place of `tutti`.
  absl::StatusOr<storage::Grant> Ask(const std::string& does) {
    const auto program = folder_.path() / "tutti";
    EXPECT_TRUE(base::WriteFileAtomic(program, absl::StrCat("#!/bin/sh\n", does, "\n"), 0755).ok());
    return AskForGrant("azureml://datastores/sets/paths/a", program,
                       base::Deadline::After(base::Patient(absl::Seconds(30))));
  }
  const base::TemporaryDirectory folder_;
};

TEST_F(ServiceGrant, IsWhatTheProgramPrints) {
  storage::Grant given{{.kind = spec::StoreKind::kS3, .container = "sets", .path = "a"}, {}, 17};
  given.credentials = {.kind = spec::CredentialKind::kAccessKey, .access_key_id = "id"};
  given.credentials.secret_access_key = "hush";
  const std::string line = storage::ToJson(given);
  const auto grant = Ask(absl::StrCat(
      "[ \"$1 $2 $3\" = 'storage grant azureml://datastores/sets/paths/a' ] && echo '", line, "'"));
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(storage::ToJson(*grant), line);
}

TEST_F(ServiceGrant, WhyThereIsNoneIsOneLineWithWhatToDo) {
  const auto refused =
      Ask("echo warning >&2; echo 'tutti: there is no datastore \"sets\"' >&2; exit 4").status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("paths/a\": there is no datastore \"sets\"; in a job name it as an "
                              "input with mode: direct"),
                    Not(HasSubstr("warning")), Not(HasSubstr("\n"))));
  EXPECT_TRUE(absl::IsUnavailable(Ask("echo 'tutti: no service' >&2; exit 3").status()));
  const auto none = Ask("echo '{\"credentials\": \"hush\"}'").status();
  EXPECT_THAT(std::string(none.message()), AllOf(HasSubstr("is no grant"), Not(HasSubstr("hush"))));
  const auto gone = AskForGrant("azureml://datastores/sets", folder_.path() / "gone",
                                base::Deadline::After(base::Patient(absl::Seconds(30))));
  EXPECT_TRUE(absl::IsUnavailable(gone.status())) << gone.status();
}

}  // namespace
}  // namespace tutti::stream

#include "platform/storage/storage_fault.h"

#include <gtest/gtest.h>

#include "platform/storage/objects/error_text.h"
#include "platform/storage/storage_json.h"

namespace tutti::storage {
namespace {

TEST(StorageFault, IsNotedAndReadBack) {
  const absl::Status status = absl::NotFoundError("x");
  EXPECT_EQ(SourceOf(status), FaultSource::kNone);
  EXPECT_EQ(SourceOf(WithSource(status, FaultSource::kDisk)), FaultSource::kDisk);
  EXPECT_EQ(SourceOf(WithSource(absl::OkStatus(), FaultSource::kDisk)), FaultSource::kNone);
  EXPECT_EQ(ObjectOf(AboutObject(status, "a/b")), "a/b");
  EXPECT_EQ(ObjectOf(status), "");
  EXPECT_EQ(SourceFromName("of a later version"), FaultSource::kStore);
}

TEST(StorageFault, ConcernsAllObjectsIfTheStoreIsToBlame) {
  const auto of = [](const absl::Status& status, FaultSource source) {
    return ConcernsAllObjects(WithSource(status, source));
  };
  EXPECT_TRUE(of(absl::UnavailableError("x"), FaultSource::kStore));
  EXPECT_TRUE(of(absl::ResourceExhaustedError("x"), FaultSource::kStore));
  EXPECT_TRUE(of(absl::NotFoundError("no container"), FaultSource::kStore));
  EXPECT_TRUE(of(absl::PermissionDeniedError("wrong key"), FaultSource::kLogin));
  EXPECT_FALSE(of(absl::PermissionDeniedError("this one"), FaultSource::kStore));
  EXPECT_FALSE(of(absl::NotFoundError("the file is gone"), FaultSource::kDisk));
  EXPECT_FALSE(of(absl::AbortedError("it has changed"), FaultSource::kDisk));
}

TEST(StorageFault, StaysWithAnAnswer) {
  for (const FaultSource source : {FaultSource::kStore, FaultSource::kLogin, FaultSource::kDisk}) {
    const StorageFailure failure{WithSource(absl::AbortedError("x"), source), "a"};
    const auto read = AnswerLineFromJson(ToJson(AnswerLine(failure)));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(SourceOf(std::get<StorageFailure>(*read).status), source);
  }
}

TEST(StorageFault, TellsAKeyThatIsNotKnownFromOneThatMayNot) {
  EXPECT_EQ(SourceOf(StatusFromText("Azure Error: [AuthenticationFailed] 403 x")),
            FaultSource::kLogin);
  EXPECT_EQ(SourceOf(StatusFromText("AWS Error SIGNATURE_DOES_NOT_MATCH during x")),
            FaultSource::kLogin);
  EXPECT_NE(SourceOf(StatusFromText("AWS Error ACCESS_DENIED during x")), FaultSource::kLogin);
  EXPECT_NE(SourceOf(StatusFromText("Azure Error: [AuthorizationPermissionMismatch] 403 x")),
            FaultSource::kLogin);
}

}  // namespace
}  // namespace tutti::storage

#include "platform/launch/data/stream_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::launch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class StreamNameTest : public ::testing::Test {
 protected:
  StreamNameTest() {
    request_.place = {spec::StoreKind::kS3, "", "bucket", "", "", "set"};
    request_.credentials.kind = spec::CredentialKind::kAccessKey;
    request_.credentials.secret_access_key = "the-secret";
    list_.digest = "0123";
  }
  std::string Name() {
    const auto run = [this](const storage::StorageRequest& request, base::Deadline,
                            const std::atomic<bool>&, const auto&,
                            int) -> absl::StatusOr<storage::StorageResult> {
      EXPECT_EQ(request.operation, storage::Operation::kBrowse);
      EXPECT_EQ(request.list_file, file_);
      if (!failure_.ok()) return failure_;
      return list_;
    };
    const auto name = StreamNameOf(request_, file_, run, cancelled_);
    return name.ok() ? *name : std::string(name.status().message());
  }

  std::string file_ = "/jobs/j/list-images";
  storage::StorageRequest request_;
  storage::StorageResult list_;
  absl::Status failure_;
  const std::atomic<bool> cancelled_ = false;
};

TEST_F(StreamNameTest, IsTheSameForTheSameListAndKeysInWhateverJob) {
  const std::string name = Name();
  EXPECT_EQ(name.size(), 32u);
  EXPECT_THAT(name, Not(HasSubstr("secret")));
  file_ = "/jobs/k/list-images";
  EXPECT_EQ(Name(), name);
}

TEST_F(StreamNameTest, IsAnotherForOtherKeysPlacesAndLists) {
  const std::string name = Name();
  request_.credentials.secret_access_key = "another";
  EXPECT_NE(Name(), name);
  request_.credentials.secret_access_key = "the-secret";
  request_.place.path = "other";
  EXPECT_NE(Name(), name);
  request_.place.path = "set";
  EXPECT_EQ(Name(), name);
  list_.digest = "4567";
  EXPECT_NE(Name(), name);
}

TEST_F(StreamNameTest, WhatTheStoreSaysIsReturned) {
  failure_ = absl::PermissionDeniedError("the key is wrong");
  EXPECT_EQ(Name(), "the key is wrong");
}

TEST_F(StreamNameTest, SeveralMakeOne) {
  EXPECT_EQ(StreamNameOfAll({}), "");
  EXPECT_NE(StreamNameOfAll({"a", "b"}), StreamNameOfAll({"a"}));
  EXPECT_EQ(StreamNameOfAll({"a", "b"}).size(), 32u);
}

}  // namespace
}  // namespace tutti::launch

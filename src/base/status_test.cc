#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

#include "absl/strings/cord.h"

namespace tutti::base {
namespace {

TEST(Status, AnErrorNumberSaysTheCodeAndThePlace) {
  const absl::Status full = ErrnoStatus("write /a/b", ENOSPC);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.message().substr(0, 12), "write /a/b: ");
  errno = ENOENT;
  EXPECT_EQ(ErrnoStatus("open x").code(), absl::StatusCode::kNotFound);
}

TEST(Status, AnnotatedKeepsCodeAndPayloads) {
  absl::Status status = absl::UnavailableError("gone");
  status.SetPayload("rank", absl::Cord("3"));
  const absl::Status annotated = Annotate(status, "step 7");
  EXPECT_EQ(annotated.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(annotated.message(), "step 7: gone");
  EXPECT_EQ(annotated.GetPayload("rank"), absl::Cord("3"));
  EXPECT_TRUE(Annotate(absl::OkStatus(), "step 7").ok());
}

absl::StatusOr<int> Half(int number) {
  if (number % 2 != 0) return absl::InvalidArgumentError("odd");
  return number / 2;
}

absl::StatusOr<int> Quarter(int number) {
  TUTTI_ASSIGN_OR_RETURN(const int half, Half(number));
  return Half(half);
}

absl::Status IsEven(int number, int& looked) {
  TUTTI_RETURN_IF_ERROR(Half(number).status());
  ++looked;
  return absl::OkStatus();
}

TEST(Status, MacrosReturnTheFirstError) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(7).status().message(), "odd");
  EXPECT_EQ(Quarter(6).status().message(), "odd");
  int looked = 0;
  EXPECT_TRUE(IsEven(2, looked).ok());
  EXPECT_FALSE(IsEven(3, looked).ok());
  EXPECT_EQ(looked, 1);
}

absl::StatusOr<std::unique_ptr<int>> Made() { return std::make_unique<int>(5); }

absl::StatusOr<int> ValueMade() {
  TUTTI_ASSIGN_OR_RETURN(const std::unique_ptr<int> made, Made());
  return *made;
}

TEST(Status, AFullDiskAndAFullQuotaAreKnownByTheirWords) {
  EXPECT_TRUE(SpeaksOfAFullDisk(ErrnoStatus("write /a", ENOSPC).message()));
  EXPECT_TRUE(SpeaksOfAFullDisk(ErrnoStatus("write /a", EDQUOT).message()));
  EXPECT_FALSE(SpeaksOfAFullDisk(ErrnoStatus("open /a", EMFILE).message()));
  EXPECT_FALSE(SpeaksOfAFullDisk(ErrnoStatus("write /a", EIO).message()));
}

TEST(Status, WhatCannotBeCopiedIsMoved) { EXPECT_EQ(*ValueMade(), 5); }

}  // namespace
}  // namespace tutti::base

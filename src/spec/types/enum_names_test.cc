#include "spec/types/enum_names.h"

#include <gtest/gtest.h>

namespace tutti::spec {
namespace {

TEST(Names, EachKindOfSearchIsReadFromTheNameThatItIsWrittenBy) {
  for (const absl::string_view name : SearchKindNames()) {
    const auto kind = SearchKindFromName(name);
    ASSERT_TRUE(kind.has_value()) << name;
    EXPECT_EQ(Name(*kind), name);
  }
}

TEST(Names, OthersTooAreReadFromTheNameThatTheyAreWrittenBy) {
  for (const char* name : {"low", "normal", "high"}) EXPECT_EQ(Name(*PriorityFromName(name)), name);
  for (const char* name : {"command", "pipeline", "sweep"}) {
    EXPECT_EQ(Name(*JobKindFromName(name)), name);
  }
  for (const char* name : {"random", "sobol", "grid", "bayesian"}) {
    EXPECT_EQ(Name(*SamplingFromName(name)), name);
  }
  for (const char* name : {"none", "bandit", "median_stopping", "truncation_selection"}) {
    EXPECT_EQ(Name(*EarlyTerminationFromName(name)), name);
  }
  for (const char* name : {"local", "azure_blob", "azure_data_lake", "azure_file", "s3", "gcs"}) {
    EXPECT_EQ(StoreName(*StoreFromName(name)), name);
  }
  for (const char* name : {"none", "account_key", "sas", "service_principal", "access_key"}) {
    EXPECT_EQ(CredentialName(*CredentialFromName(name)), name);
  }
}

TEST(Names, WhatIsNoNameIsNothing) {
  EXPECT_FALSE(SearchKindFromName("Choice").has_value());
  EXPECT_FALSE(PriorityFromName("highest").has_value());
  EXPECT_FALSE(JobKindFromName("parallel").has_value());
  EXPECT_FALSE(SamplingFromName("hyperband").has_value());
  EXPECT_FALSE(EarlyTerminationFromName("median").has_value());
  EXPECT_FALSE(StoreFromName("azure").has_value());
  EXPECT_FALSE(CredentialFromName("password").has_value());
}

}  // namespace
}  // namespace tutti::spec

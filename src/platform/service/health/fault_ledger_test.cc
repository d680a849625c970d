#include "platform/service/health/fault_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FaultLedgerTest : public ::testing::Test {
 protected:
  std::string Fault(const std::string& node, const std::string& work) {
    return ledger_.NoteFault(node, {work, "job-" + work, "its launcher died"});
  }
  FaultLedger ledger_;
};

TEST_F(FaultLedgerTest, TwoWorksInARowAreWitnessesEnough) {
  EXPECT_EQ(Fault("n1", "a"), "");
  EXPECT_EQ(Fault("n1", "b"),
            "jobs job-a and job-b failed here one after the other: its launcher died");
  EXPECT_THAT(ledger_.TakeCleared(), IsEmpty());
}

TEST_F(FaultLedgerTest, OneWorkIsOneWitnessHoweverOftenItFails) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Fault("n1", "a"), "");
  EXPECT_NE(Fault("n1", "b"), "");
}

TEST_F(FaultLedgerTest, AJobThatWentWellBetweenThemSpeaksForTheNode) {
  EXPECT_EQ(Fault("n1", "a"), "");
  ledger_.NoteWell("n1", "c");
  EXPECT_EQ(Fault("n1", "b"), "");
}

TEST_F(FaultLedgerTest, WhatFollowsTheWorkOverTwoNodesIsTheWorks) {
  EXPECT_EQ(Fault("n1", "a"), "");
  EXPECT_EQ(Fault("n2", "a"), "");
  EXPECT_EQ(Fault("n1", "b"), "");
  EXPECT_EQ(Fault("n2", "a"), "");
  EXPECT_EQ(Fault("n2", "c"), "");
}

TEST_F(FaultLedgerTest, WhatRestedOnAWorkThatIsAtFaultIsTakenBack) {
  Fault("n1", "a");
  EXPECT_NE(Fault("n1", "b"), "");
  EXPECT_EQ(Fault("n2", "b"), "");
  EXPECT_THAT(ledger_.TakeCleared(), ElementsAre("n1"));
  EXPECT_THAT(ledger_.TakeCleared(), IsEmpty());
  EXPECT_NE(Fault("n1", "c"), "");  // a was there, too
}

TEST_F(FaultLedgerTest, AWorkThatFailedOnceAndWentWellElsewhereIsStillAWitness) {
  Fault("n1", "a");
  ledger_.NoteWell("n2", "a");
  EXPECT_NE(Fault("n1", "b"), "");
  EXPECT_EQ(Fault("n3", "a"), "");  // months later, this does not make it the work's fault
  EXPECT_THAT(ledger_.TakeCleared(), IsEmpty());
}

TEST_F(FaultLedgerTest, NoWorkAloneMakesASecondNodeIll) {
  for (const char* node : {"n1", "n2", "n3", "n4"}) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(Fault(node, "sweep"), "");
  }
}

TEST_F(FaultLedgerTest, WhoIsForgottenBeginsAnew) {
  Fault("n1", "a");
  ledger_.Forget("n1");
  EXPECT_EQ(Fault("n1", "b"), "");
}

TEST(WorkTest, IsACommandWithItsCodeOrAllChildrenOfAJob) {
  store::Job job{.snapshot = "sha256:1"};
  job.spec.command = "train";
  store::Job same = job;
  same.id = "other";
  EXPECT_EQ(WorkOf(job), WorkOf(same));
  same.snapshot = "sha256:2";
  EXPECT_NE(WorkOf(job), WorkOf(same));
  job.parent = same.parent = "sweep";
  same.spec.command = "train --rate 2";
  EXPECT_EQ(WorkOf(job), WorkOf(same));
}

}  // namespace
}  // namespace tutti::service

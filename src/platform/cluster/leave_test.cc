#include "platform/cluster/leave.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "platform/cluster/paths.h"

namespace tutti::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// LeaveTest has a cluster of a, who controls it, b, c and d.
class LeaveTest : public ::testing::Test {
 protected:
  LeaveTest() {
    cluster_.controller = "a";
    cluster_.nodes = {"a", "b", "c", "d"};
    cluster_.munge_key = "secret\n";
    for (const std::string& host : cluster_.nodes) {
      HostFacts facts;
      facts.host = facts.name = host;
      facts.address = absl::StrCat("10.0.0.", facts_.size() + 1);
      facts.has_apt = facts.configured = true;
      facts.files[std::string(kMungeKey)] = base::Hex(base::Sha256Of(cluster_.munge_key));
      facts_.emplace_back(facts);
    }
  }
  void Lose(size_t i) {
    facts_[i] = absl::UnavailableError(absl::StrCat(cluster_.nodes[i], ": No route to host"));
  }
  // "b" of one that is ended there, "(b)" of one that stays as it is; or what stands against it.
  std::string Outcome(const std::vector<std::string>& leaving, bool force) {
    const auto plan = PlanLeaving(cluster_, leaving, facts_, force);
    if (!plan.ok()) return std::string(plan.status().message());
    std::string told;
    for (const Leaving& node : *plan) {
      EXPECT_EQ(node.name.empty(), node.removal.empty());
      absl::StrAppend(&told, node.name.empty() ? absl::StrCat("(", node.host, ")") : node.name);
    }
    return told;
  }

  Description cluster_;
  std::vector<absl::StatusOr<HostFacts>> facts_;
};

TEST_F(LeaveTest, ThoseThatAreNamedAreEnded) { EXPECT_EQ(Outcome({"b", "d"}, false), "bd"); }

TEST_F(LeaveTest, OneThatIsGoneIsLeftAsItIsIfForced) {
  Lose(2);
  EXPECT_THAT(Outcome({"b", "c"}, false),
              AllOf(HasSubstr("c: No route"), HasSubstr("remove-node --force b c`")));
  EXPECT_EQ(Outcome({"b", "c"}, true), "b(c)");
  facts_[2] = absl::DeadlineExceededError("c: no answer");
  EXPECT_EQ(Outcome({"c"}, false), "c: no answer");
  EXPECT_EQ(Outcome({"c"}, true), "(c)");
}

TEST_F(LeaveTest, NoneLeavesWhileAnotherCannotBeReachedButAllLeaveTogether) {
  Lose(2);
  Lose(3);
  for (const char* one : {"b", "c"}) {
    EXPECT_THAT(Outcome({one}, true),
                AllOf(HasSubstr("d: No route"), HasSubstr("nothing was changed"),
                      HasSubstr(absl::StrCat("remove-node --force ", one))));
  }
  EXPECT_THAT(Outcome({"c"}, true), HasSubstr("`tutti cluster remove-node --force c d`"));
  EXPECT_EQ(Outcome({"c", "d"}, true), "(c)(d)");
}

TEST_F(LeaveTest, WhatStandsAgainstTheRestIsSaidBefore) {
  facts_[3]->foreign_configuration = true;
  EXPECT_THAT(Outcome({"b"}, false), HasSubstr("d has a /etc/slurm/slurm.conf"));
  EXPECT_THAT(Outcome({"d"}, false), HasSubstr("--force takes it out and leaves it as it is"));
  EXPECT_EQ(Outcome({"d"}, true), "(d)");
}

TEST_F(LeaveTest, TheControllerAndTheLastNodeStay) {
  EXPECT_THAT(Outcome({"a"}, true), HasSubstr("a is the controller"));
  EXPECT_THAT(Outcome({"e"}, true), HasSubstr("e is no node of cluster tutti"));
  cluster_.nodes = {"b"};
  facts_.resize(2);
  EXPECT_THAT(Outcome({"b"}, true), HasSubstr("no node; `tutti cluster delete` ends it"));
  cluster_.autoscale.emplace().nodes = {"e"};
  EXPECT_EQ(Outcome({"b"}, true), "b");
}

}  // namespace
}  // namespace tutti::cluster

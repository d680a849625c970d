#include "runtime/train/setup/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/test_patience.h"
#include "runtime/device/precision/detect.h"
#include "runtime/parallel/thread_group_fake.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;

constexpr char kSlow[] = "emulates bf16 (AMD EPYC 7B13, AVX2)",
               kFast[] = "has instructions for bf16 (x)";

RankPrecision Rank(bool bf16, const char* asked = "auto", const char* kept = "") {
  return {asked, kept, bf16, "processor", bf16 ? kFast : kSlow};
}

PrecisionTaken TakenBy(std::vector<RankPrecision> ranks, int rank = 0) {
  return Agree(ranks, rank).taken;
}

TEST(Agree, TakesBf16WhereEveryRankIsFastestInIt) {
  const PrecisionTaken taken = TakenBy({Rank(true), Rank(true)});
  EXPECT_EQ(taken.precision, "bf16");
  EXPECT_EQ(taken.why, "precision bf16 (auto): this processor has instructions for bf16 (x)");
}

TEST(Agree, TakesTheSlowestRanksAndNamesIt) {
  const std::vector ranks = {Rank(true), Rank(true), Rank(false), Rank(false)};
  for (const int rank : {0, 2, 3}) {
    EXPECT_EQ(TakenBy(ranks, rank).precision, "fp32");
    EXPECT_EQ(TakenBy(ranks, rank).why,
              "precision fp32 (auto): the processor of rank 2 emulates bf16 (AMD EPYC 7B13, AVX2)");
  }
  EXPECT_EQ(TakenBy({Rank(false), Rank(true)}).why,
            "precision fp32 (auto): this processor emulates bf16 (AMD EPYC 7B13, AVX2)");
  EXPECT_EQ(Agree(ranks, 0).emulating, -1) << "nobody emulates fp32";
}

TEST(Agree, GivesByNameWhatARankEmulatesAndSaysWhichDoes) {
  const std::vector ranks = {Rank(true, "bf16"), Rank(false, "bf16"), Rank(false, "bf16")};
  const AgreedPrecision agreed = Agree(ranks, 0);
  EXPECT_EQ(agreed.taken.precision, "bf16");
  EXPECT_EQ(agreed.taken.why, "");
  EXPECT_EQ(agreed.emulating, 1);
  EXPECT_EQ(Agree(std::vector{Rank(true, "bf16")}, 0).emulating, -1);
  EXPECT_EQ(Agree(std::vector{Rank(false, "fp32")}, 0).emulating, -1);
}

TEST(Agree, AResumedRunKeepsItsOwnUnlessToldOtherwise) {
  const PrecisionTaken kept = TakenBy({Rank(true, "auto", "fp32"), Rank(true)}, 1);
  EXPECT_EQ(kept.precision, "fp32");
  EXPECT_EQ(kept.why, "precision fp32: that of the run that is resumed");
  EXPECT_EQ(TakenBy({Rank(true, "bf16", "fp32")}).precision, "bf16");
  EXPECT_EQ(Agree(std::vector{Rank(false, "auto", "bf16")}, 0).emulating, 0);
}

TEST(TakePrecision, IsTheSameOnEveryRankAndWhatThisMachineIsFastestIn) {
  const device::PrecisionChoice here = device::Choose(device::FactsOf(torch::kCPU));
  parallel::OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> group) {
    const auto soon = base::Deadline::After(base::Patient(absl::Seconds(60)));
    const auto taken = TakePrecision("auto", "", torch::kCPU, *group, soon);
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_EQ(taken->precision, here.bf16 ? "bf16" : "fp32");
    EXPECT_THAT(taken->why, HasSubstr("(auto): this processor " + here.why));
    // What rank 0 knows of the run that is resumed counts for all.
    const auto kept = TakePrecision("auto", rank == 0 ? "fp32" : "", torch::kCPU, *group, soon);
    ASSERT_TRUE(kept.ok()) << kept.status();
    EXPECT_EQ(kept->precision, "fp32");
  });
}

// Facts that count how often they were asked for.
struct CountedFacts {
  int measured = 0, of_instructions = 0, slowdowns = 0;
  device::Bf16 bf16 = device::Bf16::kInDoubt;
  std::string name = "x";

  FactsSource Source() {
    const auto facts = [this] {
      return device::PrecisionFacts{.kind = "processor", .name = name, .bf16 = bf16};
    };
    return {[=, this] { return ++measured, facts(); },
            [=, this] { return ++of_instructions, facts(); },
            [this](device::PrecisionFacts& facts) { ++slowdowns, facts.slowdown = 9.3; }};
  }
};

TEST(TakePrecision, FindsOutNothingAboutWhatIsNamedButWhetherBf16IsEmulated) {
  parallel::OnEveryRank(2, [&](int rank, std::unique_ptr<comm::Communicator> group) {
    const auto soon = base::Deadline::After(base::Patient(absl::Seconds(60)));
    CountedFacts facts;
    const auto take = [&](const char* asked, const char* kept) {
      const auto taken = TakePrecision(asked, kept, facts.Source(), *group, soon);
      EXPECT_TRUE(taken.ok()) << taken.status();
      return taken.ok() ? taken->precision : "";
    };
    EXPECT_EQ(take("fp32", ""), "fp32");
    EXPECT_EQ(take("auto", rank == 0 ? "fp32" : ""), "fp32");
    EXPECT_EQ(facts.of_instructions, 0);
    EXPECT_EQ(take("bf16", ""), "bf16");
    EXPECT_EQ(facts.of_instructions, 1);
    EXPECT_EQ(facts.slowdowns, 0) << "in doubt is not emulated";
    facts.bf16 = device::Bf16::kEmulated;
    EXPECT_EQ(take("bf16", ""), "bf16");
    EXPECT_EQ(facts.slowdowns, rank == 0 ? 1 : 0) << "the first one's is told";
    EXPECT_EQ(facts.measured, 0);
    EXPECT_EQ(take("auto", ""), "fp32");
    EXPECT_EQ(facts.measured, 1);
  });
}

// Ranks on processors of two kinds, whatever this machine is.
TEST(TakePrecision, IsThatOfTheOneRankThatEmulatesAndNamesItOnAll) {
  parallel::OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> group) {
    CountedFacts facts;
    facts.bf16 = rank == 1 ? device::Bf16::kEmulated : device::Bf16::kNative;
    facts.name = absl::StrCat("of rank ", rank);
    const auto taken = TakePrecision("auto", "", facts.Source(), *group,
                                     base::Deadline::After(base::Patient(absl::Seconds(60))));
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_EQ(taken->precision, "fp32");
    EXPECT_EQ(taken->why,
              "precision fp32 (auto): the processor of rank 1 emulates bf16 (of rank 1)");
  });
}

TEST(TakePrecision, WarnsOfBf16ThatARankEmulatesInItsLogAndInRankZeros) {
  testing::internal::CaptureStdout();  // the log, in a program that does not begin one
  parallel::OnEveryRank(4, [&](int rank, std::unique_ptr<comm::Communicator> group) {
    CountedFacts facts;
    facts.bf16 = rank == 1 || rank == 3 ? device::Bf16::kEmulated : device::Bf16::kNative;
    facts.name = absl::StrCat("of rank ", rank);
    const auto taken = TakePrecision("bf16", "", facts.Source(), *group,
                                     base::Deadline::After(base::Patient(absl::Seconds(60))));
    EXPECT_TRUE(taken.ok()) << taken.status();
  });
  const std::string log = testing::internal::GetCapturedStdout();
  constexpr absl::string_view kWarning =
      "bf16 was asked for, and the processor of rank 1 emulates bf16 (of rank 1)";
  EXPECT_THAT(log, HasSubstr(absl::StrCat(kWarning, ": a layer takes 9.3 times fp32's time; ")));
  EXPECT_THAT(log, HasSubstr(absl::StrCat(kWarning, ", and its log says how many times ")));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
}

TEST(TakePrecision, RanksThatWereAskedForDifferentOnesAreRefusedByAll) {
  parallel::OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> group) {
    const auto taken = TakePrecision(rank == 2 ? "fp32" : "auto", "", torch::kCPU, *group,
                                     base::Deadline::After(base::Patient(absl::Seconds(60))));
    EXPECT_EQ(taken.status(),
              absl::InvalidArgumentError("rank 2 was asked for --precision fp32 and rank 0 for "
                                         "auto: give all ranks the same"));
  });
}

TEST(UsesWinograd, IsForFp32AndTuttisOwnNetworksUnlessTheRecipeSaysIt) {
  Recipe recipe;
  EXPECT_TRUE(UsesWinograd(recipe));
  recipe.winograd = false;
  EXPECT_FALSE(UsesWinograd(recipe));
  recipe.winograd = std::nullopt;
  recipe.precision = "bf16";
  recipe.model = "script:net.pt";
  EXPECT_FALSE(UsesWinograd(recipe));
  recipe.winograd = true;
  EXPECT_TRUE(UsesWinograd(recipe));
  recipe.winograd = std::nullopt;
  recipe.precision = "fp32";
  EXPECT_TRUE(UsesWinograd(recipe));
  recipe.winograd = false;
  EXPECT_FALSE(UsesWinograd(recipe));
}

TEST(TakeWinograd, KeepsThatOfTheResumedRunWhichRankZeroKnowsUnlessTheRecipeSaysIt) {
  parallel::OnEveryRank(2, [&](int rank, std::unique_ptr<comm::Communicator> group) {
    const auto taken = [&](const Recipe& recipe, std::optional<bool> kept) {
      const auto soon = base::Deadline::After(base::Patient(absl::Seconds(60)));
      const auto result = TakeWinograd(recipe, rank == 0 ? kept : std::nullopt, *group, soon);
      EXPECT_TRUE(result.ok()) << result.status();
      return result.value_or(false);
    };
    Recipe own, script;
    script.model = "script:net.pt";
    EXPECT_TRUE(taken(own, std::nullopt));
    EXPECT_FALSE(taken(script, std::nullopt));
    EXPECT_FALSE(taken(own, false));
    EXPECT_TRUE(taken(script, true));
    own.winograd = true;
    EXPECT_TRUE(taken(own, false));
  });
}

}  // namespace
}  // namespace tutti::train

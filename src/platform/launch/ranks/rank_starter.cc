#include "platform/launch/ranks/rank_starter.h"

#include <utility>

#include "platform/launch/ranks/direct_starter.h"
#include "platform/launch/ranks/mpirun_starter.h"
#include "platform/launch/ranks/pmix_starter.h"

namespace tutti::launch {

std::unique_ptr<RankStarter> MakeRankStarter(const StartContext& context, MpiAgreement agreement) {
  switch (agreement.way) {
    case MpiWay::kMpirun:
      return std::make_unique<MpirunStarter>(context, std::move(agreement));
    case MpiWay::kPmix:
      return std::make_unique<PmixStarter>(context, std::move(agreement));
    case MpiWay::kNone:
      break;
  }
  return std::make_unique<DirectStarter>(context);
}

}  // namespace tutti::launch

#include "platform/launch/limits/limits.h"

namespace tutti::launch {

std::vector<std::unique_ptr<Limit>> LimitsOf(const LimitContext& context) {
  std::vector<std::unique_ptr<Limit>> limits;
  if (context.plan.timeout_seconds > 0) limits.push_back(MakeTimeLimit(context));
  if (!context.process_limit.holds()) limits.push_back(MakeProcessCountLimit(context));
  if (MemoryShareOf(context) > 0) limits.push_back(MakeMemoryLimit(context));
  if (!context.facts.pmi.empty()) limits.push_back(MakeMpiSingletonLimit(context));
  if (context.pmi != nullptr) limits.push_back(MakeMpiWorldLimit(context));
  return limits;
}

}  // namespace tutti::launch

#include "platform/launch/delivery/secret_masks.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/text/text_mask.h"

namespace tutti::launch {

void MaskOutput(const SecretValues& values, Spool& spool, EventLog& events) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : values) {
    for (std::string& text : base::TextsToHide(value)) texts.push_back(std::move(text));
  }
  const auto mask = std::make_shared<const base::TextMask>(texts);
  spool.MaskWith(mask);
  events.MaskWith(mask);
}

void MaskEverything(Spool& spool) {
  spool.MaskWith(std::make_shared<const base::TextMask>(base::TextMask::OfEverything()));
}

}  // namespace tutti::launch

// Any bytes as an answer: an error, or the same however the bytes are cut.
#include <cstdint>
#include <cstdlib>

#include "platform/storage/answer_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  tutti::storage::AnswerReader whole({}), cut({});
  const bool taken = whole.Add(text).ok();
  bool cut_taken = true;
  for (size_t at = 0; at < size && cut_taken; at += 3) cut_taken = cut.Add(text.substr(at, 3)).ok();
  if (taken != cut_taken) std::abort();
  if (!taken) return 0;
  const auto result = whole.Finish(), cut_result = cut.Finish();
  if (result.ok() != cut_result.ok()) std::abort();
  if (result.ok() && result->objects != cut_result->objects) std::abort();
  return 0;
}

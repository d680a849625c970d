// Any bytes, read as a TFRecord file of Examples: an error or parts that lie inside of it.
// Checksums are passed over, or no input would get further: the bytes are read as one Example too.
#include <cstdint>
#include <cstdlib>

#include "runtime/data/source/tf_record/tf_example.h"
#include "runtime/data/source/tf_record/tf_record.h"

namespace {

void ExpectInside(absl::string_view part, absl::string_view whole) {
  const bool inside = part.empty() || (part.data() >= whole.data() &&
                                       part.data() + part.size() <= whole.data() + whole.size());
  if (!inside) std::abort();
}

void ReadExample(absl::string_view message) {
  const auto example = tutti::data::ParseImageExample(message);
  if (!example.ok()) return;
  for (const auto part : {example->image, example->class_name, example->file_name}) {
    ExpectInside(part, message);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view file(reinterpret_cast<const char*>(data), size);
  ReadExample(file);
  tutti::data::TfRecordReader reader(file);
  while (true) {
    const auto record = reader.Next();
    if (!record.ok() || !record->has_value()) return 0;
    ExpectInside((*record)->data, file);
    if (CheckData(**record).ok()) ReadExample((*record)->data);
  }
}

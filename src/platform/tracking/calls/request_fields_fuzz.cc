// Whatever body a client sends, its fields are read or refused; no text that is read has a NUL.
#include <cstdlib>
#include <string>

#include "platform/tracking/calls/calls.h"
#include "platform/tracking/calls/request_fields.h"

namespace {

void CheckText(const std::string& text) {
  if (text.find('\0') != std::string::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tutti::tracking::Need;
  using tutti::tracking::RequestFields;
  const auto object = tutti::tracking::ParseRequest({reinterpret_cast<const char*>(data), size});
  if (!object.ok()) return 0;
  for (const char* name : {"run_id", "metrics", "params", "tags", "dataset", "order_by", "key"}) {
    RequestFields fields(*object);
    CheckText(fields.Text(name, Need::kRequired));
    for (const std::string& text : RequestFields(*object).Texts(name)) CheckText(text);
    RequestFields(*object).Number(name);
    RequestFields(*object).Integer(name, Need::kOptional);
    RequestFields(*object).Object(name, Need::kRequired);
    for (const auto* part : RequestFields(*object).Objects(name)) {
      CheckText(RequestFields(*part).Text("value", Need::kOptional));
    }
  }
  RequestFields fields(*object);
  tutti::tracking::TagsIn(fields, "tags");
  tutti::tracking::SearchIn(fields, tutti::tracking::Subject::kRuns);
  return 0;
}

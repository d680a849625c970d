#include "platform/launch/diagnosis/python_frame.h"

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace tutti::launch {

std::optional<PythonFrame> FrameIn(absl::string_view line) {
  static constexpr absl::string_view kLine = "\", line ", kFunction = " in ";
  line = absl::StripAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "File \"")) return std::nullopt;
  const size_t end = line.find(kLine);
  if (end == line.npos) return std::nullopt;
  PythonFrame frame{.path = line.substr(0, end), .line = line.substr(end + kLine.size())};
  if (const size_t in = frame.line.find(kFunction); in != frame.line.npos) {
    frame.function = frame.line.substr(in + kFunction.size());
  }
  frame.line = frame.line.substr(0, frame.line.find_first_not_of("0123456789"));
  return frame;
}

}  // namespace tutti::launch

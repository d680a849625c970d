#include "platform/launch/node/exit_reason.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/child_process.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

fs::path& NoteOnTerminate() {
  static fs::path& note = *new fs::path;
  return note;
}

std::string CurrentException() {
  try {
    if (const std::exception_ptr current = std::current_exception()) {
      std::rethrow_exception(current);
    }
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
  }
  return "unknown";
}

[[noreturn]] void Terminate() {
  RecordExitReason(NoteOnTerminate(), absl::StrCat("it could not go on: ", CurrentException()));
  std::abort();
}

}  // namespace

void RecordExitReason(const fs::path& note, absl::string_view reason) {
  const nlohmann::json words = {
      {"pid", ::getpid()},
      {"start_time", base::ProcessStartTime(::getpid()).value_or(0)},
      {"reason", std::string(reason)},
  };
  const auto fd = base::Open(note, O_WRONLY | O_CREAT | O_EXCL);
  if (!fd.ok()) return;
  base::WriteAll(fd->get(), words.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                 note.native())
      .IgnoreError();
}

void RecordExitReasonOnTerminate(const fs::path& note) {
  NoteOnTerminate() = note;
  std::set_terminate(Terminate);
}

std::string ReadExitReason(const fs::path& note) {
  const auto text = base::ReadFile(note, 1 << 16);
  const auto words = nlohmann::json::parse(text.value_or(""), nullptr, false);
  if (!words.is_object() || !words.contains("reason") || !words["reason"].is_string()) return "";
  return words["reason"].get<std::string>();
}

}  // namespace tutti::launch

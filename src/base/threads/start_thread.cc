#include "base/threads/start_thread.h"

#include <spdlog/spdlog.h>

#include <system_error>
#include <utility>

namespace tutti::base {

std::thread StartThread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    spdlog::error("cannot start a thread: {}", error.what());
    return {};
  }
}

}  // namespace tutti::base

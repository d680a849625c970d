#include "runtime/comm/negotiation/execution/tensor_timeline.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::comm {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(100);
constexpr size_t kFilePage = 4096;
constexpr absl::string_view kClosing = "\n]\n";
constexpr size_t kMostEvents = 1 << 20;  // that wait to be written

std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppend(&quoted, "\\u00", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Timeline>> Timeline::Start(const std::string& path, int rank) {
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd file, base::Open(path, O_WRONLY | O_CREAT | O_TRUNC));
  return std::unique_ptr<Timeline>(new Timeline(std::move(file), rank));
}

Timeline::Timeline(base::UniqueFd file, int rank)
    : start_(std::chrono::steady_clock::now()), file_(std::move(file)) {
  const int64_t epoch = std::chrono::duration_cast<std::chrono::microseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
  const std::string opening = absl::StrCat(
      "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{\"name\":\"rank ", rank,
      "\",\"start_time_since_epoch_in_micros\":", epoch, "}}");
  depth_.push_back(0);  // row 0 is the rank's own
  Append(opening);
  Flush();
  thread_ = std::thread([this] { Run(); });
}

void Timeline::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (size_t row = 0; row < depth_.size(); ++row) {
      for (; depth_[row] > 0; --depth_[row]) Add('E', static_cast<int>(row), "");
    }
    stopping_ = true;
    wake_.notify_all();
  }
  std::call_once(joined_, [this] { thread_.join(); });
}

int Timeline::RowOf(const std::string& tensor) {
  if (tensor.empty()) return 0;
  const auto [row, is_new] = rows_.emplace(tensor, static_cast<int>(depth_.size()));
  if (is_new) {
    depth_.push_back(0);
    Add('M', row->second, tensor);
  }
  return row->second;
}

void Timeline::Add(char type, int row, std::string name) {
  if (stopping_) return;
  if (events_.size() >= kMostEvents && type != 'E' && type != 'M') {
    ++dropped_;
    return;
  }
  const int64_t micros = std::chrono::duration_cast<std::chrono::microseconds>(
                             std::chrono::steady_clock::now() - start_)
                             .count();
  events_.push_back({type, row, micros, std::move(name)});
}

void Timeline::Begin(const std::string& tensor, std::string phase) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int row = RowOf(tensor);
  const size_t dropped = dropped_;
  Add('B', row, std::move(phase));
  if (dropped_ == dropped) ++depth_[row];
}

void Timeline::End(const std::string& tensor) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int row = RowOf(tensor);
  if (depth_[row] == 0) return;
  --depth_[row];
  Add('E', row, "");
}

void Timeline::Mark(const std::string& tensor, std::string what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Add('i', RowOf(tensor), std::move(what));
}

void Timeline::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait_for(lock, kPeriod, [this] { return stopping_; });
    const bool last = stopping_;
    const std::vector<Event> events = std::exchange(events_, {});
    const size_t dropped = std::exchange(dropped_, 0);
    lock.unlock();
    Write(events, dropped);
    if (last) return;
    lock.lock();
  }
}

void Timeline::Write(const std::vector<Event>& events, size_t dropped) {
  for (const Event& event : events) {
    std::string text =
        absl::StrCat(",\n{\"ph\":\"", absl::string_view(&event.type, 1), "\",\"pid\":", event.row);
    if (event.type == 'M') {
      absl::StrAppend(&text, ",\"name\":\"process_name\",\"args\":{\"name\":", Quoted(event.name),
                      "}}");
    } else {
      absl::StrAppend(&text, ",\"tid\":0,\"ts\":", event.micros);
      if (event.type != 'E') absl::StrAppend(&text, ",\"name\":", Quoted(event.name));
      absl::StrAppend(&text, event.type == 'i' ? ",\"s\":\"p\"}" : "}");
    }
    Append(text);
  }
  if (dropped > 0) {
    Append(absl::StrCat(
        ",\n{\"ph\":\"M\",\"pid\":0,\"name\":\"dropped_events\",\"args\":{\"count\":", dropped,
        "}}"));
  }
  Flush();
}

// The kernel takes a write page by page, and a kill comes between pages: so no event crosses the
// end of one (unless it is longer), and blanks fill what is left of it.
void Timeline::Append(absl::string_view event) {
  const auto left = [this] { return kFilePage - (end_ + block_.size()) % kFilePage; };
  if (event.size() + kClosing.size() > left() && !block_.empty()) Flush();
  if (event.size() + kClosing.size() > left() && event.size() + kClosing.size() <= kFilePage) {
    block_.assign(left(), ' ');
    Flush();
  }
  block_.append(event.data(), event.size());
}

// A disk that is full costs events, never the job.
void Timeline::Flush() {
  const std::string text = absl::StrCat(block_, kClosing);
  for (size_t done = 0; done < text.size() && !block_.empty();) {
    const ssize_t n = ::pwrite(file_.get(), text.data() + done, text.size() - done,
                               static_cast<off_t>(end_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const off_t end = static_cast<off_t>(end_);
      [[maybe_unused]] const int cut = ::ftruncate(file_.get(), end);
      [[maybe_unused]] const ssize_t closed =
          ::pwrite(file_.get(), kClosing.data(), kClosing.size(), end);
      block_.clear();
      return;
    }
    done += static_cast<size_t>(n);
  }
  end_ += block_.size();
  block_.clear();
}

}  // namespace tutti::comm

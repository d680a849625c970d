#include "runtime/scoring/serve/batch_queue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::scoring {
namespace {

constexpr double kNewest = 0.2;  // weight of the last batch in what an image takes

bool IsOver(const QueuedImage& image) { return image.call->finished; }

void DropOver(std::deque<QueuedImage>& images) {
  images.erase(std::remove_if(images.begin(), images.end(), IsOver), images.end());
}

}  // namespace

LanePtr BatchQueue::AddLane(std::shared_ptr<Servable> model, size_t limit, double image_seconds) {
  auto lane = std::make_shared<Lane>();
  lane->model = std::move(model);
  lane->limit = std::max<size_t>(limit, 1);
  lane->image_seconds = image_seconds / workers_;
  lanes_.push_back(lane);
  return lane;
}

void BatchQueue::Retire(const LanePtr& lane) {
  lane->retired = true;
  Settle(lane);
}

// Is called where a lane may have become empty.
void BatchQueue::Settle(const LanePtr& lane) {
  if (lane->backlog() > 0) return;
  lane->was_waiting = false;
  if (lane->retired) lanes_.remove(lane);
}

std::optional<absl::Duration> BatchQueue::Add(const LanePtr& lane, const CallPtr& call) {
  const size_t waiting = lane->backlog();
  // What fits into one batch of an idle model is always tried.
  if (waiting > 0 || call->images.size() > lane->limit) {
    const double images = static_cast<double>(waiting + call->images.size());
    const absl::Duration end = call->arrived + absl::Seconds(images * lane->image_seconds);
    if (end > call->deadline) return end - call->deadline;
  }
  if (waiting == 0) {
    lane->used = std::max(lane->used, virtual_time_);
    const bool is_known = std::find(lanes_.begin(), lanes_.end(), lane) != lanes_.end();
    if (!is_known) lanes_.push_back(lane);  // it was retired while this call was read
  }
  call->left = call->images.size();
  for (size_t i = 0; i < call->images.size(); ++i) {
    (call->images[i].pixels.empty() ? lane->encoded : lane->ready).push_back({call, i});
  }
  return std::nullopt;
}

std::optional<std::pair<LanePtr, QueuedImage>> BatchQueue::TakeToDecode() {
  LanePtr next;
  for (const LanePtr& lane : lanes_) {
    if (lane->encoded.empty() || lane->ready.size() + lane->decoding >= 2 * lane->limit) continue;
    if (next == nullptr || lane->used < next->used) next = lane;
  }
  if (next == nullptr) return std::nullopt;
  QueuedImage image = std::move(next->encoded.front());
  next->encoded.pop_front();
  ++next->decoding;
  if (!next->spare.empty()) {
    image.image().pixels = std::move(next->spare.back());
    next->spare.pop_back();
  }
  return std::pair{next, std::move(image)};
}

bool BatchQueue::Decoded(const LanePtr& lane, const QueuedImage& image,
                         const absl::Status& status) {
  --lane->decoding;
  Call& call = *image.call;
  const bool is_over = call.finished;  // it was withdrawn, or another image could not be read
  if (!is_over && status.ok()) {
    lane->ready.push_back(image);
    return false;
  }
  if (!is_over) {
    const bool is_alone = call.images.size() == 1;
    call.status = is_alone ? status
                           : base::Annotate(status, absl::StrCat("image ", image.index + 1, " of ",
                                                                 call.images.size()));
    call.finished = true;
    DropOver(lane->encoded);
    DropOver(lane->ready);
  }
  Settle(lane);
  return !is_over;
}

std::optional<Batch> BatchQueue::TakeBatch(absl::Duration now) {
  LanePtr next;
  for (const LanePtr& lane : lanes_) {
    if (!lane->ready.empty() && (next == nullptr || lane->used < next->used)) next = lane;
  }
  if (next == nullptr) return std::nullopt;
  Batch batch{next, {}, now, {}};
  while (batch.images.size() < next->limit && !next->ready.empty()) {
    batch.images.push_back(std::move(next->ready.front()));
    next->ready.pop_front();
    Call& call = *batch.images.back().call;
    if (call.began == absl::ZeroDuration()) call.began = now;
    ++call.computing;
  }
  next->computing += batch.images.size();
  virtual_time_ = next->used;
  batch.expected = absl::Seconds(static_cast<double>(batch.images.size()) * next->image_seconds);
  next->used += batch.expected;
  return batch;
}

std::vector<CallPtr> BatchQueue::Computed(Batch& batch, absl::Duration now) {
  Lane& lane = *batch.lane;
  lane.computing -= batch.images.size();
  lane.used += now - batch.began - batch.expected;
  // While images wait, the time from one batch's end to the next one's has all that holds them up:
  // other models, decoding, and what other workers take off.
  const absl::Duration time =
      lane.was_waiting ? now - lane.last_end : (now - batch.began) / workers_;
  const double seconds = absl::ToDoubleSeconds(time) / static_cast<double>(batch.images.size());
  lane.image_seconds += kNewest * (seconds - lane.image_seconds);
  lane.last_end = now;
  lane.was_waiting = lane.backlog() > 0;
  std::vector<CallPtr> finished;
  for (QueuedImage& queued : batch.images) {
    if (lane.spare.size() < 2 * lane.limit) lane.spare.push_back(std::move(queued.image().pixels));
    queued.image().pixels = {};
    Call& call = *queued.call;
    --call.computing;
    if (--call.left > 0 || call.finished) continue;
    call.finished = true;
    finished.push_back(queued.call);
  }
  Settle(batch.lane);
  return finished;
}

Withdrawal BatchQueue::Withdraw(const CallPtr& call) {
  if (call->finished) return Withdrawal::kFinished;
  if (call->left == call->computing) return Withdrawal::kUnderWay;
  call->finished = true;
  for (const LanePtr& lane : std::list<LanePtr>(lanes_)) {
    DropOver(lane->encoded);
    DropOver(lane->ready);
    Settle(lane);
  }
  return Withdrawal::kWithdrawn;
}

}  // namespace tutti::scoring

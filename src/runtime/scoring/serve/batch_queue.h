// BatchQueue decides which images are decoded and computed next, and which calls are refused. It
// holds the images that wait for each model, and no threads: Batcher runs what it decides.
//
//   Add | encoded | decoder | ready: two batches at most | batch | worker | answers
//
// - A worker takes what is ready at once, up to the model's largest batch: images collect only
//   while it computes.
// - Images wait encoded. A decoder works ahead of the worker by two batches at most, so that the
//   memory of pixels does not depend on how many calls wait.
// - The queue is bounded by time: a call that would be answered after its deadline is refused.
// - Models share the workers by time: start-time fair queueing (Goyal, Vin and Cheng 1996), each
//   with the same weight. A model that was idle begins with what the others have.
//
// Not thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/data/image.h"
#include "runtime/scoring/trained_model.h"

namespace tutti::scoring {

struct Image {
  std::string encoded;        // "" where pixels were sent
  std::vector<float> pixels;  // [height, width, 3], normalised
  data::ImageSize size;       // in pixels, as it was sent
  Answer answer;
};

// Call is one request. Until it is finished its fields belong to the queue's owner; then to whoever
// reads `finished`.
struct Call {
  std::vector<Image> images;
  absl::Duration arrived, deadline;  // by the queue's clock
  std::function<void()> wake;        // called once, by any thread, when it is finished

  absl::Status status;   // of an image that could not be read; else OK
  size_t left = 0;       // images without an answer
  size_t computing = 0;  // of these
  absl::Duration began;  // when its first image was computed
  std::atomic<bool> finished = false;
};
using CallPtr = std::shared_ptr<Call>;

struct QueuedImage {
  CallPtr call;
  size_t index = 0;
  Image& image() const { return call->images[index]; }
};

// ComputedBatch is reported when a batch has been computed.
struct ComputedBatch {
  size_t images = 0;
  absl::Duration time;
};

// Lane is a model's part of the queue. The counts may be read; the queue alone changes them.
struct Lane {
  std::shared_ptr<Servable> model;
  size_t limit = 1;                                    // images in a batch
  double image_seconds = 0;                            // how long the queue becomes by an image
  std::function<void(const ComputedBatch&)> on_batch;  // may be null

  std::deque<QueuedImage> encoded, ready;
  size_t decoding = 0, computing = 0;
  bool retired = false;                   // it is forgotten once nothing of it waits
  absl::Duration used;                    // the start tag of its next batch
  absl::Duration last_end;                // of its last batch
  bool was_waiting = false;               // images waited when that ended
  std::vector<std::vector<float>> spare;  // memory for pixels

  size_t backlog() const { return encoded.size() + ready.size() + decoding + computing; }
};
using LanePtr = std::shared_ptr<Lane>;

struct Batch {
  LanePtr lane;
  std::vector<QueuedImage> images;
  absl::Duration began;
  absl::Duration expected;  // what its lane has been charged
};

// Withdrawal is what became of a call that was to be withdrawn: nothing of it is computed any
// more, all that is left of it is being computed, or it was finished already.
enum class Withdrawal { kWithdrawn, kUnderWay, kFinished };

class BatchQueue {
 public:
  // `workers` compute at a time.
  explicit BatchQueue(int workers = 1) : workers_(workers) {}

  // `image_seconds` is a first guess, of one worker.
  LanePtr AddLane(std::shared_ptr<Servable> model, size_t limit, double image_seconds);
  // Forgets a lane once nothing of it waits any more; a call that comes late is answered all the
  // same.
  void Retire(const LanePtr& lane);

  // Takes a call for a lane; or refuses one that would be answered after its deadline, and returns
  // by how much.
  std::optional<absl::Duration> Add(const LanePtr& lane, const CallPtr& call);

  // Returns the image that is to be decoded next, and its lane.
  std::optional<std::pair<LanePtr, QueuedImage>> TakeToDecode();
  // Takes an image whose pixels are in place, or why there are none. Returns whether that has
  // finished the call.
  bool Decoded(const LanePtr& lane, const QueuedImage& image, const absl::Status& status);

  std::optional<Batch> TakeBatch(absl::Duration now);
  // Takes a batch whose answers are in place. Returns the calls that this has finished.
  std::vector<CallPtr> Computed(Batch& batch, absl::Duration now);

  // Takes what waits of a call out of the queue.
  Withdrawal Withdraw(const CallPtr& call);

  const std::list<LanePtr>& lanes() const { return lanes_; }

 private:
  void Settle(const LanePtr& lane);

  const int workers_;
  std::list<LanePtr> lanes_;
  absl::Duration virtual_time_;  // the start tag of the batch that was taken last
};

}  // namespace tutti::scoring
